/** What each engine says of our objects by the files that are shipped for it: all say the same. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findEngineFiles, withRules } from "../../../infra/gitops.ts";
import { valueAt } from "../../emulator/table/columns.ts";
import { ROOT } from "../manifests.ts";
import { engineFile, evaluate, runLua, textOf } from "./evaluators.ts";
import { type Case, CASES, type Health, OUTSIDERS, rolloutGroup, type Target } from "./objects.ts";

const KINDS = [...new Set(CASES.map(([, { kind }]) => kind))];
const isHealthy = (health: Health): boolean => health === "Healthy";

describe("the engines' files", () => {
  for (const file of findEngineFiles(ROOT))
    it(`${file} has the rules as they are: npm run gitops`, () =>
      assert.equal(textOf(file), withRules(ROOT, textOf(file))));

  it("asks each engine about every kind", () => assert.equal(KINDS.length, 6));
});

const pluralOf = (kind: string): string => `${kind.toLowerCase().replace(/y$/, "ie")}s`;

/** One test a case: a name as an engine would say it. */
function each(cases: readonly Case[], judge: (object: Target, health: Health) => Promise<void> | void): void {
  for (const [name, object, health] of cases)
    it(`of ${name} is ${health}`, async () => {
      await judge(object, health);
    });
}

describe("the health by Argo CD's Lua", () => {
  const [map] = engineFile("argocd-cm.yaml");
  const scripts = map?.["data"] as Readonly<Record<string, string>>;
  each([...CASES, ...OUTSIDERS], async (object, health) => {
    const key = `resource.customizations.health.${object.apiVersion.split("/")[0]}_${object.kind}`;
    const script = scripts[key] ?? assert.fail(`no ${key}`);
    const said = (await runLua(`function judge() ${script}\nend`, { obj: object }, "return judge()")) as {
      status: string;
      message: string;
    };
    assert.equal(said.status, health);
    assert.equal(typeof said.message, "string");
  });
});

describe("the health by Karmada's Lua", () => {
  const files = engineFile("karmada.yaml");
  const scriptOf = ({ kind }: Target, operation: string): string => {
    const file = files.find(({ spec }) => (spec as { target: Target }).target.kind === kind);
    return String(valueAt(file, `.spec.customizations.${operation}.luaScript`));
  };
  each([...CASES, ...OUTSIDERS], async (object, health) => {
    const script = scriptOf(object, "healthInterpretation");
    assert.equal(await runLua(script, { observed: object }, "return InterpretHealth(observed)"), isHealthy(health));
  });

  const member = (clusterName: string, object: Target, template = 5) => ({ clusterName, object, template });
  const ready = rolloutGroup({});
  const degraded = CASES.find(([name]) => name === "a group that has stalled")?.[1] ?? ready;
  for (const [name, members, phase, message] of [
    ["ready in all", [member("a", ready), member("b", ready)], "Ready", /^2 of 2 clusters are ready$/],
    ["ready in one, by an older template in another", [member("a", ready), member("b", ready, 4)], "Waiting", /for b$/],
    ["stalled in one", [member("a", ready), member("b", degraded)], "Stalled", /stalled in b: said/],
    ["nowhere yet", [], "Waiting", /^0 of 0/],
  ] as const)
    it(`of a group that is ${name}, over all members, is ${phase}`, async () => {
      const reflect = scriptOf(ready, "statusReflection");
      const statusItems = await Promise.all(
        members.map(async ({ clusterName, object, template }) => {
          const metadata = {
            ...(object["metadata"] as object),
            annotations: { "resourcetemplate.karmada.io/generation": String(template) },
          };
          const observed = { ...object, metadata };
          return { clusterName, status: await runLua(reflect, { observed }, "return ReflectStatus(observed)") };
        }),
      );
      const desired = { ...ready, metadata: { generation: 5 } };
      const globals = { desired, statusItems };
      const call = "return AggregateStatus(desired, statusItems).status";
      const status = (await runLua(scriptOf(ready, "statusAggregation"), globals, call)) as Record<string, string>;
      assert.equal(status["phase"], phase);
      assert.match(status["message"] ?? "", message);
    });

  for (const [name, annotations, observed, expected] of [
    ["of a zone that follows", { "grafana.com/rollout-downscale-leader": "a" }, {}, [9, 0]],
    ["of no other zone", {}, {}, [1, 0]],
    ["of a PhasedRollout's partition", {}, { "sts.plus/phasedRollout": "guard" }, [1, 4]],
  ] as const)
    it(`keeps what Zonewise wrote in a member: ${name}`, async () => {
      const set = (replicas: number, partition: number, has: object) => ({
        metadata: { annotations: has },
        spec: { replicas, updateStrategy: { rollingUpdate: { partition } } },
      });
      const script = scriptOf({ apiVersion: "apps/v1", kind: "StatefulSet" }, "retention");
      const globals = { desired: set(1, 0, annotations), observed: set(9, 4, observed) };
      const kept = await runLua(script, globals, "return Retain(desired, observed).spec");
      const { replicas, updateStrategy } = kept as ReturnType<typeof set>["spec"];
      assert.deepEqual([replicas, updateStrategy.rollingUpdate.partition], expected);
    });
});

describe("the health by Sveltos' Lua", () => {
  const files = engineFile("sveltos.yaml");
  const find = (kind: string) => files.find((file) => file.kind === kind)?.["spec"];
  const { validateHealths } = find("ClusterProfile") as { validateHealths: readonly Record<string, string>[] };
  each([...CASES, ...OUTSIDERS], async (object, health) => {
    const check = validateHealths.find(({ kind }) => kind === object.kind) ?? assert.fail("no check");
    assert.equal(`${check["group"]}/${check["version"]}`, object.apiVersion);
    const said = await runLua(check["script"] ?? "", { obj: object }, "return evaluate()");
    assert.equal((said as { healthy: boolean }).healthy, isHealthy(health));
  });

  const groups = CASES.filter(([, { kind }]) => kind === "RolloutGroup");
  it("lists every group with its status in the HealthCheck", async () => {
    const { evaluateHealth } = find("HealthCheck") as { evaluateHealth: string };
    const resources = groups.map(([, object]) => object);
    const said = (await runLua(evaluateHealth, { resources }, "return evaluate()")) as {
      resources: { status: string }[];
    };
    assert.deepEqual(
      said.resources.map(({ status }) => status),
      groups.map(([, , health]) => health),
    );
  });

  it("has an event for a group that has stalled, and for no other", async () => {
    const { resourceSelectors } = find("EventSource") as { resourceSelectors: readonly { evaluate: string }[] };
    for (const [name, object, health] of groups) {
      const said = await runLua(resourceSelectors[0]?.evaluate ?? "", { obj: object }, "return evaluate()");
      assert.equal((said as { matching: boolean }).matching, health === "Degraded", name);
    }
  });
});

describe("the health by Flux's CEL", () => {
  const [manifest] = engineFile("flux-health.yaml");
  const { healthCheckExprs } = manifest?.["spec"] as { healthCheckExprs: Readonly<Record<string, string>>[] };
  const IN_FLUX = { Healthy: "Current", Degraded: "Failed", Progressing: "InProgress", Suspended: "InProgress" };

  each(CASES, ({ kind, apiVersion, metadata, spec, status }, health) => {
    const { inProgress, failed, current } =
      healthCheckExprs.find((one) => one["kind"] === kind && one["apiVersion"] === apiVersion) ?? assert.fail(kind);
    const holds = (expression: string | undefined): boolean =>
      expression !== undefined && evaluate(expression, { metadata, spec, status }) === true;
    // In Flux's order.
    const said = holds(inProgress)
      ? "InProgress"
      : holds(failed)
        ? "Failed"
        : holds(current)
          ? "Current"
          : "InProgress";
    assert.equal(said, IN_FLUX[health]);
  });
});

describe("the health by the rules of Open Cluster Management", () => {
  interface Configuration {
    readonly resourceIdentifier: { readonly group: string; readonly resource: string };
    /** The API refuses plain texts: `CelConditionExpressions` of open-cluster-management.io/api/work/v1. */
    readonly conditionRules: readonly {
      readonly condition: string;
      readonly celExpressions: readonly { readonly expression: string }[];
    }[];
    readonly feedbackRules: readonly {
      readonly jsonPaths: readonly { readonly name: string; readonly path: string }[];
    }[];
  }
  const set = engineFile("open-cluster-management.yaml").find(({ kind }) => kind === "ManifestWorkReplicaSet");
  const configurations = valueAt(set, ".spec.manifestWorkTemplate.manifestConfigs") as readonly Configuration[];
  const configurationOf = ({ kind }: Pick<Target, "kind">): Configuration =>
    configurations.find(({ resourceIdentifier }) => resourceIdentifier.resource === pluralOf(kind)) ??
    assert.fail(`no rules for ${kind}`);
  const IN_OCM = { Healthy: "Succeeded", Degraded: "Failed", Progressing: "Progressing", Suspended: "Progressing" };

  each(CASES, (object, health): void => {
    const { conditionRules } = configurationOf(object);
    const is = (condition: string): boolean =>
      conditionRules.some(
        (rule) =>
          rule.condition === condition &&
          rule.celExpressions.every(({ expression }) => evaluate(expression, { object }) === true),
      );
    if (object.kind !== "RolloutGroup") return assert.equal(is("Healthy"), isHealthy(health));
    // As a ManifestWorkReplicaSet reads the two conditions of a ManifestWork.
    const said = is("Progressing") ? (is("Degraded") ? "Failed" : "Progressing") : "Succeeded";
    assert.equal(said, IN_OCM[health]);
  });

  it("lets the rollout of clusters wait by the RolloutGroup alone: one manifest sets these conditions", () => {
    const setters = configurations.filter(({ conditionRules }) =>
      conditionRules.some(({ condition }) => condition === "Progressing" || condition === "Degraded"),
    );
    assert.deepEqual(
      setters.map(({ resourceIdentifier }) => resourceIdentifier.resource),
      ["rolloutgroups"],
    );
  });

  it("says of objects that lack any field of their status that they are not done, and has no error", () => {
    for (const [name, object] of CASES) {
      const status = object["status"] as Record<string, unknown>;
      for (const field of ["conditions", "nodes", "observedGeneration"]) {
        const { [field]: _, ...rest } = status;
        if (!(field in status)) continue;
        for (const { celExpressions, condition } of configurationOf(object).conditionRules)
          for (const { expression } of celExpressions)
            assert.equal(
              evaluate(expression, { object: { ...object, status: rest } }),
              condition === "Progressing",
              `${name} without ${field}: ${condition}`,
            );
      }
    }
  });

  for (const kind of KINDS)
    it(`feeds fields of ${kind} back that a status has, each a single value`, () => {
      const paths = configurationOf({ kind }).feedbackRules.flatMap(({ jsonPaths }) => jsonPaths);
      const objects = CASES.filter(([, object]) => object.kind === kind).map(([, object]) => object);
      for (const { name, path } of paths) {
        const values = objects.map((object) => valueAt(object, path)).filter((value) => value !== undefined);
        assert.ok(values.length > 0 || name === "partition", `${path} leads nowhere`);
        for (const value of values) assert.notEqual(typeof value, "object", path);
      }
    });
});
