/** Zones whose new pods become ready only when the test says so (`sim/ready: "false"` in their template). */
import type { Stage } from "./stage.ts";
import { until } from "./until.ts";
import type { ZoneOptions } from "./zones.ts";

/**
 * Makes each pod ready that is not, one generation after the other; resolves once all pods of `zones` have the image,
 * as `done` does.
 */
export async function doneWithHelp(
  { annotatePod, done, timeline }: Pick<Stage, "annotatePod" | "done" | "timeline">,
  image: string,
  zones: readonly ZoneOptions[],
): Promise<void> {
  const helped = new Set<string>();
  const helpAll = (): boolean => {
    for (const { pod, uid, state, zone } of timeline.pods.values()) {
      if (state !== "notReady" || helped.has(uid) || !zones.some(({ name }) => name === zone)) continue;
      helped.add(uid);
      // One that is replaced meanwhile has a successor, which is helped in turn.
      void annotatePod(pod, { "sim/ready": "true" }).catch(() => helped.delete(uid));
    }
    return isOver;
  };
  let isOver = false;
  await Promise.all([until("all pods are helped", helpAll), done(image, zones).then(() => (isOver = true))]);
}
