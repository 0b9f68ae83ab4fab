/** The manifests: all parse, everything that they name exists, and the policies of J02 hold with our decisions. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import { VARIABLES } from "../../infra/variables.ts";

const ROOT = join(import.meta.dirname, "../..");

/** Whatever a manifest holds, read by paths. */
interface Manifest {
  readonly kind?: string;
  readonly metadata?: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly [key: string]: unknown;
}

interface Container {
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string }[];
  readonly securityContext?: object;
}

const files = globSync("{infra/manifests,knative,examples}/**/*.yaml", { cwd: ROOT }).toSorted();

function read(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(join(ROOT, file), "utf8")).map((document) => {
    assert.deepEqual(document.errors, [], file);
    return document.toJS() as Manifest;
  });
}

function find(file: string, kind: string, name: string): Manifest {
  return (
    read(`infra/manifests/${file}`).find((one) => one.kind === kind && one.metadata?.name === name) ??
    assert.fail(`${kind} ${name} in ${file}`)
  );
}

/** Everything below `value` that `take` wants. */
function collect<T>(value: unknown, take: (object: Readonly<Record<string, unknown>>) => T | undefined): T[] {
  if (typeof value !== "object" || value === null) return [];
  const own = take(value as Readonly<Record<string, unknown>>);
  return [...(own === undefined ? [] : [own]), ...Object.values(value).flatMap((below) => collect(below, take))];
}

const containersOf = (manifest: Manifest): Container[] =>
  collect(manifest, (object) => object["containers"] as Container[] | undefined).flat();

/** What the image holds: the entries that are built. */
const built = readFileSync(join(ROOT, "infra/build.ts"), "utf8");
/** Of functions-framework, not ours. */
const FRAMEWORK = new Set(["FUNCTION_TARGET", "FUNCTION_SOURCE", "FUNCTION_SIGNATURE_TYPE"]);

describe("every manifest", () => {
  for (const file of files) {
    it(`${file} parses, and names only what exists`, () => {
      for (const manifest of read(file)) {
        const { resources = [], components = [] } = manifest as unknown as { resources?: unknown; components?: unknown };
        if (file.endsWith("kustomization.yaml")) {
          const beside = globSync("*.yaml", { cwd: join(ROOT, dirname(file)) }).filter((name) => name !== "kustomization.yaml");
          assert.deepEqual(
            beside.filter((name) => ![resources].flat().includes(name)),
            [],
            "files that nobody applies",
          );
          for (const named of [resources, components].flat() as string[])
            assert.ok(existsSync(join(ROOT, dirname(file), named)), `${file}: ${named}`);
        }
        if (file.startsWith("examples/")) continue;
        for (const { args = [], env = [], securityContext } of containersOf(manifest)) {
          const unknown = env.map(({ name }) => name).filter((name) => !(name in VARIABLES) && !FRAMEWORK.has(name));
          assert.deepEqual(unknown, [], "variables that nobody reads");
          const entry = args.find((arg) => !arg.startsWith("--")) ?? "";
          const source = entry.replace(/^dist\/(.*)\.js$/, "$1.ts");
          assert.ok(source === entry ? existsSync(join(ROOT, entry)) : built.includes(`"${source}"`), entry);
          assert.partialDeepStrictEqual(securityContext, {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          });
        }
      }
    });
  }
});

const STATEFUL_SETS = {
  operations: ["UPDATE"],
  apiGroups: ["apps"],
  apiVersions: ["v1"],
  resources: ["statefulsets", "statefulsets/scale"],
};
const HOOKS = [
  { name: "no-downscale", kind: "Validating", sideEffects: "None", rule: STATEFUL_SETS },
  { name: "prepare-downscale", kind: "Mutating", sideEffects: "NoneOnDryRun", rule: STATEFUL_SETS },
  {
    name: "pod-eviction",
    kind: "Validating",
    sideEffects: "NoneOnDryRun",
    rule: { operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods/eviction"] },
  },
  {
    name: "zpdb-validation",
    kind: "Validating",
    sideEffects: "None",
    rule: {
      operations: ["CREATE", "UPDATE"],
      apiGroups: ["rollout-operator.grafana.com"],
      apiVersions: ["v1"],
      resources: ["zoneawarepoddisruptionbudgets"],
    },
  },
];

describe("on Knative", () => {
  const knative = ["knative/services.yaml", "knative/events/services.yaml"].flatMap(read);

  it("every function is exported by its target's name", async () => {
    const targets = knative.flatMap((one) =>
      collect(one, (object) => (object["name"] === "FUNCTION_TARGET" ? String(object["value"]) : undefined)),
    );
    const exported = Object.keys(await import("../../functions/index.ts"));
    assert.deepEqual(
      targets.filter((target) => !exported.includes(target)),
      [],
    );
    assert.equal(targets.length, 5);
  });

  it("every webhook has a Service of its own that never scales to zero, and a host in the certificate", () => {
    const [names] = [knative.map(({ metadata }) => metadata?.name)];
    const text = readFileSync(join(ROOT, "knative/kustomization.yaml"), "utf8");
    const mapped = read("knative/domain-mappings.yaml").map(({ metadata }) => metadata?.name);
    for (const { name } of HOOKS) {
      assert.ok(names.includes(name) && mapped.includes(`${name}.zonewise.example.com`));
      assert.ok(text.includes(`https://${name}.zonewise.example.com/admission/${name}`));
    }
    const hosts = [...text.matchAll(/value: (.*zonewise\.example\.com)$/gm)].map(([, hosts]) => hosts?.split(","));
    assert.deepEqual(hosts, [mapped, mapped]);
    const scales = collect(read("knative/services.yaml"), (object) => object["autoscaling.knative.dev/min-scale"] as string | undefined);
    assert.deepEqual(scales, ["2", "2", "2", "2"]);
  });
});

describe("J02 the policies", () => {
  for (const { name, kind, sideEffects, rule } of HOOKS) {
    it(`${name}: labels, service, path, rules, side effects, failing closed`, () => {
      const hook = find(`webhooks/${name}.yaml`, `${kind}WebhookConfiguration`, `${name}-zonewise`);
      assert.deepEqual(hook.metadata?.labels, { "grafana.com/namespace": "zonewise", "grafana.com/inject-rollout-operator-ca": "true" });
      assert.deepEqual(hook["webhooks"], [
        {
          name: `${name}-zonewise.grafana.com`,
          admissionReviewVersions: ["v1"],
          clientConfig: { service: { namespace: "zonewise", name: "rollout-operator", port: 443, path: `/admission/${name}` } },
          failurePolicy: "Fail",
          matchPolicy: "Equivalent",
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "zonewise" } },
          rules: [{ ...rule, scope: "Namespaced" }],
          sideEffects,
          timeoutSeconds: 10,
        },
      ]);
    });
  }

  it("13.7 no webhook can keep the functions from being scaled up", () => {
    const guarded = HOOKS.flatMap(({ rule }) => rule.resources).filter((resource) => /deployments|replicasets|pods$/.test(resource));
    assert.deepEqual(guarded, []);
  });

  it("the Service leads from 443 to the port of TLS, of pods that the Deployment has", () => {
    const service = find("functions/service.yaml", "Service", "rollout-operator")["spec"] as { selector: object; ports: object[] };
    assert.deepEqual(service.ports, [{ name: "https", port: 443, targetPort: "https", protocol: "TCP" }]);
    const { spec } = find("functions/deployment.yaml", "Deployment", "zonewise-functions") as unknown as {
      spec: {
        replicas: number;
        strategy: object;
        selector: { matchLabels: object };
        template: { metadata: { labels: object }; spec: object };
      };
    };
    assert.deepEqual([spec.selector.matchLabels, spec.template.metadata.labels], [service.selector, service.selector]);
    assert.ok(spec.replicas >= 2);
    // Unlike the original, of which two must never run: here two always do.
    assert.deepEqual(spec.strategy, { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } });
    const ports = collect(spec, (object) => object["containerPort"] as number | undefined);
    assert.deepEqual(ports, [8443, 8001]);
  });

  it("the certificate job may write only its own Secret, and configurations only be listed and patched", () => {
    const rules = find("certificates/rbac.yaml", "Role", "zonewise-certificates")["rules"];
    const secret = { apiGroups: [""], resources: ["secrets"] };
    const own = VARIABLES.SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME.default;
    assert.deepEqual(rules, [
      { ...secret, verbs: ["create"] },
      { ...secret, resourceNames: [own], verbs: ["get", "update"] },
    ]);
    const { rules: forCluster } = find("certificates/rbac.yaml", "ClusterRole", "zonewise-webhook-ca.zonewise") as unknown as {
      rules: { verbs: string[] }[];
    };
    assert.deepEqual(
      forCluster.map(({ verbs }) => verbs),
      [["list", "patch"]],
    );
  });

  it("the functions mount the Secret that the job makes", () => {
    const [name] = collect(
      find("functions/deployment.yaml", "Deployment", "zonewise-functions"),
      (object) => object["secretName"] as string | undefined,
    );
    assert.equal(name, VARIABLES.SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME.default);
  });

  it("the ReplicaTemplate has what an autoscaler asks for", () => {
    const { spec } = find(
      "crds/replicatemplates.yaml",
      "CustomResourceDefinition",
      "replicatemplates.rollout-operator.grafana.com",
    ) as unknown as {
      spec: {
        versions: { subresources: object; schema: { openAPIV3Schema: { properties: { spec: { properties: { replicas: object } } } } } }[];
      };
    };
    const [version] = spec.versions;
    assert.deepEqual(version?.subresources, {
      status: {},
      scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas", labelSelectorPath: ".spec.labelSelector" },
    });
    const { description: _description, ...replicas } = version?.schema.openAPIV3Schema.properties.spec.properties.replicas as Record<
      string,
      unknown
    >;
    assert.deepEqual(replicas, { type: "integer", minimum: 0, default: 1 });
  });
});
