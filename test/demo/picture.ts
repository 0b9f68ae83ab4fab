/**
 * The zones of a group, a row each with its pods; a pure function of the group's state.
 *
 *     ingester-zone-a  ● 7f9c6   ✕ 5d4c8 terminating   ● 5d4c8
 */
import { isReady, isTerminating } from "../../reconciler/model/health.ts";
import type { Pod } from "../../reconciler/model/pod.ts";
import type { ZoneWithPods } from "../../reconciler/model/zone.ts";

const REVISION_LENGTH = 5;

export function drawZone(zone: ZoneWithPods): string {
  const pods = new Map(zone.pods.map((pod) => [pod.name, pod]));
  const expected = Array.from({ length: zone.replicas }, (_, ordinal) => `${zone.name}-${ordinal}`);
  const names = [...new Set([...expected, ...pods.keys()])];
  return [zone.name, ...names.map((name) => drawPod(pods.get(name)))].join("  ");
}

function drawPod(pod: Pod | undefined): string {
  if (!pod) return "· absent";
  // `ingester-zone-a-5d4c8f7b9` is `5d4c8`.
  const revision = pod.revision?.slice(pod.revision.lastIndexOf("-") + 1).slice(0, REVISION_LENGTH);
  if (isTerminating(pod)) return `✕ ${revision} terminating`;
  return isReady(pod) ? `● ${revision}` : `○ ${revision} ${pod.health.fault ?? "not ready"}`;
}

export function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
