/** docs/migrate/rollout-operator.md on the original's definitions, which replace ours for the whole cluster, and the way out. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { define } from "../stage/definitions.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import { openStage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { DEFINITIONS, MANIFESTS, namesOf, printManifests } from "./original.ts";
import { copyManifests, readCommands, runCommands } from "./steps.ts";

interface Budget {
  readonly spec: object;
  readonly status?: { readonly disruptedPods?: object };
}

it("budgets lose their status under the original's definitions, and keep it again under ours", async (t) => {
  const stage = await openStage();
  const { call, namespace, folder } = stage;
  const run = (command: string): Promise<string> => runCommands([command], folder, namesOf(MANIFESTS, namespace));
  t.after(async () => {
    await define(stage.admin, "zoneawarepoddisruptionbudgets", "replicatemplates");
    await stage.close();
  });
  await copyManifests(folder, { namespace, port: 9, patches: "" });
  await writeFile(join(folder, "definitions.yaml"), printManifests(DEFINITIONS));
  const [apply, ...others] = await readCommands("To Zonewise", "infra/manifests/crds");
  assert.ok(apply !== undefined && others.length === 0);
  await run(apply);
  await define(stage.admin, "zoneawarepoddisruptionbudgets");
  await createBudget(stage, "kept", { maxUnavailable: 1 });

  const path = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets/kept`;
  const reservation = { kind: "eviction", uid: "1", pinned: true, time: "2026-01-01T00:00:00Z", by: "x" };
  const disruptedPods = { "kept-a-0": reservation };
  /** Whether the status is stored that was written. */
  const keeps = async (): Promise<boolean> => {
    await call("PATCH", `${path}/status`, { status: { disruptedPods } });
    return (await call<Budget>("GET", path)).status?.disruptedPods !== undefined;
  };
  await until("a status is kept", keeps);
  const { spec } = await call<Budget>("GET", path);
  await run("kubectl apply -f definitions.yaml");
  await until("a status is lost", async () => !(await keeps()));
  await run(apply);
  await until("a status is kept again", keeps);
  assert.deepEqual((await call<Budget>("GET", path)).spec, spec);
});
