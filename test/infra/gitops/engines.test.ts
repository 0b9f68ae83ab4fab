/** The same statuses, judged by the libraries that the engines themselves call: `test/plane/build engines`. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { plainText } from "../../emulator/objects.ts";
import { valueAt } from "../../emulator/table/columns.ts";
import { engineFile } from "./evaluators.ts";
import { CASES, type Health, OUTSIDERS, type Target } from "./objects.ts";

const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
const engines = join(cache, "zonewise-plane/bin/engines");

function ask(questions: readonly object[]): string[] {
  const { status, stdout, stderr } = spawnSync(engines, { input: JSON.stringify(questions), encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout) as string[];
}

/** Asks one question a case, and compares with what is expected of its health. */
function compare(
  cases: typeof CASES,
  question: (object: Target) => object,
  expected: (health: Health, name: string) => string,
): void {
  const answers = ask(cases.map(([, object]) => ({ object, ...question(object) })));
  const said = cases.map(([name], index) => `${name}: ${answers[index]}`);
  assert.deepEqual(
    said,
    cases.map(([name, , health]) => `${name}: ${expected(health, name)}`),
  );
}

describe("the engines' own libraries", { skip: !existsSync(engines) && "test/plane/build engines" }, () => {
  it("run Argo CD's Lua to the same health", () => {
    const scripts = engineFile("argocd-cm.yaml")[0]?.["data"] as Readonly<Record<string, string>>;
    const scriptOf = ({ apiVersion, kind }: Target): string =>
      scripts[`resource.customizations.health.${apiVersion.split("/")[0]}_${kind}`] ?? "";
    compare(
      [...CASES, ...OUTSIDERS],
      (object) => ({
        engine: "lua",
        script: `function judge() ${scriptOf(object)}\nend
        function ask(given) obj = given; return judge().status end`,
      }),
      (health) => health,
    );
  });

  it("run Karmada's Lua to the same health", () => {
    const files = engineFile("karmada.yaml");
    const scriptOf = ({ kind }: Target) =>
      valueAt(
        files.find((file) => valueAt(file, ".spec.target.kind") === kind),
        ".spec.customizations.healthInterpretation.luaScript",
      );
    compare(
      CASES,
      (object) => ({ engine: "lua", script: `${String(scriptOf(object))}\nask = InterpretHealth` }),
      (health) => String(health === "Healthy"),
    );
  });

  it("run Sveltos' Lua to the same health", () => {
    const profile = engineFile("sveltos.yaml").find(({ kind }) => kind === "ClusterProfile");
    const checks = valueAt(profile, ".spec.validateHealths") as readonly { kind: string; script: string }[];
    compare(
      CASES,
      ({ kind }) => ({
        engine: "lua",
        script: `${checks.find((one) => one.kind === kind)?.script}
          function ask(given) obj = given; return evaluate().healthy end`,
      }),
      (health) => String(health === "Healthy"),
    );
  });

  it("evaluate Flux's expressions to the same health", () => {
    const exprs = valueAt(engineFile("flux-health.yaml")[0], ".spec.healthCheckExprs") as readonly { kind: string }[];
    const IN_FLUX = { Healthy: "Current", Degraded: "Failed", Progressing: "InProgress", Suspended: "InProgress" };
    compare(
      CASES,
      ({ kind }) => ({ engine: "flux", ...exprs.find((one) => one.kind === kind) }),
      (health) => IN_FLUX[health],
    );
  });

  it("find by JSONPath what Open Cluster Management feeds back", () => {
    const set = engineFile("open-cluster-management.yaml").find(({ kind }) => kind === "ManifestWorkReplicaSet");
    const rules = valueAt(set, ".spec.manifestWorkTemplate.manifestConfigs") as readonly {
      resourceIdentifier: { resource: string };
      feedbackRules: readonly { jsonPaths: readonly { path: string }[] }[];
    }[];
    const questions = CASES.flatMap(([, object]) =>
      rules
        .filter(({ resourceIdentifier: { resource } }) => resource.startsWith(object.kind.toLowerCase().slice(0, -1)))
        .flatMap(({ feedbackRules }) => feedbackRules.flatMap(({ jsonPaths }) => jsonPaths))
        .map(({ path }) => ({ engine: "jsonpath", object, path })),
    );
    assert.ok(questions.length > CASES.length);
    const expected = questions.map(({ object, path }) => plainText(valueAt(object, path)));
    assert.deepEqual(ask(questions), expected);
  });

  it("tell Rancher Fleet the truth about RolloutGroups, but for a spec that is newer than the status", () => {
    const IN_FLEET = { Healthy: "ready", Degraded: "error", Progressing: "transitioning", Suspended: "transitioning" };
    const exceptions: Readonly<Record<string, string>> = {
      "a group that was ready before its spec changed": "ready",
      "a group without a status": "ready",
    };
    compare(
      CASES.filter(([, { kind }]) => kind === "RolloutGroup"),
      () => ({ engine: "summary" }),
      (health, name) => exceptions[name] ?? IN_FLEET[health],
    );
  });

  it("call a PhasedRollout that rolls an error in Rancher Fleet", () => {
    const rolls = CASES.filter(([name]) => name === "a PhasedRollout that rolls");
    compare(
      rolls,
      () => ({ engine: "summary" }),
      () => "error",
    );
  });
});

describe("KubeFleet", () => {
  /** As its work applier tracks a StatefulSet. */
  function isAvailable(set: Target): boolean {
    const at = (path: string): unknown => valueAt(set, path);
    return (
      at(".status.observedGeneration") === at(".metadata.generation") &&
      at(".status.availableReplicas") === at(".spec.replicas") &&
      at(".status.updatedReplicas") === at(".spec.replicas") &&
      at(".status.currentRevision") === at(".status.updateRevision")
    );
  }
  for (const [name, object, health] of CASES)
    if (object.kind === "StatefulSet" && valueAt(object, ".spec.replicas") !== 0)
      it(`says of ${name} that it is ${health === "Healthy" ? "" : "not "}available`, () =>
        assert.equal(isAvailable(object), health === "Healthy"));
});
