/**
 * What each value of the Helm chart changes, beside what kustomize has a component for: exactly this, and nothing else.
 */
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { CASES, OBJECTS } from "./chart-cases.ts";
import {
  CONTAINER,
  DEPLOYMENT,
  type Fields,
  JOB,
  NAMESPACE,
  RECONCILER,
  SECRET,
  changesOf,
  renderWith,
  variables,
} from "./chart-fields.ts";
import { HELM, parseManifests } from "./helm.ts";

describe("a value of the chart", { skip: HELM.missing }, () => {
  const render = (values: object): Promise<Fields> => renderWith(HELM, values);
  let defaults: Fields = {};
  before(async () => void (defaults = await render({})));

  for (const [values, changes] of CASES)
    it(`changes what it is for, and nothing else: ${JSON.stringify(values)}`, async () =>
      assert.deepEqual(changesOf(defaults, await render(values)), changes));

  for (const [values, objects] of OBJECTS)
    it(`leaves out ${objects.join(", ")}: ${JSON.stringify(values)}`, async () => {
      const fields = await render(values);
      assert.ok(!Object.keys(fields).some((path) => objects.some((object) => path.startsWith(`${object} `))));
      const others = Object.entries(defaults).filter(
        ([path]) => !objects.some((object) => path.startsWith(`${object} `)),
      );
      assert.deepEqual(fields, Object.fromEntries(others));
    });

  it("adds the status page, which never listens on the node's network", async () => {
    const added = changesOf(
      defaults,
      await render({ statusPage: { enabled: true, resources: { limits: { cpu: 1 } } } }),
    );
    const own = (kind: string): string => `${kind} zonewise-status`;
    const kinds = ["Deployment", "Role", "RoleBinding", "ServiceAccount"];
    assert.deepEqual(
      [...new Set(Object.keys(added).map((path) => path.split(" ").slice(0, 2).join(" ")))].toSorted(),
      kinds.map(own),
    );
    assert.equal(added[`${own("Deployment")} spec.template.${CONTAINER}.resources.limits.cpu`], 1);
    assert.equal(added[`${own("RoleBinding")} subjects.0.namespace`], NAMESPACE);
    const onNode = await render({ statusPage: { enabled: true }, hostNetwork: true });
    assert.equal(onNode[`${own("Deployment")} spec.template.spec.hostNetwork`], undefined);
    assert.equal(onNode[`${own("Deployment")} spec.template.${CONTAINER}.env.1.value`], '"127.0.0.1"');
  });

  it("gives common labels to every object, and takes none of its own away", async () => {
    const added = changesOf(
      defaults,
      await render({ global: { commonLabels: { team: "a", "app.kubernetes.io/name": "other" } } }),
    );
    const paths = Object.entries(added).filter(([path]) => path.endsWith(" metadata.labels.team"));
    const objects = new Set(Object.keys(defaults).map((path) => path.split(" ").slice(0, 2).join(" ")));
    assert.equal(paths.length, objects.size);
    const functions = Object.keys(added).filter((path) =>
      / (?:zonewise-functions|rollout-operator) metadata\.labels\.app/.test(path),
    );
    assert.ok(
      !functions.some((path) => path.startsWith("Service ")),
      "the Service keeps the label that the monitor selects",
    );
  });

  it("names the certificate's Secret everywhere", async () => {
    const fields = await render({ webhooks: { selfSignedCertSecretName: "certificate" } });
    assert.deepEqual(
      Object.entries(fields).filter(([path, value]) => path.includes(SECRET) || value.includes(SECRET)),
      [],
    );
    const added = changesOf(defaults, fields);
    for (const [path, value] of Object.entries(variables("SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME", "certificate")))
      assert.equal(added[path], value);
    assert.equal(fields["Secret certificate kind"], '"Secret"');
  });

  it("leaves certificates to others", async () => {
    const fields = await render({ certificates: { enabled: false }, webhooks: { selfSignedCertSecretName: "tls" } });
    assert.deepEqual(
      Object.keys(fields).filter((path) => /^(?:Secret|CronJob zonewise-certificates|ClusterRole) /.test(path)),
      [],
    );
    assert.equal(fields[`${DEPLOYMENT} spec.template.spec.volumes.0.secret.secretName`], '"tls"');
    assert.equal(fields[`${RECONCILER} ${JOB}.${CONTAINER}.env.4.name`], '"SERVER_TLS_SELF_SIGNED_CERT_ENABLED"');
  });

  for (const [kind, key, endpoints] of [
    ["ServiceMonitor", "serviceMonitor", "endpoints"],
    ["PodMonitor", "podMonitor", "podMetricsEndpoints"],
  ] as const)
    it(`${key}: each of its values`, async () => {
      const relabelings = [{ targetLabel: "cluster", replacement: "a" }];
      const enabled = {
        enabled: true,
        interval: "15s",
        scrapeTimeout: "5s",
        labels: { release: "p" },
        annotations: { a: "b" },
        relabelings,
      };
      const base = await render({ [key]: { enabled: true } });
      const added = changesOf(base, await render({ [key]: { ...enabled, namespace: "metrics" } }));
      const at = `${kind} zonewise-functions`;
      assert.deepEqual(added, {
        [`${at} metadata.namespace`]: "metrics",
        [`${at} metadata.labels.release`]: "p",
        [`${at} metadata.annotations.a`]: "b",
        [`${at} spec.namespaceSelector.matchNames.0`]: NAMESPACE,
        [`${at} spec.${endpoints}.0.interval`]: "15s",
        [`${at} spec.${endpoints}.0.scrapeTimeout`]: "5s",
        [`${at} spec.${endpoints}.0.relabelings.1.targetLabel`]: "cluster",
        [`${at} spec.${endpoints}.0.relabelings.1.replacement`]: "a",
      });
      const any = await render({ [key]: { enabled: true, namespace: "metrics", namespaceSelector: { any: true } } });
      assert.equal(any[`${at} spec.namespaceSelector.any`], "true");
    });

  it("places the alerts and the dashboard", async () => {
    const placed = { enabled: true, namespace: "metrics", labels: { team: "a" }, annotations: { a: "b" } };
    const base = await render({ prometheusRule: { enabled: true }, dashboards: { enabled: true } });
    const added = changesOf(base, await render({ prometheusRule: placed, dashboards: placed }));
    const expected = ["PrometheusRule zonewise", "ConfigMap zonewise-dashboard"].flatMap((at) => [
      [`${at} metadata.namespace`, "metrics"],
      [`${at} metadata.labels.team`, "a"],
      [`${at} metadata.annotations.a`, "b"],
    ]);
    assert.deepEqual(added, Object.fromEntries(expected));
  });

  it("lets the reconciler read Secrets in each namespace", async () => {
    const names = ["token", "login"];
    const { text } = await HELM.template(NAMESPACE, {
      prometheusSecrets: { names, namespaces: ["cell-a", "cell-b"] },
    });
    const found = parseManifests(text).filter(({ metadata }) => metadata.name === "zonewise-prometheus-secrets");
    const all = [
      [{ apiGroups: [""], resources: ["secrets"], resourceNames: names, verbs: ["get"] }],
      [{ kind: "ServiceAccount", name: "zonewise-reconciler", namespace: NAMESPACE }],
    ];
    const partsOf = ({ rules, subjects }: { rules?: unknown; subjects?: unknown }): unknown => rules ?? subjects;
    assert.deepEqual(
      found.map((one) => [one.metadata.namespace, partsOf(one as object)]),
      all.flatMap((parts) => ["cell-a", "cell-b"].map((namespace) => [namespace, parts])),
    );
  });
});
