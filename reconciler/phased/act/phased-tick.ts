/**
 * The tick of all PhasedRollouts, beside that of the groups (§16):
 *
 *   list PhasedRollouts and StatefulSets -> each: decide -> write -> read it again -> decide ... until only waiting is left
 *     -> when is the next one due?
 *
 * A settled tick costs the two lists. Without the definition it costs one call a minute, and one log line.
 */
import type { Clock } from "../../../infra/clock.ts";
import { hasCode, isSuperseded } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { createOptionalKind } from "../../../infra/kubernetes/optional-kind.ts";
import { readEach } from "../../../infra/kubernetes/collect.ts";
import type { Log } from "../../../infra/log.ts";
import { earliest, parseTimestamp } from "../../../infra/timestamp.ts";
import type { Round } from "../../checks/act/ask-prometheus.ts";
import type { CheckAnswer, SuccessWhen, Urgency } from "../../checks/check.ts";
import type { PhasedList } from "../../model/outcome.ts";
import type { Recorder } from "../../report/act/reporter.ts";
import type { MayDisrupt } from "../../budget/act/may-disrupt.ts";
import {
  type GatheredRollout,
  type GatheredRollouts,
  gatherAgain,
  gatherPods,
  gatherRollouts,
} from "./gather-rollouts.ts";
import { narrate } from "./narrate.ts";
import { hasNoCandidate, phasedPlaceholders } from "../placeholder-values.ts";
import { decidePhased } from "../decide-phased.ts";
import type { PhasedSnapshot } from "../snapshot.ts";
import { type Write, takePhasedStep } from "./take-phased-step.ts";

export interface PhasedInput extends Context {
  /** "" for all. */
  readonly namespaces: readonly string[];
  readonly round: Round;
  readonly emitEvents: Recorder["emitEvents"];
}

export interface PhasedResult {
  /** Something was written that the cluster will react to: the next tick follows at once. */
  readonly acted: boolean;
  /** Some could not be read or written. */
  readonly failed: boolean;
  /** The lists that were read; none if reading failed. */
  readonly lists?: readonly PhasedList[];
  /** When the next check or delay is due, milliseconds since the epoch. */
  readonly dueAt?: number | undefined;
}

/** Never rejects. */
export type PhasedTick = (input: PhasedInput) => Promise<PhasedResult>;

export interface PhasedTools {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
  readonly mayDisrupt: MayDisrupt;
  readonly successWhen: SuccessWhen;
}

const MISSING_FOR_MS = 60_000;
const NOTHING: PhasedResult = { acted: false, failed: false };

export function createPhasedTick(tools: PhasedTools): PhasedTick {
  const kind = createOptionalKind(
    {
      capability: "phased rollouts",
      definition: "the definition phasedrollouts.sts.plus",
      againAfterMs: MISSING_FOR_MS,
    },
    tools,
  );

  /** A namespace that cannot be read does not hold up the others. Rejects if none can be read. */
  async function gatherAll(input: PhasedInput): Promise<{ gathered: readonly GatheredRollouts[]; failed: boolean }> {
    const { results: gathered, failures } = await readEach(
      input.namespaces,
      (namespace) => gatherRollouts(namespace, tools.successWhen, input),
      // The kind is missing in all namespaces alike.
      (error) => input.stop.aborted || hasCode(error, "NotFound"),
    );
    for (const [namespace, error] of failures)
      tools.log.error("the PhasedRollouts of a namespace could not be read", { namespace, error });
    return { gathered, failed: failures.size > 0 };
  }

  return async (input) => {
    try {
      const read = await kind.read(() => gatherAll(input));
      if (!read) return NOTHING;
      const { gathered } = read;
      const rollouts = gathered.flatMap((one) => one.rollouts);
      const visited = await visitAll(rollouts, { ...tools, ...input });
      return { ...visited, failed: read.failed || visited.failed, lists: gathered.map(({ list }) => list) };
    } catch (error) {
      if (input.stop.aborted) return NOTHING;
      tools.log.error("the PhasedRollouts could not be read", { error });
      return { acted: false, failed: true };
    }
  };
}

type Visitor = PhasedInput & PhasedTools;

/** Side by side: an endpoint that does not answer delays only its own PhasedRollouts. */
async function visitAll(gathered: readonly GatheredRollout[], visitor: Visitor): Promise<PhasedResult> {
  const results = await Promise.all(gathered.map((one) => visitOne(one, visitor)));
  const dueAt = earliest(results.map((result) => result.dueAt));
  return {
    acted: results.some(({ acted }) => acted),
    failed: results.some(({ failed }) => failed),
    ...(dueAt !== undefined && { dueAt }),
  };
}

/** An error in one PhasedRollout does not affect the others. */
async function visitOne(first: GatheredRollout, visitor: Visitor): Promise<PhasedResult> {
  try {
    return await visitRollout(first, visitor);
  } catch (error) {
    // Soon, but not at once: an object that can never be written must not keep the ticks busy.
    if (isSuperseded(error)) return { ...NOTHING, dueAt: visitor.clock.now() };
    if (hasCode(error, "LeaseLost", "Cancelled")) return NOTHING;
    const { namespace, name } = first.rollout;
    visitor.log.error("the PhasedRollout could not be reconciled", { namespace, phasedRollout: name, error });
    return { ...NOTHING, failed: true };
  }
}

/** More than any sequence of steps that do not wait. */
const MAX_STEPS = 10;

/** Throws the error of the API server, `LeaseLost`, or `Conflict` if another writer was faster. */
async function visitRollout(first: GatheredRollout, visitor: Visitor): Promise<PhasedResult> {
  const { clock, fence, stop } = visitor;
  let gathered = first;
  let acted = false;
  for (let steps = 0; steps < MAX_STEPS && !stop.aborted; steps++) {
    const decision = await decide(gathered, visitor);
    if (!decision) return { acted, failed: false, dueAt: clock.now() };
    const hold = await takePhasedStep(decision, gathered, visitor);
    narrate({ decision, rollout: gathered.rollout, hold }, visitor);
    if (hold) return { acted, failed: false };
    if (decision.action !== "report") acted = true;
    else if (decision.dueAt === undefined || decision.dueAt > clock.now())
      return { acted, failed: false, dueAt: decision.dueAt };
    const again = await gatherAgain(gathered, visitor, fence.write());
    if (!again) return { acted, failed: false };
    gathered = again;
  }
  if (stop.aborted) return { acted, failed: false };
  const { namespace, name } = first.rollout;
  visitor.log.error("the PhasedRollout comes to no end: something undoes or changes what is written for it", {
    namespace,
    phasedRollout: name,
  });
  // The next tick must not follow at once.
  return { ...NOTHING, failed: true };
}

/** The next write; undefined if Prometheus could not be asked in this tick. */
async function decide(gathered: GatheredRollout, visitor: Visitor): Promise<Write | undefined> {
  const snapshot: PhasedSnapshot = { ...gathered, pods: await gatherPods(gathered, visitor), now: visitor.clock.now() };
  const first = decidePhased(snapshot);
  if (first.action !== "check") return first;
  const answer = await askCheck(snapshot, first, visitor);
  const then = answer && decidePhased({ ...snapshot, answer, now: Math.max(snapshot.now, answer.at) });
  return then?.action === "check" ? undefined : then;
}

/** Before the first pod a comparison has no candidate, and asks nothing: it must not block that pod for ever. */
async function askCheck(
  { target, ...snapshot }: PhasedSnapshot,
  { dueAt, isTroubled }: Urgency,
  { round }: Visitor,
): Promise<CheckAnswer | undefined> {
  const { namespace, check, status } = snapshot.rollout;
  const own = target && { ...snapshot, target };
  if (own && hasNoCandidate(own))
    return { kind: "Comparison", isWithin: true, text: "no pod is updated yet", at: snapshot.now };
  const startedAt = parseTimestamp(status.rolloutStartTime ?? "");
  return await round.ask({
    namespace,
    query: check.query,
    baseline: check.baseline,
    dueAt,
    isTroubled,
    ...(own && { values: phasedPlaceholders(own) }),
    ...(startedAt !== undefined && { startedAt }),
  });
}
