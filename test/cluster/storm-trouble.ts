/** What happens to a storm besides evictions: conflicts, new revisions, processes that are killed. */
import type { Webhooks } from "./eviction-stage.ts";
import { createDice } from "./dice.ts";
import type { Stage } from "./stage.ts";
import { repeat, type Tally } from "./storm-tally.ts";
import type { ZoneOptions } from "./zones.ts";

const PATCHERS = 4;
const PATCH_MS = 10;
const WEBHOOK_KILL_MS = 4000;
const RECONCILER_KILL_MS = 6000;
const REVISION_MS = 8000;

/** Resolves once the signal has ended it all and the last reconciler is killed. */
export async function makeTrouble(
  stage: Stage,
  zones: readonly ZoneOptions[],
  webhooks: Webhooks,
  tally: Tally,
  signal: AbortSignal,
): Promise<void> {
  await Promise.all([
    patchStatus(stage, tally, signal),
    killReconcilers(stage, tally, signal),
    repeat(signal, createDice("webhooks"), WEBHOOK_KILL_MS, async () => {
      await webhooks.replaceOne();
      tally.count("webhookKills");
    }),
    repeat(signal, createDice("revisions"), REVISION_MS, async () => {
      tally.count("revisions");
      await stage.setImage(`app:${tally.get("revisions") + 1}`, zones);
    }),
  ]);
}

/**
 * Changes pods that come up all the time, and keeps them Pending until they are ready, as pods are that pull an image: the API server
 * deletes a Pending pod with the version that it has just read, and tries again after each conflict. The phase is set with the version
 * that was seen: a pod that has become ready meanwhile keeps its own.
 */
async function patchStatus({ call, namespace, timeline }: Stage, tally: Tally, signal: AbortSignal): Promise<void> {
  let patches = 0;
  const patcher = (i: number): Promise<void> =>
    repeat(signal, createDice(`patches-${i}`), PATCH_MS, async () => {
      const coming = [...timeline.pods.values()].filter(({ state }) => state === "notReady");
      const patched = coming.map(async ({ pod, uid, resourceVersion }) => {
        const message = `patch ${patches++}`;
        const patch =
          i === 0 ? { metadata: { uid, resourceVersion }, status: { phase: "Pending" } } : { metadata: { uid }, status: { message } };
        await call("PATCH", `/api/v1/namespaces/${namespace}/pods/${pod}/status`, patch);
        tally.count("statusPatches");
      });
      await Promise.allSettled(patched);
    });
  await Promise.all(Array.from({ length: PATCHERS }, (_, i) => patcher(i)));
}

async function killReconcilers({ start }: Stage, tally: Tally, signal: AbortSignal): Promise<void> {
  const run = () => start({ RECONCILE_INTERVAL: "300ms", LEASE_DURATION: "1s", POD_NAME: `reconciler-${tally.get("reconcilerKills")}` });
  let running = run();
  await repeat(signal, createDice("reconcilers"), RECONCILER_KILL_MS, async () => {
    await running.kill();
    tally.count("reconcilerKills");
    running = run();
  });
  await running.kill();
}
