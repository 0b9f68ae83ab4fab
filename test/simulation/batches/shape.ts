/** Batches that grow: which seeds have them, and room for them to do so. */
import { type Draw, drawFrom } from "../draw.ts";
import { CALM, type Shape } from "../shape.ts";

/** Apart from all else that the seed draws: a history without such batches is the same as if there were none. */
const STREAM = 0x62617463;
/** Of so many seeds one has them. */
const ONE_OF = 6;

type Grown = Pick<Shape, "replicas" | "maxUnavailable" | "budget" | "faults" | "firstCalls" | "answers">;

/**
 * What such a seed has in place of what it drew: larger zones and limits. Half of them have no fault of the network, so
 * that the oracle may judge what was decided seconds ago.
 */
export function drawBatches(seed: number, drawn: Grown): (Grown & { readonly accelerates: true }) | undefined {
  const draw: Draw = drawFrom(seed ^ STREAM);
  if (draw.below(ONE_OF) > 0) return undefined;
  const replicas = draw.between(3, 6);
  const maxUnavailable = draw.between(2, 4);
  const limit = draw.chance(0.7) ? maxUnavailable : draw.between(1, 3);
  const budget = drawn.budget === undefined ? undefined : limit;
  const calm = draw.chance(0.5) && CALM;
  return { ...drawn, accelerates: true, replicas, maxUnavailable, budget, ...calm };
}
