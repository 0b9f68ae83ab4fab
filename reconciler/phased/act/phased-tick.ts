/**
 * The tick of all PhasedRollouts, beside that of the groups (§16):
 *
 *   list PhasedRollouts and StatefulSets -> each: decide, check if due, write -> when is the next one due?
 *
 * A settled tick costs the two lists. Without the definition it costs one call a minute, and one log line.
 */
import type { Clock } from "../../../infra/clock.ts";
import { hasCode, isSuperseded } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { createOptionalKind } from "../../../infra/kubernetes/optional-kind.ts";
import { readEach } from "../../../infra/kubernetes/read-each.ts";
import type { Log } from "../../../infra/log.ts";
import type { CheckMetrics } from "../../../infra/metrics/metrics.ts";
import { createSlots, type Slots } from "../../../infra/slots.ts";
import { earliest } from "../../../infra/timestamp.ts";
import type { Round } from "../../checks/act/ask-prometheus.ts";
import type { SuccessWhen } from "../../checks/check.ts";
import type { PhasedList } from "../../model/outcome.ts";
import type { Recorder } from "../../report/act/recorder.ts";
import type { MayDisrupt } from "../../budget/act/may-disrupt.ts";
import { type GatheredRollout, type GatheredRollouts, gatherRollouts } from "./gather-rollouts.ts";
import { createNarrator, type Narrator } from "./narrate.ts";
import { visitRollout, type Visitor } from "./visit-rollout.ts";

export interface PhasedInput extends Context {
  /** "" for all. */
  readonly namespaces: readonly string[];
  readonly round: Round;
  /** Records Events. */
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
  readonly metrics: CheckMetrics;
  readonly mayDisrupt: MayDisrupt;
  readonly successWhen: SuccessWhen;
}

/** Concurrent visits, without those that wait for Prometheus. */
const AT_A_TIME = 64;
const MISSING_FOR_MS = 60_000;
const NOTHING: PhasedResult = { acted: false, failed: false };

export function createPhasedTick(tools: PhasedTools): PhasedTick {
  const narrator = createNarrator(tools.log);
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
      const visited = await visitAll(rollouts, { ...tools, ...input, narrator });
      // Those of a namespace that could not be read live on.
      if (!read.failed) narrator.endTick(rollouts.map(({ rollout }) => rollout));
      return { ...visited, failed: read.failed || visited.failed, lists: gathered.map(({ list }) => list) };
    } catch (error) {
      if (input.stop.aborted) return NOTHING;
      tools.log.error("the PhasedRollouts could not be read", { error });
      return { acted: false, failed: true };
    }
  };
}

interface Visiting extends PhasedInput, Omit<PhasedTools, "clock"> {
  readonly narrator: Narrator;
}

async function visitAll(gathered: readonly GatheredRollout[], input: Visiting): Promise<PhasedResult> {
  const places = createSlots(AT_A_TIME);
  const results = await Promise.all(gathered.map((one) => visitInPlace(one, places, input).catch(() => NOTHING)));
  const dueAt = earliest(results.map((result) => result.dueAt));
  return {
    acted: results.some(({ acted }) => acted),
    failed: results.some(({ failed }) => failed),
    ...(dueAt !== undefined && { dueAt }),
  };
}

/**
 * A visit that waits for Prometheus gives its place to others: endpoints that do not answer must not hold them up.
 * Rejects if the tick ends before.
 */
async function visitInPlace(one: GatheredRollout, places: Slots, input: Visiting): Promise<PhasedResult> {
  let place = await places.take(input.stop);
  const ask: Round["ask"] = async (question) => {
    place[Symbol.dispose]();
    const answer = await input.round.ask(question);
    place = await places.take();
    return answer;
  };
  try {
    return await visitOne(one, { ...input, round: { ask } });
  } finally {
    place[Symbol.dispose]();
  }
}

/** An error in one PhasedRollout does not affect the others. */
async function visitOne(
  first: GatheredRollout,
  input: Omit<Visiting, "round"> & Pick<Visitor, "round">,
): Promise<PhasedResult> {
  const { narrator, emitEvents, log } = input;
  try {
    const onWrite = narrator.narrate(emitEvents);
    const { acted, dueAt } = await visitRollout(first, { ...input, onWrite });
    return { acted, failed: false, dueAt };
  } catch (error) {
    // Soon, but not at once: an object that cannot be written for good must not keep the ticks busy.
    if (isSuperseded(error)) return { acted: false, failed: false, dueAt: input.clock.now() };
    if (hasCode(error, "LeaseLost", "Cancelled")) return NOTHING;
    const { namespace, name } = first.rollout;
    log.error("the PhasedRollout could not be reconciled", { namespace, phasedRollout: name, error });
    return { acted: false, failed: true };
  }
}
