/** Lifecycle conditions of nodes (KEP-5683): which seeds have them, and what they say. */
import { dig, listOf } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { drawFrom } from "../draw.ts";

/** Apart from all else that the seed draws: a history without the conditions is the same as if there were none. */
const STREAM = 0x636f6e64;
/** Of so many seeds with nodes one has them. */
const ONE_OF = 2;

export const hasLifecycle = (seed: number): boolean => drawFrom(seed ^ STREAM).below(ONE_OF) === 0;

export const TYPES = [
  "MaintenancePlanned",
  "DrainInProgress",
  "Drained",
  "MaintenanceInProgress",
  "GracefulNodeShutdownInProgress",
] as const;
export type LifecycleType = (typeof TYPES)[number];

/** The reason of ours. */
export const OURS = "ZonewiseNodeUpdate";

export interface Condition {
  readonly type: LifecycleType;
  readonly reason: string;
  readonly message: string;
}

/** What is True on a node, whoever says it. */
export const trueConditions = (node: KubeObject | undefined): readonly Condition[] =>
  (listOf(dig(node, "status", "conditions")) as readonly (Condition & { readonly status: string })[]).filter(
    ({ type, status }) => status === "True" && TYPES.includes(type),
  );
