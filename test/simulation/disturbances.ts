/** What happens to calls beside the faults that a seed draws, for a while. */
import type { Sent } from "../emulator/in-process.ts";

export interface Disturbance {
  /** It is refused with this code, and has no effect. */
  readonly refusedWith?: number;
  /** Milliseconds between the head of an answer and its body. */
  readonly bodyLateMs?: number;
}

/** Undefined for a call that is not disturbed. */
export type Disturb = (actor: string, sent: Sent) => Disturbance | undefined;
