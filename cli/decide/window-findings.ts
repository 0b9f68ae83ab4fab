/** Findings of `zonewise doctor` about rollout windows that can be read (§1.12). Pure. */
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS, LABELS } from "../../reconciler/model/annotations.ts";
import { listSome } from "../../reconciler/model/list-some.ts";
import { findClosedWindow } from "../../reconciler/model/rollout-window.ts";
import { groupBy } from "../../reconciler/model/order.ts";
import { groupKey, readZone, type Zone } from "../../reconciler/model/zone.ts";
import { kubectl } from "../../reconciler/remedies/cures.ts";
import type { Finding } from "./findings.ts";

/** Findings of all groups of these StatefulSets. `now` in milliseconds since the epoch. */
export function examineWindows(objects: readonly StatefulSet[], now: number): Finding[] {
  const zones = objects.map(readZone).filter(({ labels }) => labels[LABELS.rolloutGroup] !== undefined);
  const groups = [...groupBy(zones, groupKey).values()];
  return [...zones.flatMap((zone) => examineOpening(zone, now)), ...groups.flatMap(examineMissing)];
}

/** A window that cannot be read is among the problems of its zone. */
function examineOpening(zone: Zone, now: number): Finding[] {
  const closed = zone.window?.problem === undefined ? findClosedWindow(zone.window, now) : undefined;
  if (closed?.reason !== "WindowInvalid") return [];
  return [
    {
      level: "error",
      check: "window-never-opens",
      object: `statefulset/${zone.name}`,
      message: `${closed.message}: a new template never reaches its pods that serve`,
      fix: kubectl(zone, `edit statefulset ${zone.name}`),
    },
  ];
}

/** Each zone has its own window: a zone that was forgotten rolls at any time. */
function examineMissing(zones: readonly Zone[]): Finding[] {
  const [first] = zones;
  const without = zones.filter(({ window }) => window === undefined).map(({ name }) => name);
  const having = zones.filter(({ window }) => window !== undefined).map(({ name }) => name);
  if (!first || without.length === 0 || without.length === zones.length) return [];
  return [
    {
      level: "warning",
      check: "window-on-some-zones",
      object: `group/${first.group}`,
      message: `${listSome(having)} ${having.length === 1 ? "has" : "have"} a rollout window or a freeze, and ${listSome(without)} ${without.length === 1 ? "has" : "have"} none: nothing holds the rollout there`,
      fix: `give all the same annotations ${ANNOTATIONS.rolloutWindow}, or ${ANNOTATIONS.rolloutFreezes}: ${kubectl(first, `edit statefulset ${without.join(" ")}`)}`,
    },
  ];
}
