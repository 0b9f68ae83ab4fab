/** The faults of a storm: conflicts, new revisions, killed processes. */
import type { Webhooks } from "../stage/eviction-stage.ts";
import { createRandom } from "../stage/random.ts";
import type { Stage } from "../stage/stage.ts";
import { repeat, type Tally } from "./storm-tally.ts";
import type { ZoneOptions } from "../stage/zones.ts";

const PATCHERS = 4;
const PATCH_MS = 10;
const WEBHOOK_KILL_MS = 4000;
const RECONCILER_KILL_MS = 6000;
const REVISION_MS = 8000;

export interface Targets {
  readonly zones: readonly ZoneOptions[];
  readonly webhooks: Webhooks;
}

/** Resolves once the signal is aborted and the last reconciler is killed. */
export async function injectFaults(
  stage: Stage,
  { zones, webhooks }: Targets,
  { tally, signal }: { readonly tally: Tally; readonly signal: AbortSignal },
): Promise<void> {
  await Promise.all([
    patchStatus(stage, tally, signal),
    killReconcilers(stage, tally, signal),
    repeat({ signal, random: createRandom("webhooks"), maxPauseMs: WEBHOOK_KILL_MS }, async () => {
      await webhooks.replaceOne();
      tally.count("webhookKills");
    }),
    repeat({ signal, random: createRandom("revisions"), maxPauseMs: REVISION_MS }, async () => {
      tally.count("revisions");
      await stage.setImage(`app:${tally.get("revisions") + 1}`, zones);
    }),
  ]);
}

/**
 * Continuously patches starting pods, and keeps them Pending until they are ready, as if they pulled an
 * image. The API server deletes a Pending pod with the version that it has just read, and retries after each
 * conflict. The phase is patched with the version that was seen, so that a pod that has become ready
 * meanwhile keeps its phase.
 */
async function patchStatus({ call, namespace, timeline }: Stage, tally: Tally, signal: AbortSignal): Promise<void> {
  let patches = 0;
  const patcher = (i: number): Promise<void> =>
    repeat({ signal, random: createRandom(`patches-${i}`), maxPauseMs: PATCH_MS }, async () => {
      const starting = [...timeline.pods.values()].filter(({ state }) => state === "notReady");
      const patched = starting.map(async ({ pod, uid, resourceVersion }) => {
        const message = `patch ${patches++}`;
        const patch =
          i === 0
            ? { metadata: { uid, resourceVersion }, status: { phase: "Pending" } }
            : { metadata: { uid }, status: { message } };
        await call("PATCH", `/api/v1/namespaces/${namespace}/pods/${pod}/status`, patch);
        tally.count("statusPatches");
      });
      await Promise.allSettled(patched);
    });
  await Promise.all(Array.from({ length: PATCHERS }, (_, i) => patcher(i)));
}

async function killReconcilers({ start }: Stage, tally: Tally, signal: AbortSignal): Promise<void> {
  const run = () =>
    start({
      RECONCILE_INTERVAL: "300ms",
      LEASE_DURATION: "1s",
      POD_NAME: `reconciler-${tally.get("reconcilerKills")}`,
    });
  let running = run();
  await repeat({ signal, random: createRandom("reconcilers"), maxPauseMs: RECONCILER_KILL_MS }, async () => {
    await running.kill();
    tally.count("reconcilerKills");
    running = run();
  });
  await running.kill();
}
