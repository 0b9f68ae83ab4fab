/** All that a seed draws before its history begins: each part from a stream of its own. */
import { drawBatches } from "./batches/shape.ts";
import { drawGateMore } from "./checks/objects.ts";
import { drawDeletions } from "./deletions/shape.ts";
import { type Draw, drawFrom } from "./draw.ts";
import { drawAnswers, drawFirstCalls, drawWatches } from "./faults.ts";
import { drawIncidents } from "./incidents/incidents.ts";
import { drawMistakes } from "./mistakes.ts";
import { drawNodes } from "./nodes/shape.ts";
import { drawShape, type Shape } from "./shape.ts";
import { drawWider } from "./wider.ts";
import { drawWindows } from "./windows/shape.ts";

interface WholeShape {
  readonly shape: Shape;
  /** The streams of what happens to nodes, and of mistakes. */
  readonly nodeDraw: Draw;
  readonly mistakeDraw: Draw;
  /** The streams of incidents, by area. */
  readonly incidentDraws: ReadonlyMap<string, Draw>;
}

/** By how much longer the trouble lasts where there are nodes: an update takes minutes. */
const NODES_TAKE = 3;

/** `draw` is the stream of the seed itself, which the history goes on with. */
export function drawWholeShape(seed: number, draw: Draw = drawFrom(seed)): WholeShape {
  const { nodes, nodeDraw } = drawNodes(seed);
  const { mistakeDraw, ...mistakes } = drawMistakes(seed);
  const faultsOf = { firstCalls: drawFirstCalls(seed), answers: drawAnswers(seed), watches: drawWatches(seed) };
  const own = { windows: drawWindows(seed), deletions: drawDeletions(seed), ...mistakes, ...faultsOf };
  const bare = drawShape(draw);
  const whole = { ...bare, ...own, ...(bare.gate && { gate: drawGateMore(seed, bare.gate) }) };
  const group = { ...whole, ...drawBatches(seed, whole) };
  const wider = drawWider(seed, group);
  if (wider) return { shape: { ...group, ...wider }, incidentDraws: new Map(), nodeDraw, mistakeDraw };
  const quiet = nodes ? { ...group, nodes, troubledMs: group.troubledMs * NODES_TAKE } : group;
  return { ...drawIncidents(seed, quiet), nodeDraw, mistakeDraw };
}
