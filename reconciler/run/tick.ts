/**
 * One pass over all groups: lists once what they are decided by, and gives the queue a step for each group with these
 * facts. The tick ends once its steps are done, or after a second: slow steps, and groups that wait for their turn, go
 * on beside the next ticks.
 */
import { NO_TRACER } from "../../infra/tracing/tracer.ts";
import { earliest } from "../../infra/timestamp.ts";
import type { Context } from "../../infra/kubernetes/context.ts";
import type { Checker } from "../checks/act/ask-prometheus.ts";
import type { Gates } from "../gates/act/tick-gates.ts";
import { hold } from "../model/decision.ts";
import { spreadHash } from "../../infra/hash.ts";
import type { Outcome, PhasedList, TickResult } from "../model/outcome.ts";
import { groupKey, type Zone } from "../model/zone.ts";
import type { PhasedTick } from "../phased/act/phased-tick.ts";
import type { Draft } from "../report/events.ts";
import { decideByStatus } from "../rollout/decide-rollout.ts";
import { gatherZones } from "../snapshot/gather.ts";
import { Queue, type Work } from "./queue.ts";
import { type Facts, stepGroup, type StepInput } from "./step-group.ts";

export interface TickInput extends Omit<StepInput, "report"> {
  /** "" for all namespaces. */
  readonly namespaces: readonly string[];
  /** The steps of the ticks under one Lease. */
  readonly steps: Steps;
  /** Asked as the step of a group, by its key, begins: true if the group is to be read whole even if it is settled. */
  readonly takeResync: (key: string) => boolean;
  /** Asks Prometheus beside the groups, and holds zones back by gates. */
  readonly checking: { readonly checker: Checker; readonly gates: Gates };
  /** Advances PhasedRollouts beside the groups. */
  readonly phased: PhasedTick;
  readonly report: Pick<StepInput["report"], "timesSuperseded"> & {
    readonly emitEvents: (drafts: readonly Draft[]) => void;
    /** Called with each outcome at once, and with the milliseconds that the group took. */
    readonly onOutcome: (outcome: Outcome, tookMs: number) => void;
    /** Called with an error that no step should have. */
    readonly onError?: (error: unknown, key: string) => void;
  };
}

export interface Steps {
  /** Paused since before anything was read that the tick decides by. */
  readonly queue: Queue;
  /** The results that no tick has reported yet. */
  readonly ended: StepResult[];
  /** Called with the result of each step as it ends. Pauses listen; during a tick nobody does, as it reads `ended`. */
  onEnd: (result: StepResult) => void;
  /** The place in the circle of all groups where the ticks begin, 32 bits. */
  readonly from: number;
  /** Milliseconds for which a tick waits for its steps. */
  readonly patienceMs: number;
}

export interface StepResult {
  /** Undefined for the step of the PhasedRollouts, which belongs to no group. */
  readonly outcome?: Outcome;
  /** Something was written that the cluster will react to, or a gate has opened: the next tick follows at once. */
  readonly acted: boolean;
  /** When its next check is due, milliseconds since the epoch. */
  readonly dueAt?: number | undefined;
  readonly failed?: boolean;
  /** The lists of PhasedRollouts, of the step that reads them. */
  readonly lists?: readonly PhasedList[];
}

/** So many steps at once: each has the pods of its group in memory. */
const AT_ONCE = 32;
/** Of one namespace. */
const OF_NAMESPACE = 8;
const PATIENCE_MS = 1000;

/** Key of the step of all PhasedRollouts, which belongs to no namespace. */
const PHASED = "/phased";

/** For ticks under one Lease, which begin at `now`. */
export function createSteps(
  { clock, stop }: Pick<Context, "clock" | "stop">,
  { onOwed, isPatient }: { readonly onOwed: () => void; readonly isPatient: boolean },
): Steps {
  const limits = { atOnce: AT_ONCE, ofNamespace: OF_NAMESPACE };
  const queue = new Queue({ ...limits, monotonic: clock.monotonic, signal: stop, onOwed });
  const patienceMs = isPatient ? Infinity : PATIENCE_MS;
  return { queue, ended: [], onEnd: () => {}, from: placeOfRun(clock.now()), patienceMs };
}

/** Rejects only if the StatefulSets could not be listed; an error in one group becomes its outcome. */
export async function tick(input: TickInput): Promise<TickResult> {
  const { context, namespaces, checking, report, steps } = input;
  const gatheredAt = context.clock.monotonic();
  const beginRound = () => checking.checker.begin(context.stop);
  const [list, gates] = await Promise.all([
    gatherZones(namespaces, context),
    checking.gates.begin(context, { namespaces, emitEvents: report.emitEvents, beginRound }),
  ]);
  const facts = { gatheredAt, gates };

  const works = new Map([[PHASED, toWork(PHASED, () => advancePhased(input), { steps, report })]]);
  for (const [key, zones] of inCircle(list.groups, steps.from))
    works.set(
      key,
      toWork(key, () => step(zones, facts, input), { steps, report }),
    );
  // This tick is the one that follows these, or another is owed to them.
  const late = steps.ended.splice(0).map((result) => ({ ...result, acted: false, dueAt: undefined }));
  const done = steps.queue.resume(works);
  await Promise.all([within(steps.patienceMs, done, context), gates.end(list)]);
  const skipped = reportWaiting(list.groups, steps.queue, input);
  return { ...list, skipped, underWay: steps.queue.size, ...summarize([...late, ...steps.ended.splice(0)]) };
}

/** Where a run begins in the circle of all groups: the golden ratio spreads the runs of successive minutes evenly. */
const placeOfRun = (now: number): number => Math.imul(Math.floor(now / 60_000), 0x9e3779b9) >>> 0;

/**
 * All groups stand in one circle, by a hash of their keys. Runs that are cut off reach all of them, as each begins
 * elsewhere.
 */
function inCircle<T>(groups: ReadonlyMap<string, T>, from: number): (readonly [string, T])[] {
  const placed = [...groups].map((entry) => ({ entry, place: (spreadHash(entry[0]) - from) >>> 0 }));
  return placed.toSorted((a, b) => a.place - b.place).map(({ entry }) => entry);
}

/** The work of a step; its error stays its own. */
function toWork(
  key: string,
  step: () => Promise<StepResult>,
  { steps, report }: Pick<TickInput, "report"> & { readonly steps: Steps },
): Work {
  return async () => {
    const result = await step().catch((error: unknown): StepResult => {
      report.onError?.(error, key);
      return { acted: false, failed: true };
    });
    steps.ended.push(result);
    steps.onEnd(result);
  };
}

/** One group's step, and meanwhile the checks of its gates. */
async function step(zones: readonly Zone[], gathered: Omit<Facts, "isResync">, input: TickInput): Promise<StepResult> {
  const { context, report, takeResync } = input;
  const { clock, tracer = NO_TRACER } = context;
  const [{ namespace, group } = { namespace: "", group: "" }] = zones;
  const key = groupKey({ namespace, group });
  const attributes = { "k8s.namespace.name": namespace, "zonewise.group": group };
  return await tracer.span(
    () => ({ name: "group", attributes }),
    async (span) => {
      const startedAt = clock.monotonic();
      const onEnd = (outcome: Outcome): void => report.onOutcome(outcome, clock.monotonic() - startedAt);
      const facts = { ...gathered, isResync: takeResync(key) };
      const outcome = await stepGroup(zones, facts, { ...input, report: { ...report, onFinished: onEnd } });
      onEnd(outcome);
      const { state } = outcome;
      const reason = state === "held" ? outcome.hold.reason : undefined;
      span.set({ "zonewise.outcome": state, "zonewise.reason": reason });
      const { progressed, nextAt } = await gathered.gates.endGroup(key);
      return { outcome, acted: progressed || state === "acted", dueAt: nextAt };
    },
  );
}

async function advancePhased({ context, namespaces, checking, phased, report }: TickInput): Promise<StepResult> {
  using round = checking.checker.begin(context.stop);
  return await phased({ ...context, namespaces, emitEvents: report.emitEvents, round });
}

async function within(ms: number, steps: Promise<void>, { clock }: Context): Promise<void> {
  if (ms === Infinity) return await steps;
  const done = new AbortController();
  await Promise.race([steps, clock.sleep(ms, done.signal)]).finally(() => done.abort("done"));
}

/** The result of the steps that have ended since the tick before. */
function summarize(
  results: readonly StepResult[],
): Pick<TickResult, "outcomes" | "acted" | "nextCheckAt" | "phasedLists" | "phasedFailed"> {
  return {
    outcomes: results.flatMap(({ outcome }) => outcome ?? []),
    acted: results.some(({ acted }) => acted),
    nextCheckAt: earliest(results.map(({ dueAt }) => dueAt)),
    phasedLists: results.findLast(({ lists }) => lists !== undefined)?.lists,
    phasedFailed: results.some(({ failed }) => failed),
  };
}

/**
 * Milliseconds for which a group may wait for its turn without a report. A group whose status is settled may wait for
 * ever.
 */
const TURN_PATIENCE_MS = 30_000;

/** Reports the groups that have waited for long, unless none begins any more. Returns how many wait. */
function reportWaiting(groups: TickResult["groups"], queue: Queue, { context, report }: TickInput): number {
  const now = context.clock.monotonic();
  const waiting = [...groups].flatMap(([key, zones]) => {
    const since = queue.waitsSince(key);
    return since === undefined ? [] : [{ zones, since }];
  });
  for (const { zones, since } of context.stop.aborted ? [] : waiting) {
    const [first] = zones;
    if (!first || now - since < TURN_PATIENCE_MS || decideByStatus(zones) === undefined) continue;
    const { namespace, group } = first;
    const slow = queue.inPlaceOf(namespace).filter((key) => key !== PHASED);
    const where = slow.every((key) => key.startsWith(`${namespace}/`)) ? " of its namespace" : "";
    const message = `group ${group} waits for its turn: ${slow.length} other groups${where} take long, and no more are worked on at once`;
    const held = { ...hold("TurnAwaited", message, [first]), dedupKey: "" };
    report.onOutcome({ namespace, group, zones, scalingHolds: [], notes: [], state: "held", hold: held }, 0);
  }
  return waiting.length;
}

const RESYNC_PERIOD_MS = 5 * 60_000;

/**
 * True if the group's moment in the period of resyncs has come since `since`: each group has its own, by a hash of its
 * key. Milliseconds since the epoch.
 */
export function isResyncDue(key: string, since: number | undefined, now: number): boolean {
  if (since === undefined || since > now) return true;
  const position = spreadHash(key) % RESYNC_PERIOD_MS;
  const sinceMoment = (((now - position) % RESYNC_PERIOD_MS) + RESYNC_PERIOD_MS) % RESYNC_PERIOD_MS;
  return now - sinceMoment > since;
}
