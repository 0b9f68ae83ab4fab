/** Kubernetes' declarative eviction API, of which the reconciler is a responder: which seeds have it. */
import { type Draw, drawFrom } from "../draw.ts";
import { CALM, type RequestsShape, type Shape } from "../shape.ts";

/** Apart from all else that the seed draws: a history without the API is the same as if there were none. */
const STREAM = 0x72657370;
/** Of so many seeds one has it. */
const ONE_OF = 4;

type Drawn = Pick<Shape, "faults" | "firstCalls" | "answers">;

/** Some of them have no fault of the network, so that the oracle may judge how long nothing is said. */
export function drawRequests(seed: number): ({ readonly requests: RequestsShape } & Partial<Drawn>) | undefined {
  const draw: Draw = drawFrom(seed ^ STREAM);
  if (draw.below(ONE_OF) > 0) return undefined;
  const requests = { withdrawn: draw.chance(0.3) };
  return { requests, ...(draw.chance(0.4) && CALM) };
}
