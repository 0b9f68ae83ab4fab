/** The policies of J02 hold with our decisions. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VARIABLES } from "../../infra/config/variables.ts";
import { collect, find, HOOKS, type Manifest, read } from "./manifests.ts";

interface CronJobSpec {
  readonly schedule: string;
  readonly concurrencyPolicy: string;
  readonly jobTemplate: {
    readonly spec: {
      readonly activeDeadlineSeconds: number;
      readonly backoffLimit: number;
      readonly podFailurePolicy?: object;
      readonly template: { readonly spec: { readonly terminationGracePeriodSeconds?: number } };
    };
  };
}

interface ClusterBinding extends Manifest {
  readonly roleRef: { readonly name: string };
  readonly subjects: readonly { readonly name: string }[];
}

/** What the ClusterRoles that are bound to a ServiceAccount let it do with webhook configurations. */
function verbsOnConfigurations(account: string): string[] {
  const file = "certificates/rbac.yaml";
  const bindings = read(`infra/manifests/${file}`).filter(
    ({ kind }) => kind === "ClusterRoleBinding",
  ) as unknown as ClusterBinding[];
  const bound = bindings.filter(({ subjects }) => subjects.some(({ name }) => name === account));
  const rules = bound.flatMap(
    ({ roleRef }) => find(file, "ClusterRole", roleRef.name)["rules"] as { resources: string[]; verbs: string[] }[],
  );
  for (const { resources } of rules)
    assert.deepEqual(resources, ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]);
  return rules.flatMap(({ verbs }) => verbs).toSorted();
}

describe("J02 the policies", () => {
  for (const hook of HOOKS) {
    const {
      name,
      kind,
      path = `/admission/${name}`,
      sideEffects,
      rule,
      failurePolicy = "Fail",
      sentOnlyIf,
      reinvocationPolicy,
      more = [],
    } = hook;
    it(`${name}: labels, service, path, rules, side effects, failing ${failurePolicy === "Fail" ? "closed" : "open"}`, () => {
      const hook = find(`webhooks/${name}.yaml`, `${kind}WebhookConfiguration`, `${name}-zonewise`);
      assert.deepEqual(hook.metadata?.labels, {
        "grafana.com/namespace": "zonewise",
        "grafana.com/inject-rollout-operator-ca": "true",
      });
      const [{ matchConditions, ...entry } = {}, ...others] = hook["webhooks"] as {
        matchConditions?: { name: string }[];
      }[];
      assert.deepEqual(
        matchConditions?.map(({ name }) => name),
        sentOnlyIf,
      );
      assert.deepEqual(
        [entry, ...others],
        [
          {
            name: `${name}-zonewise.grafana.com`,
            admissionReviewVersions: ["v1"],
            clientConfig: { service: { namespace: "zonewise", name: "rollout-operator", port: 443, path } },
            failurePolicy,
            matchPolicy: "Equivalent",
            namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "zonewise" } },
            rules: [rule, ...more].map((one) => ({ ...one, scope: "Namespaced" })),
            sideEffects,
            ...(reinvocationPolicy && { reinvocationPolicy }),
            timeoutSeconds: 10,
          },
        ],
      );
    });
  }

  it("13.7 no webhook can keep the functions from being scaled up", () => {
    const guarded = HOOKS.filter(({ rule }) =>
      rule.resources.some((resource) => /deployments|replicasets|pods$/.test(resource)),
    );
    assert.deepEqual(
      guarded.map(({ sentOnlyIf }) => sentOnlyIf),
      [["shrinks"]],
    );
  });

  it("the Service leads from 443 to the port of TLS, of pods that the Deployment has", () => {
    const service = find("functions/service.yaml", "Service", "rollout-operator")["spec"] as {
      selector: object;
      ports: object[];
    };
    assert.deepEqual(service.ports, [
      { name: "https", port: 443, targetPort: "https", protocol: "TCP" },
      { name: "http-metrics", port: 8001, targetPort: "http-metrics", protocol: "TCP" },
    ]);
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
    assert.deepEqual(spec.strategy, { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } });
    const ports = collect(spec, (object) => object["containerPort"] as number | undefined);
    assert.deepEqual(ports, [8443, 8001]);
  });

  for (const [file, name] of [
    ["reconciler/cronjob.yaml", "zonewise-reconciler"],
    ["certificates/cronjob.yaml", "zonewise-certificates"],
  ] as const) {
    it(`${name}: a run whose pod is stuck on a lost node keeps none of the later runs from starting, and each run has a deadline`, () => {
      const { concurrencyPolicy, jobTemplate } = find(file, "CronJob", name)["spec"] as CronJobSpec;
      assert.equal(concurrencyPolicy, "Allow");
      assert.ok(jobTemplate.spec.activeDeadlineSeconds > 0);
    });
  }

  it("at most three runs of the reconciler are there at once, however they end, each with a successor within its time and time for the end of its last step", () => {
    const { schedule, jobTemplate } = find("reconciler/cronjob.yaml", "CronJob", "zonewise-reconciler")[
      "spec"
    ] as CronJobSpec;
    const { activeDeadlineSeconds, template } = jobTemplate.spec;
    const everyMinute = 60;
    const budget = parseInt(VARIABLES.RECONCILE_TIME_BUDGET.default, 10);
    assert.equal(schedule, "* * * * *");
    const startingDeadline = 30;
    assert.ok(budget >= everyMinute + startingDeadline + 15, "a run that starts late still finds the one before");
    assert.ok(activeDeadlineSeconds >= budget + 15);
    assert.ok(activeDeadlineSeconds + (template.spec.terminationGracePeriodSeconds ?? 30) < 3 * everyMinute);
  });

  it("a run of the reconciler that is killed has a successor before the next minute, and one that fails by itself has none", () => {
    const { jobTemplate } = find("reconciler/cronjob.yaml", "CronJob", "zonewise-reconciler")["spec"] as CronJobSpec;
    const { backoffLimit, podFailurePolicy } = jobTemplate.spec;
    assert.equal(backoffLimit, 1);
    assert.deepEqual(podFailurePolicy, {
      rules: [{ action: "FailJob", onExitCodes: { operator: "In", values: [1, 2] } }],
    });
  });

  it("the certificate job may write only its own Secret, and configurations only be listed and patched; the reconciler watches them, too", () => {
    const rules = find("certificates/rbac.yaml", "Role", "zonewise-certificates")["rules"];
    const secret = { apiGroups: [""], resources: ["secrets"] };
    const own = VARIABLES.SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME.default;
    assert.deepEqual(rules, [
      { ...secret, verbs: ["create"] },
      { ...secret, resourceNames: [own], verbs: ["get", "update"] },
    ]);
    assert.deepEqual(verbsOnConfigurations("zonewise-certificates"), ["list", "patch"]);
    assert.deepEqual(verbsOnConfigurations("zonewise-reconciler"), ["list", "patch", "watch"]);
  });

  it("the functions mount the Secret that the job makes", () => {
    const [name] = collect(
      find("functions/deployment.yaml", "Deployment", "zonewise-functions"),
      (object) => object["secretName"] as string | undefined,
    );
    assert.equal(name, VARIABLES.SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME.default);
  });

  it("the ReplicaTemplate has the fields that an autoscaler needs", () => {
    const { spec } = find(
      "crds/replicatemplates.yaml",
      "CustomResourceDefinition",
      "replicatemplates.rollout-operator.grafana.com",
    ) as unknown as {
      spec: {
        versions: {
          subresources: object;
          schema: { openAPIV3Schema: { properties: { spec: { properties: { replicas: object } } } } };
        }[];
      };
    };
    const [version] = spec.versions;
    assert.deepEqual(version?.subresources, {
      status: {},
      scale: {
        specReplicasPath: ".spec.replicas",
        statusReplicasPath: ".status.replicas",
        labelSelectorPath: ".spec.labelSelector",
      },
    });
    const { description: _description, ...replicas } = version?.schema.openAPIV3Schema.properties.spec.properties
      .replicas as Record<string, unknown>;
    assert.deepEqual(replicas, { type: "integer", minimum: 0, default: 1 });
  });
});
