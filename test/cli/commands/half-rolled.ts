/** A group of which one zone has finished a rollout, one is under way, and one has not begun. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { statefulSets, type StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { setStatusStage } from "../../reconciler/group-status/act/status-stage.ts";
import { deploy, type Stage } from "../../reconciler/stage.ts";

export const SETS = "statefulsets.apps";
export const setOf = ({ emulator }: Stage, zone: string): StatefulSet =>
  (emulator.store.get(SETS, "default", `ingester-zone-${zone}`) as StatefulSet | undefined) ?? assert.fail();
export const imagesOf = (stage: Stage): (string | undefined)[] =>
  ["a", "b", "c"].map((zone) => setOf(stage, zone).spec?.template.spec?.containers[0]?.image);
export const podsOf = ({ emulator }: Stage): string[] =>
  emulator.store
    .list("pods")
    .map(({ metadata }) => metadata.uid ?? "")
    .toSorted();

/** Deletes pods of a zone, as the rollout does. */
async function replace(stage: Stage, zone: string, ordinals: readonly number[]): Promise<void> {
  for (const ordinal of ordinals) stage.emulator.store.remove("pods", "default", `ingester-zone-${zone}-${ordinal}`);
  await stage.time.advance(5000);
}

/** Through the API, which fills in defaults: the template that comes back is then the one that was. */
export async function setImage(stage: Stage, image: string): Promise<void> {
  const { cluster } = stage.connect();
  for (const zone of ["a", "b", "c"])
    await cluster.change(statefulSets, {
      namespace: "default",
      name: `ingester-zone-${zone}`,
      type: "strategic",
      body: { spec: { template: { spec: { containers: [{ name: "c", image }] } } } },
    });
}

/** Zone a is finished with app:2, zone b has one pod of it, zone c none. */
export async function setRollout(t: TestContext, { recorded = true } = {}): Promise<Stage> {
  const stage = await setStatusStage();
  t.after(() => stage.close());
  deploy(stage, "app:1");
  await setImage(stage, "app:1");
  await stage.time.advance(5000);
  await setImage(stage, "app:2");
  await stage.time.advance(2000);
  await replace(stage, "a", [0, 1, 2]);
  await replace(stage, "b", [0]);
  if (!recorded) return stage;
  const finished = setOf(stage, "a");
  const status = { ...finished.status, currentRevision: finished.status?.updateRevision };
  stage.emulator.store.update(SETS, { ...finished, status } as never);
  await stage.time.advance(1000);
  return stage;
}
