/** What an area of incidents has. */
import type { Draw } from "../draw.ts";
import type { Action } from "../person.ts";
import type { Shape } from "../shape.ts";

export interface Area {
  /** What its worlds have beside what they drew; undefined for a world that cannot have them. */
  readonly shape: (shape: Shape, draw: Draw) => Partial<Shape> | undefined;
  /** Acts in their order, by name: each leads to a moment that chance rarely meets. Never empty. */
  readonly incidents: Readonly<Record<string, Action>>;
  /** The end of the trouble. */
  readonly setRight?: Action;
}
