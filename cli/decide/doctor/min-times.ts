/** Checks of `zonewise doctor`: the minimum times between downscales of a group's zones. Pure. */
import { parseGoDuration } from "../../../infra/duration.ts";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { LABELS } from "../../../reconciler/model/annotations.ts";
import { leaderAmong } from "../../../reconciler/model/leaders.ts";
import { describeTwoMinTimes } from "../../../reconciler/model/scaling.ts";
import type { Zone } from "../../../reconciler/model/zone.ts";
import { annotate, type Check, edit, type Facts, isGrouped, label, row } from "./check.ts";
import { LABEL_VALUE } from "./keys.ts";

const MIN_TIME = LABELS.minTimeBetweenZonesDownscale;
const objectOf = ({ zone }: { readonly zone: Zone }): string => `statefulset/${zone.name}`;

interface Differing {
  readonly zone: Zone;
  readonly differing: string;
  readonly asLabel: string;
  readonly asAnnotation: string;
}

/** A minimum time is read as an annotation, and as a label, as older versions of the original read it. */
export const twoMinTimes = ({ metadata }: StatefulSet): string | undefined =>
  describeTwoMinTimes(metadata?.labels, metadata?.annotations);

const findDiffering = ({ sets }: Facts): Differing[] =>
  sets.flatMap(({ object, zone }) => {
    const { labels, annotations } = object.metadata ?? {};
    const differing = isGrouped(zone) ? twoMinTimes(object) : undefined;
    const [asLabel = "", asAnnotation = ""] = [labels?.[MIN_TIME], annotations?.[MIN_TIME]];
    return differing === undefined ? [] : [{ zone, differing, asLabel, asAnnotation }];
  });

/**
 * Followers without a minimum time in a group whose downscales are remembered: they wait for a time that nobody has said
 * (`minTimeOver` in reconciler/scaling/min-time.ts).
 */
const findUntimed = ({ groups }: Facts) =>
  [...groups.values()].flatMap((zones) => {
    const times = zones.flatMap(({ scaling }) => scaling.minTime ?? []);
    const isRemembered = times.length > 0 || zones.some(({ scaling }) => scaling.judgedByWebhook);
    if (!isRemembered) return [];
    return zones
      .filter((zone) => zone.scaling.minTime === undefined && leaderAmong(zones, zone))
      .map((zone) => ({ zone, time: times[0] ?? "0s" }));
  });

/** The longer of both shortens nobody's wait, also of versions of the original that read the label alone. */
function alignMinTimes({ zone, asLabel, asAnnotation }: Differing): string {
  const [one, other] = [parseGoDuration(asLabel), parseGoDuration(asAnnotation)];
  if (one === undefined || other === undefined || !LABEL_VALUE.test(asAnnotation)) return edit(zone);
  return one >= other ? annotate(zone, `${MIN_TIME}=${asLabel}`) : label(zone, `${MIN_TIME}=${asAnnotation}`);
}

export const MIN_TIMES: readonly Check[] = [
  row({
    check: "no-min-time",
    level: "error",
    when: findUntimed,
    object: objectOf,
    message: () =>
      `it follows a leader and has no annotation ${MIN_TIME}: once another zone was scaled down, it is not`,
    fix: ({ zone, time }) => annotate(zone, `${MIN_TIME}=${time}`),
  }),
  row({
    check: "two-min-times",
    level: "warning",
    when: findDiffering,
    object: objectOf,
    message: ({ differing }) => differing,
    fix: alignMinTimes,
  }),
];
