/**
 * Settings that a real fleet has and a plain world has not: in a quarter of the seeds, which have neither nodes nor
 * incidents. Drawn from a stream of its own, so that the other histories are the same as without.
 */
import { type Draft, put } from "../emulator/objects.ts";
import { drawFrom } from "./draw.ts";
import { TWIN } from "./names.ts";
import { budgetObject, type Shape, zoneObject } from "./shape.ts";

const STREAM = 0x77696465;
const ONE_OF = 4;

/** What a wider world has beside its shape; undefined for a plain one. */
export function drawWider(seed: number, shape: Shape): Partial<Shape> | undefined {
  const draw = drawFrom(seed ^ STREAM);
  if (draw.below(ONE_OF) > 0) return undefined;
  // Each is drawn, whether it can be or not: so that none depends on another.
  const [percent, first] = [draw.of([1, 34, 50, 67, 100]), draw.of([1, 5, 9, 10])];
  const times = shape.zones.map((zone): [string, number] => [zone, draw.of([60, 90, 180])]);
  const twin = draw.of(["well", "forbids"] as const);
  const [hasPercent, hasFirst, hasTimes, isOrdered, hasTwin, validating, older, isDelayed] = [
    0.4, 0.4, 0.4, 0.6, 0.4, 0.3, 0.3, 0.4,
  ].map((share) => draw.chance(share));
  const evictions = {
    validating: validating === true && shape.certificate === undefined,
    older: older === true,
    delaySeconds: isDelayed ? 30 : 0,
  };
  return {
    ...(hasPercent && shape.budget !== undefined && !shape.partitioned && { percent }),
    ...(hasFirst && { firstOrdinal: first }),
    ...(hasTimes && shape.secondsBetween > 0 && { minTimes: Object.fromEntries(times) }),
    ...(isOrdered && shape.followers && { ordered: true }),
    ...(hasTwin && { twin }),
    ...(shape.budget !== undefined && { evictions }),
  };
}

/** The twin is a plain group. */
export const twinShape = (shape: Shape): Shape => ({
  ...shape,
  zones: shape.zones.slice(0, 2),
  replicas: 2,
  maxUnavailable: 1,
  accelerates: false,
  budget: 1,
  percent: undefined,
  partitioned: false,
  followers: false,
  mirrored: undefined,
  prepared: false,
  secondsBetween: 0,
  minTimes: undefined,
  evictions: undefined,
  firstOrdinal: undefined,
  ordered: undefined,
  gate: undefined,
  windows: undefined,
});

const inTwin = (object: Draft): Draft => put(object, ["metadata", "namespace"], TWIN);

/** The objects of the second namespace, by their kind. */
export const twinObjects = (shape: Shape): { readonly zones: readonly Draft[]; readonly budget: Draft } => {
  const twin = twinShape(shape);
  return { zones: twin.zones.map((zone) => inTwin(zoneObject(twin, zone))), budget: inTwin(budgetObject(twin)) };
};

/** As one configures webhooks for several namespaces. */
export const forBoth = (configuration: Draft): Draft =>
  JSON.parse(
    JSON.stringify(configuration).replaceAll(
      /"matchLabels":\{"kubernetes.io\/metadata.name":"([^"]*)"\}/g,
      `"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In","values":["$1","${TWIN}"]}]`,
    ),
  ) as Draft;
