/**
 * The state machine of a node's update (§17.2). The state that the shadow wants and the one that it reports give
 * the phase; the row of the phase says who moves the node on. A node holds a slot of its policy in every phase.
 *
 *   phase        wanted                     reported                   moved on by
 *   (no slot)    Idle                       Idle                       the reconciler, if the node may start
 *   Starting     Idle                       Idle                       the reconciler: its slot is stored, the shadow is not yet
 *   Staging      StagedAndPerformedUpdate   Idle                       the agent: it stages the update; pods keep running
 *   Holding      StagedAndPerformedUpdate   StagedAndPerformedUpdate   the reconciler, once the node is drainable
 *   Draining     RebootedIntoUpdate         StagedAndPerformedUpdate   the agent: it cordons, drains, and announces the reboot
 *   Rebooting    RebootedIntoUpdate         StagedAndPerformedUpdate   the agent, back in the wanted version
 *   Returning    RebootedIntoUpdate         RebootedIntoUpdate         the reconciler, once the node is Ready
 *                MonitoringUpdate           RebootedIntoUpdate         the agent: it gives the node back
 *   Monitoring   MonitoringUpdate           MonitoringUpdate           the reconciler, once the node is healthy
 *   Recovering   Idle                       any other                  the agent: it gives the node back; then the slot is free
 *                any other                  ErrorReset, or nothing     the reconciler: the attempt failed, Idle is wanted
 */
import type { UpdateNode } from "./node.ts";
import type { ActiveNode, NodePhase, Policy } from "./policy.ts";
import { DEFAULT_SPEC, type ShadowSpec, type ShadowStatus, type State, STATES, type WantedState } from "./shadow.ts";
import type { FailureReason } from "./snapshot.ts";

/** The preconditions of the next state that the reconciler wants; `progress.ts` has their rules. */
export type Precondition = "drainable" | "ready" | "healthy";

/** The actions of an agent: `decide-agent.ts`. */
export type AgentAction = "stage" | "reboot" | "giveBack" | "recover";

/** The move of a node out of a pair of wanted and reported state. */
export type Move =
  | { readonly by: "agent"; readonly action: AgentAction }
  /** `chosen`: among the nodes that may start. `failed`: at once, as the attempt is over. */
  | { readonly by: "reconciler"; readonly to: WantedState; readonly once: Precondition | "chosen" | "failed" }
  /** The pair is in no row: it lasts until the deadline of its phase. */
  | { readonly by: "nobody" };

/** No state is reported before the agent's first status. */
type Reported = State | "none";

interface Row {
  readonly wanted: readonly State[];
  readonly reported: readonly Reported[];
  readonly move: Move;
}

/** The step for a node in service whose deadline is over; any other node freezes its policy. */
export type Expiry =
  /** The slot is free. */
  | { readonly step: "release"; readonly backOff: boolean }
  /** Idle is wanted first. */
  | { readonly step: "reset"; readonly afterReboot: boolean }
  | { readonly step: "freeze" };

export interface Phase {
  readonly rows: readonly Row[];
  /** The disruption of the node's pods. While it drains or reboots, the node is cordoned by us. */
  readonly disruption: "ahead" | "draining" | "rebooting" | "over";
  /** How long a node may be in the phase. */
  readonly seconds: (policy: Pick<Policy, "deadlines" | "drain" | "health">) => number;
  /** The reason of an attempt that takes longer. */
  readonly timeout: FailureReason;
  readonly expiry: Expiry;
}

const STAGED = "StagedAndPerformedUpdate";
const REBOOTED = "RebootedIntoUpdate";
const MONITORED = "MonitoringUpdate";

/** Seconds to wait for a write of ours that may have been lost; longer than any write takes. */
const STARTING_S = 60;

const onPair = (wanted: State, reported: State, move: Move): Row => ({ wanted: [wanted], reported: [reported], move });
const byAgent = (action: AgentAction): Move => ({ by: "agent", action });
const FAILED: Move = { by: "reconciler", to: "Idle", once: "failed" };

export const PHASES: Readonly<Record<NodePhase, Phase>> = {
  Starting: {
    rows: [onPair("Idle", "Idle", { by: "reconciler", to: STAGED, once: "chosen" })],
    disruption: "ahead",
    seconds: () => STARTING_S,
    timeout: "StartDropped",
    expiry: { step: "release", backOff: false },
  },
  Staging: {
    rows: [onPair(STAGED, "Idle", byAgent("stage"))],
    disruption: "ahead",
    seconds: ({ deadlines }) => deadlines.stageSeconds,
    timeout: "StagingTimeout",
    expiry: { step: "release", backOff: true },
  },
  Holding: {
    rows: [onPair(STAGED, STAGED, { by: "reconciler", to: REBOOTED, once: "drainable" })],
    disruption: "ahead",
    seconds: ({ deadlines }) => deadlines.holdSeconds,
    timeout: "HeldTooLong",
    expiry: { step: "release", backOff: false },
  },
  Draining: {
    rows: [onPair(REBOOTED, STAGED, byAgent("reboot"))],
    disruption: "draining",
    // A forced reboot needs some time after the timeout.
    seconds: ({ drain, deadlines }) =>
      drain.timeoutSeconds + (drain.onTimeout === "Reboot" ? deadlines.rebootSeconds : 0),
    timeout: "DrainTimeout",
    expiry: { step: "reset", afterReboot: false },
  },
  Rebooting: {
    // The pair is that of Draining: `phaseOf`.
    rows: [],
    disruption: "rebooting",
    seconds: ({ deadlines }) => deadlines.rebootSeconds,
    timeout: "RebootTimeout",
    expiry: { step: "freeze" },
  },
  Returning: {
    rows: [
      onPair(REBOOTED, REBOOTED, { by: "reconciler", to: MONITORED, once: "ready" }),
      onPair(MONITORED, REBOOTED, byAgent("giveBack")),
    ],
    disruption: "over",
    seconds: ({ deadlines }) => deadlines.rebootSeconds,
    timeout: "ReturnTimeout",
    expiry: { step: "freeze" },
  },
  Monitoring: {
    rows: [onPair(MONITORED, MONITORED, { by: "reconciler", to: "Idle", once: "healthy" })],
    disruption: "over",
    seconds: ({ health }) => health.minReadySeconds + health.timeoutSeconds,
    timeout: "HealthTimeout",
    expiry: { step: "reset", afterReboot: true },
  },
  Recovering: {
    rows: [
      { wanted: ["Idle"], reported: [STAGED, REBOOTED, MONITORED, "ErrorReset"], move: byAgent("recover") },
      // Only Idle is acted upon after a failure.
      { wanted: [STAGED, REBOOTED, MONITORED], reported: ["none", "ErrorReset"], move: FAILED },
      // The schema of the definition allows it; none of our components wants it.
      { wanted: ["ErrorReset"], reported: ["none", ...STATES], move: FAILED },
    ],
    disruption: "over",
    seconds: ({ deadlines }) => deadlines.recoverSeconds,
    timeout: "RecoveryTimeout",
    expiry: { step: "release", backOff: true },
  },
};

const ROWS = (Object.keys(PHASES) as NodePhase[]).flatMap((phase) =>
  PHASES[phase].rows.map((row) => ({ ...row, phase })),
);

/** A pair that is in no row is in the phase in which the agent works towards the wanted state. */
function placeOf(wanted: State, reported: Reported): { readonly phase: NodePhase; readonly move: Move } {
  const rows = ROWS.filter((row) => row.wanted.includes(wanted));
  const towards = rows.find(({ move }) => move.by === "agent");
  const lost = { phase: towards?.phase ?? "Recovering", move: { by: "nobody" } } as const;
  return rows.find((row) => row.reported.includes(reported)) ?? lost;
}

/** The move for a wanted and a reported state; the latter is undefined before the agent has reported. */
export const moveFor = (wanted: State, reported: State | undefined): Move => placeOf(wanted, reported ?? "none").move;

/** The phase by the shadow as it is; `Done` once both states are Idle. */
export function phaseOf(node: UpdateNode, entry: ActiveNode): NodePhase | "Done" {
  const { spec, status } = node.shadow ?? { spec: DEFAULT_SPEC };
  const { phase } = placeOf(spec.state, status?.current_state ?? "none");
  if (phase === "Starting") return entry.phase === "Starting" ? "Starting" : "Done";
  const isRebooting = Boolean(status?.rebooting) || hasRebooted(node, entry);
  return phase === "Draining" && isRebooting ? "Rebooting" : phase;
}

/** Seconds that a node may be in a phase. */
export const deadlineOf = (phase: NodePhase, policy: Parameters<Phase["seconds"]>[0]): number =>
  PHASES[phase].seconds(policy);

/** True if the node runs in another boot than the one in which its update began. */
export function hasRebooted({ bootId, shadow }: UpdateNode, entry: ActiveNode): boolean {
  if (entry.bootId === "") return false;
  const reported = shadow?.status?.boot_id ?? "";
  return [bootId, reported].some((id) => id !== "" && id !== entry.bootId);
}

/** A reboot was announced: it may go down at any moment, and nothing uncordons it before it is back. */
export function isInReboot({ shadow, bootId, ready }: UpdateNode): boolean {
  const rebooting = shadow?.status?.rebooting;
  return Boolean(rebooting) && (!ready || bootId === "" || bootId === rebooting?.boot_id);
}

/** No update is under way: Idle is wanted and reported. */
export const isIdle = ({ spec, status }: { readonly spec: ShadowSpec; readonly status?: ShadowStatus | undefined }) =>
  spec.state === "Idle" && status?.current_state === "Idle";
