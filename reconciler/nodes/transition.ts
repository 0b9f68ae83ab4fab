/**
 * The state machine (NR6): what the controller does for each pair of wanted and reported state.
 *
 *   Idle -> StagedAndPerformedUpdate -> RebootedIntoUpdate -> MonitoringUpdate -> Idle
 *                    \________________________\____________________\
 *                               the agent reports ErrorReset -------> Idle
 */
import type { State, WantedState } from "./shadow.ts";

export type Move =
  /** The agent is to act. */
  | { readonly move: "wait" }
  /** The default spec: the rest of an update is wiped. */
  | { readonly move: "wipe" }
  /** An update may start. */
  | { readonly move: "start" }
  /** The next state, once its precondition holds. */
  | { readonly move: "advance"; readonly to: WantedState; readonly precondition: "drainable" | "ready" | "healthy" }
  /** The attempt failed: back to Idle. */
  | { readonly move: "reset" };

const wait = { move: "wait" } as const;
const wipe = { move: "wipe" } as const;
const start = { move: "start" } as const;
const reset = { move: "reset" } as const;
const reboot = { move: "advance", to: "RebootedIntoUpdate", precondition: "drainable" } as const;
const monitor = { move: "advance", to: "MonitoringUpdate", precondition: "ready" } as const;
const finish = { move: "advance", to: "Idle", precondition: "healthy" } as const;

/**
 * By wanted state, then by reported state. The agent acts in ErrorReset on Idle alone; nobody ever wants ErrorReset.
 */
export const TRANSITIONS: Readonly<Record<State, Readonly<Record<State | "none", Move>>>> = {
  // prettier-ignore
  Idle: { none: wipe, Idle: start, StagedAndPerformedUpdate: wait, RebootedIntoUpdate: wait, MonitoringUpdate: wait, ErrorReset: wait },
  // prettier-ignore
  StagedAndPerformedUpdate: { none: wipe, Idle: wait, StagedAndPerformedUpdate: reboot, RebootedIntoUpdate: wait, MonitoringUpdate: wait, ErrorReset: reset },
  // prettier-ignore
  RebootedIntoUpdate: { none: wipe, Idle: wait, StagedAndPerformedUpdate: wait, RebootedIntoUpdate: monitor, MonitoringUpdate: wait, ErrorReset: reset },
  // prettier-ignore
  MonitoringUpdate: { none: wipe, Idle: wait, StagedAndPerformedUpdate: wait, RebootedIntoUpdate: wait, MonitoringUpdate: finish, ErrorReset: reset },
  // prettier-ignore
  ErrorReset: { none: wipe, Idle: reset, StagedAndPerformedUpdate: reset, RebootedIntoUpdate: reset, MonitoringUpdate: reset, ErrorReset: reset },
};

/** What is to be done for a wanted and a reported state. */
export const moveFor = (wanted: State, reported: State | undefined): Move => TRANSITIONS[wanted][reported ?? "none"];
