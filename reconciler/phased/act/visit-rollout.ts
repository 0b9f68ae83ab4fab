/**
 * Advances one PhasedRollout as far as possible now: decide -> write -> read it again -> decide ..., until nothing is
 * to be written, or only waiting is left.
 *
 * At most one write a decision. The process may die between any two.
 */
import type { CheckMetrics } from "../../../infra/metrics/metrics.ts";
import type { Round } from "../../checks/act/ask-prometheus.ts";
import { type CheckAnswer, judgeAnswer, type SuccessWhen, type Urgency } from "../../checks/check.ts";
import { parseTimestamp } from "../../../infra/timestamp.ts";
import { hasNoCandidate, phasedPlaceholders } from "../placeholder-values.ts";
import type { DisruptionContext } from "../../budget/act/may-disrupt.ts";
import type { Hold } from "../../model/decision.ts";
import { decidePhased } from "../decide-phased.ts";
import type { PhasedDecision, PhasedSnapshot } from "../snapshot.ts";
import { gatherAgain, type GatheredRollout, gatherPods } from "./gather-rollouts.ts";
import { takePhasedStep, type Write } from "./take-phased-step.ts";

export interface Visitor extends DisruptionContext {
  readonly round: Pick<Round, "ask">;
  /** The rule for a successful check, if its object sets none. */
  readonly successWhen: SuccessWhen;
  readonly metrics: CheckMetrics;
  /** Called after each write, and with the hold in place of one. */
  readonly onWrite: (decision: Write, gathered: GatheredRollout, hold: Hold | undefined) => void;
}

interface Visit {
  /** Something other than a status was written: the cluster changes soon. */
  readonly acted: boolean;
  /** When it is due again, milliseconds since the epoch; undefined if it waits for a change of the cluster. */
  readonly dueAt?: number | undefined;
}

/** More than any sequence of steps that do not wait; the next tick goes on, a moment later. */
const MAX_STEPS = 10;

/** Throws the error of the API server, `LeaseLost`, or `Conflict` if another writer was faster. */
export async function visitRollout(first: GatheredRollout, visitor: Visitor): Promise<Visit> {
  let gathered = first;
  let acted = false;
  for (let steps = 0; steps < MAX_STEPS && !visitor.stop.aborted; steps++) {
    const decision = await decide(gathered, visitor);
    if (!decision) return { acted, dueAt: visitor.clock.now() };
    const hold = await takePhasedStep(decision, gathered, visitor);
    visitor.onWrite(decision, gathered, hold);
    if (hold) return { acted };
    if (decision.action !== "report") acted = true;
    else if (decision.dueAt === undefined || decision.dueAt > visitor.clock.now())
      return { acted, dueAt: decision.dueAt };
    const again = await gatherAgain(gathered, visitor, visitor.fence.write());
    if (!again) return { acted };
    gathered = again;
  }
  // Other writers or a webhook undo our writes. The next tick must not follow at once.
  return { acted: false, dueAt: visitor.clock.now() };
}

/** The next write; undefined if Prometheus could not be asked in this tick. */
async function decide(gathered: GatheredRollout, visitor: Visitor): Promise<Write | undefined> {
  const snapshot: PhasedSnapshot = { ...gathered, pods: await gatherPods(gathered, visitor), now: visitor.clock.now() };
  const decision = decidePhased(snapshot);
  if (decision.action !== "check") return decision;
  const { check } = gathered.rollout;
  const answer = await askCheck(snapshot, decision, visitor);
  if (!answer) return undefined;
  visitor.metrics.checked(judgeAnswer(check, answer));
  return afterAnswer(snapshot, answer);
}

/** Before the first pod a comparison has no candidate, and asks nothing: it must not block that pod for ever. */
async function askCheck(
  { target, ...snapshot }: PhasedSnapshot,
  { dueAt, isTroubled }: Urgency,
  { round }: Visitor,
): Promise<CheckAnswer | undefined> {
  const { namespace, check, status } = snapshot.rollout;
  const { query, baseline } = check;
  const own = target && { ...snapshot, target };
  if (own && hasNoCandidate(own))
    return { kind: "Comparison", isWithin: true, text: "no pod is updated yet", at: snapshot.now };
  const startedAt = parseTimestamp(status.rolloutStartTime ?? "");
  return await round.ask({
    namespace,
    query,
    baseline,
    dueAt,
    isTroubled,
    ...(own && { values: phasedPlaceholders(own) }),
    ...(startedAt !== undefined && { startedAt }),
  });
}

function afterAnswer(snapshot: PhasedSnapshot, answer: CheckAnswer): Write | undefined {
  const decision: PhasedDecision = decidePhased({ ...snapshot, answer, now: Math.max(snapshot.now, answer.at) });
  return decision.action === "check" ? undefined : decision;
}
