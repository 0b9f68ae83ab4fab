/** What a drill leaves behind is removed, and nothing else. */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { createSettings } from "../../cli/gather/settings.ts";
import { plain } from "../../cli/output/text.ts";
import type { Clock } from "../../infra/clock.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { make } from "../builders/objects.ts";
import { startEmulator } from "../emulator/index.ts";
import { BUDGETS, budgetDefinition } from "../reconciler/budget-stage.ts";
import { clean } from "./drill.ts";
import { removePlace, renew } from "./place.ts";
import { expiryOf, LABEL, marks } from "./plan.ts";

const RUN = "zonewise-drill-b1c2d";
const START = Date.parse("2026-01-01T00:00:00Z");
const PLACE = { run: RUN, namespace: "default" };

const budget = (name: string, run: string, now: number) =>
  make("ZoneAwarePodDisruptionBudget", name, {
    metadata: { ...marks(run, now) },
    spec: { maxUnavailable: 1, selector: { matchLabels: { [LABEL]: run } } },
  });

/** A cluster that knows budgets, and a clock that a sleep moves on at once: `onSleep` is what happens meanwhile. */
async function setPlace(t: TestContext, onSleep: (scene: Scene) => void = () => {}) {
  const emulator = await startEmulator({ controllers: false });
  t.after(() => emulator.stop());
  const { store } = emulator;
  store.create("customresourcedefinitions.apiextensions.k8s.io", budgetDefinition());
  let at = START;
  const clock: Clock = {
    now: () => at,
    monotonic: () => at,
    async sleep(ms) {
      at += ms;
      onSleep(scene);
    },
  };
  const cluster = connectCluster(emulator.connection(), { timeoutMs: 60_000 });
  const find = (name: string) => store.get(BUDGETS, PLACE.namespace, name);
  const scene = { store, clock, cluster, find };
  return scene;
}
type Scene = Pick<Awaited<ReturnType<typeof startEmulator>>, "store"> & { readonly clock: Clock };

/** `npm run drill -- --clean`. */
async function runClean({ cluster, clock }: Awaited<ReturnType<typeof setPlace>>) {
  let out = "";
  const io = { write: (text: string) => void (out += text), warn: () => {}, style: plain };
  const settings = createSettings({ cluster });
  const { signal } = new AbortController();
  const code = await clean({ cluster, cleanup: cluster, clock, settings, io, signal, namespace: PLACE.namespace });
  return { code, out };
}

for (const run of ["mine", `${RUN}-data`])
  it(`what is labelled ${run}, which is no name of a run, is not touched by --clean, however old it is`, async (t) => {
    const scene = await setPlace(t);
    scene.store.create(BUDGETS, budget("mine", run, 0));
    assert.deepEqual(await runClean(scene), { code: 0, out: "nothing is left\n" });
    assert.ok(scene.find("mine"));
  });

it("what a killed run has left is removed by --clean, once it gives no sign of life", async (t) => {
  const scene = await setPlace(t);
  scene.store.create(BUDGETS, budget(RUN, RUN, START));
  assert.deepEqual(await runClean(scene), { code: 0, out: "nothing is left\n" });
  assert.equal(scene.find(RUN), undefined);
});

it("what a living run has made is not removed by --clean", async (t) => {
  const scene = await setPlace(t, ({ store, clock }) => {
    const found = store.get(BUDGETS, PLACE.namespace, RUN) ?? assert.fail("removed");
    store.update(BUDGETS, { ...found, metadata: { ...found.metadata, ...marks(RUN, clock.now()) } });
  });
  scene.store.create(BUDGETS, budget(RUN, RUN, START));
  const { code, out } = await runClean(scene);
  assert.deepEqual([code, out], [3, `${RUN} is alive in default, and removes what it has made\n`]);
  assert.ok(scene.find(RUN));
});

it("a run renews its expiry, as long as it lives", async (t) => {
  const stop = new AbortController();
  const scene = await setPlace(t, ({ clock }) => clock.now() > START + 40_000 && stop.abort());
  scene.store.create(BUDGETS, budget(RUN, RUN, START));
  await renew(scene, PLACE, stop.signal);
  assert.equal(expiryOf(scene.find(RUN)?.metadata.annotations), START + 90_000);
});

it("what is made by a call that takes effect after the Ctrl-C is removed, too", async (t) => {
  let isMade = false;
  const scene = await setPlace(t, ({ store, clock }) => {
    if (!isMade) store.create(BUDGETS, budget(RUN, RUN, clock.now()));
    isMade = true;
  });
  assert.equal(await removePlace(scene, PLACE), true);
  assert.ok(isMade);
  assert.equal(scene.find(RUN), undefined);
});
