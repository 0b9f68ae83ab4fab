/**
 * The duration of a 3 x 3 rollout on the cluster of KUBECONFIG with default settings, compared with the
 * minimum: a loop that deletes the same nine pods and waits for each to be recreated and ready.
 */
import { openStage, type Stage } from "../cluster/stage/stage.ts";
import type { ZoneOptions } from "../cluster/stage/zones.ts";
import { atMost, type Bench, median } from "./row.ts";

const ROUNDS = 3;
const AIM = 1.25;
const sim = { "sim/ready-after-ms": "300", "sim/exit-after-ms": "100" };
const ZONES: readonly ZoneOptions[] = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name, sim }));

export const benchRollout: Bench = async () => {
  if (!process.env["KUBECONFIG"]) {
    console.log("KUBECONFIG is not set: the rollout on a real control plane is left out.");
    return [];
  }
  const stage = await openStage();
  try {
    await stage.create(ZONES);
    const floors: number[] = [];
    const rollouts: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      floors.push(await measureFloor(stage));
      const reconciler = stage.start();
      await reconciler.untilOutput(/"msg":"tick"/);
      rollouts.push(await measureRollout(stage, `app:${round + 2}`));
      await reconciler.end();
    }
    const ratio = median(rollouts) / median(floors);
    return [
      {
        what: "3 x 3 rollout on a real control plane, baseline: a plain loop over the same pods",
        figure: show(floors),
      },
      { what: "the same by Zonewise, default settings", figure: show(rollouts) },
      { what: "the same, relative to the baseline", figure: ratio.toFixed(2), aim: atMost(AIM, "", ratio) },
    ];
  } finally {
    await stage.close();
  }
};

/** Milliseconds of the loop, without a reconciler. */
async function measureFloor({ deletePod, timeline }: Stage): Promise<number> {
  const startedAt = performance.now();
  for (const { name: zone } of ZONES) {
    for (const pod of [0, 1, 2].map((ordinal) => `${zone}-${ordinal}`)) {
      const before = timeline.entries.findLast((entry) => entry.pod === pod)?.uid;
      await deletePod(pod);
      await timeline.until(`${pod} is replaced`, () => {
        const latest = timeline.entries.findLast((entry) => entry.pod === pod);
        return latest?.uid !== before && latest?.state === "ready";
      });
    }
  }
  return performance.now() - startedAt;
}

/**
 * Milliseconds from the new template until the rollout is recorded as complete; the reconciler is idle at the
 * start.
 */
async function measureRollout({ setImage, done }: Stage, image: string): Promise<number> {
  const startedAt = performance.now();
  await setImage(image, ZONES);
  await done(image, ZONES);
  return performance.now() - startedAt;
}

function show(figures: readonly number[]): string {
  const seconds = (ms: number): string => (ms / 1000).toFixed(2);
  return `${seconds(median(figures))} s (${figures.map(seconds).join(", ")})`;
}
