/**
 * After the user's cure of pods that never come up everything settles, and no pod that serves is touched while another
 * zone is degraded.
 */
import assert from "node:assert/strict";
import { define } from "../stage/definitions.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import { assertNoViolations, deletions, findViolations, type Entry } from "../stage/invariants.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { buildZone, type Sim, type ZoneOptions } from "../stage/zones.ts";

/** Milliseconds that a cure may take: less than the 5 minutes after which pods that were ready count as lost. */
const CURED_MS = 180_000;
const NEVER_READY: Sim = { "sim/ready": "false" };
const CRASHING: Sim = { "sim/crash": "true" };
/** A template keeps the annotations that a patch does not name. */
const WELL: Sim = { "sim/ready": "true", "sim/crash": "false" };
const MAX = "rollout-max-unavailable";
const PAUSED = "grafana.com/rollout-paused";

const zonesOf = (count: number, traits: Partial<ZoneOptions> = {}): ZoneOptions[] =>
  ["zone-a", "zone-b", "zone-c", "zone-d"].slice(0, count).map((name) => ({ group: "cache", name, ...traits }));

/** The entries of pods that have been ready: the others serve nothing. */
function served(entries: readonly Entry[]): Entry[] {
  const ready = new Set(entries.filter(({ state }) => state === "ready").map(({ uid }) => uid));
  return entries.filter(({ uid }) => ready.has(uid));
}

async function putBudget(stage: Stage, spec: object): Promise<void> {
  await define(stage.admin, "zoneawarepoddisruptionbudgets");
  await createBudget(stage, "cache", spec);
}

/** Creates zones whose pods may never come up; resolves once all pods are there. */
async function install({ call, namespace, timeline }: Stage, zones: readonly ZoneOptions[]): Promise<void> {
  for (const zone of zones) await call("POST", `/apis/apps/v1/namespaces/${namespace}/statefulsets`, buildZone(zone));
  const pods = zones.reduce((sum, { replicas = 3 }) => sum + replicas, 0);
  await timeline.until(`${pods} pods`, () => timeline.pods.size === pods);
}

/** Plays the user's cure; resolves with the milliseconds from then until `isSettled`. */
async function measure(
  { timeline, diagnostic }: Stage,
  cure: () => Promise<unknown>,
  isSettled: () => boolean,
): Promise<void> {
  const curedAt = performance.now();
  await cure();
  await timeline.until("settled after the cure", isSettled, CURED_MS);
  diagnostic(`settled ${Math.round(performance.now() - curedAt)} ms after the cure`);
}

/** Every zone has that many pods, and all are ready. */
const haveReady =
  ({ timeline: { statefulSets } }: Stage, zones: readonly ZoneOptions[], replicas: number) =>
  (): boolean =>
    zones.every(({ name }) => {
      const { spec, status } = statefulSets.get(name) ?? {};
      return [spec?.replicas, status?.replicas, status?.readyReplicas].every((count) => count === replicas);
    });

const TEMPLATES: readonly [
  name: string,
  sim: Sim,
  zones: number,
  annotations: Record<string, string>,
  budget?: object,
][] = [
  ["two at a time, under a budget", NEVER_READY, 2, { [MAX]: "2" }, { maxUnavailable: 1 }],
  ["crash-looping pods under a budget of 0", CRASHING, 2, { [MAX]: "1" }, { maxUnavailable: 0 }],
];

for (const [name, sim, count, annotations, budget] of TEMPLATES)
  scenario(`a fixed template reaches the zone that a faulty one broke: ${name}`, async (stage) => {
    const zones = zonesOf(count, { annotations });
    if (budget) await putBudget(stage, budget);
    await stage.create(zones);
    const reconciler = stage.start({ RECONCILE_INTERVAL: "1s" });
    await stage.setImage("app:2", zones, sim);
    await reconciler.untilOutput(/MaxUnavailableReached|BudgetSpent/);
    await measure(
      stage,
      () => stage.setImage("app:3", zones, WELL),
      () => haveReady(stage, zones, 3)(),
    );
    await stage.done("app:3", zones);
    assertNoViolations(served(stage.timeline.entries), () => Number(annotations[MAX] ?? 1));
    assert.equal(await reconciler.end(), 0);
  });

const INSTALLS: readonly [name: string, sim: Sim, zones: readonly ZoneOptions[], budget?: object][] = [
  ["crash-looping pods under a budget", CRASHING, zonesOf(3, { replicas: 2 }), { maxUnavailable: 1 }],
  [
    "pods that run and are never ready, under a budget with partitions",
    NEVER_READY,
    zonesOf(3, { replicas: 2 }),
    { maxUnavailable: 1, podNamePartitionRegex: "zone-[a-z]-([0-9]+)" },
  ],
];

for (const [name, sim, zones, budget] of INSTALLS)
  scenario(
    `after a first install that comes up nowhere, a fixed template reaches every zone: ${name}`,
    async (stage) => {
      if (budget) await putBudget(stage, budget);
      await install(
        stage,
        zones.map((zone) => ({ ...zone, sim })),
      );
      const reconciler = stage.start({ RECONCILE_INTERVAL: "1s" });
      await reconciler.untilOutput(/MultipleZonesNotReady/);
      const replicas = zones[0]?.replicas ?? 3;
      await measure(stage, () => stage.setImage("app:2", zones, WELL), haveReady(stage, zones, replicas));
      await stage.done("app:2", zones);
      assert.equal(await reconciler.end(), 0);
    },
  );

scenario(
  "lost pods of a paused zone stay, those of the others are cured, and the paused one once it is resumed",
  async (stage) => {
    const [a, b, c] = zonesOf(3) as [ZoneOptions, ZoneOptions, ZoneOptions];
    const zones = [a, { ...b, annotations: { [PAUSED]: "true" } }, c];
    await install(
      stage,
      zones.map((zone) => ({ ...zone, sim: CRASHING })),
    );
    const reconciler = stage.start({ RECONCILE_INTERVAL: "1s" });
    await measure(stage, () => stage.setImage("app:2", zones, WELL), haveReady(stage, [a, c], 3));
    await stage.timeline.caughtUp();
    assert.equal(
      deletions(stage.timeline.entries).some(({ zone }) => zone === b.name),
      false,
    );
    await measure(
      stage,
      () => stage.patchZone(b.name, { metadata: { annotations: { [PAUSED]: null } } }),
      haveReady(stage, zones, 3),
    );
    await stage.done("app:2", zones);
    assert.equal(await reconciler.end(), 0);
  },
);

scenario(
  "pods of two zones that were ready and are lost at once: the fix reaches them, and no pod that serves goes meanwhile",
  async (stage) => {
    const zones = zonesOf(3);
    await stage.create(zones);
    const reconciler = stage.start({ RECONCILE_INTERVAL: "1s" });
    for (const pod of ["zone-a-0", "zone-a-1", "zone-b-2"]) await stage.annotatePod(pod, CRASHING);
    await until("the pods are seen to be lost", () => haveLost(stage, 3));
    await measure(stage, () => stage.setImage("app:2", zones, WELL), haveReady(stage, zones, 3));
    await stage.done("app:2", zones);
    // Each of the lost pods goes beside another zone's.
    const lost = /, zone-(a-0|a-1|b-2) deleted/;
    assert.deepEqual(
      findViolations(stage.timeline.entries, () => 1).filter((violation) => !lost.test(violation)),
      [],
    );
    assert.equal(await reconciler.end(), 0);
  },
);

const haveLost = ({ timeline: { statefulSets } }: Stage, count: number): boolean =>
  [...statefulSets.values()].reduce(
    (sum, { status }) => sum + (status?.replicas ?? 0) - (status?.readyReplicas ?? 0),
    0,
  ) === count;
