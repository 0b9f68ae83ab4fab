/**
 * One pass over all groups: list the StatefulSets, then begin a step of each group, 8 at a time at most and
 * independently of each other. The tick ends once each step is done or slow; a slow one goes on beside the next ticks
 * (steps.ts).
 */
import { visitEach } from "../../infra/slots.ts";
import { NO_TRACER, type Span } from "../../infra/tracing/tracer.ts";
import { earliest } from "../../infra/timestamp.ts";
import { gatherZones } from "../snapshot/gather.ts";
import type { Checker } from "../checks/act/ask-prometheus.ts";
import type { Gates } from "../gates/act/tick-gates.ts";
import { hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";
import type { PhasedInput, PhasedTick } from "../phased/act/phased-tick.ts";
import { createGroupTurns, type GroupTurns, type WhyLeft } from "./group-turns.ts";
import type { Draft } from "../report/events.ts";
import type { Outcome, TickResult } from "../model/outcome.ts";
import { decideByStatus } from "../rollout/decide-rollout.ts";
import { createResyncs, type ResyncOptions } from "./resync-pods.ts";
import { type Gathered, stepGroup, type StepInput } from "./step-group.ts";
import {
  createPatientSteps,
  MAX_SLOW,
  MAX_SLOW_OF_NAMESPACE,
  namespaceOf,
  type StepResult,
  type Steps,
} from "./steps.ts";

const GROUPS_AT_A_TIME = 8;

/** Key of the step of all PhasedRollouts, which belongs to no namespace. */
const PHASED = "/phased";

export interface TickInput extends StepInput {
  /** "" for all namespaces. */
  readonly namespaces: readonly string[];
  /** The groups to resync, and those to start first; groups by `<namespace>/<group>`. */
  readonly turns: {
    /** True for a group whose pods must be read even if its status shows that it is settled. */
    readonly isResyncDue: (key: string) => boolean;
    /** Spreads due resyncs over ticks (resync-pods.ts). */
    readonly sinceLastMs?: ResyncOptions["sinceLastMs"];
    /** Called before a group is begun that is read even if it is settled. */
    readonly onResync?: (key: string) => void;
    /**
     * Annotations of the Lease, which outlive ticks and processes, for a tick without memory; without them it starts
     * with the first group.
     */
    readonly annotations?: Map<string, string>;
    /** Shared by all ticks under a Lease. */
    readonly memory?: GroupTurns;
  };
  /** Shared by all ticks under a Lease; without them the tick waits for every step. */
  readonly steps?: Steps;
  /** Asks Prometheus beside the groups, and holds zones back by gates. */
  readonly checking: { readonly checker: Checker; readonly gates: Gates };
  /** Advances PhasedRollouts beside the groups. */
  readonly phased: PhasedTick;
  readonly report: StepInput["report"] & {
    /** Records Events. */
    readonly emitEvents: (drafts: readonly Draft[]) => void;
    /** Called with each outcome at once, and with the milliseconds that the group took. */
    readonly onOutcome: (outcome: Outcome, tookMs: number) => void;
  };
}

/** Rejects only if the StatefulSets could not be listed; an error in one group becomes its outcome. */
export async function tick(input: TickInput): Promise<TickResult> {
  const { context, namespaces, turns, budgets, checking, report, steps = createPatientSteps() } = input;
  const { clock, stop, tracer = NO_TRACER } = context;
  const { memory = createGroupTurns(clock, turns.annotations ?? new Map()) } = turns;
  // Read before the lists: a step that ends while they are read has outdated them.
  const busy = steps.underWay();
  for (const key of busy) memory.leave(key, "busy");
  const gatheredAt = clock.monotonic();
  const scope = { ...context, namespaces, emitEvents: report.emitEvents };
  const beginRound = () => checking.checker.begin(stop);
  const [list, gates] = await Promise.all([
    gatherZones(namespaces, context),
    checking.gates.begin(context, { namespaces, emitEvents: report.emitEvents, beginRound }),
  ]);
  const advancing = handled(busy.has(PHASED) ? undefined : steps.start(PHASED, () => advancePhased(scope, input)));
  const budgetLists = await budgets.maintenance.beginTick(namespaces);
  const queue = memory.order(list.groups, busy);
  const resyncs = createResyncs(queue, { isDue: turns.isResyncDue, sinceLastMs: turns.sinceLastMs }, context);
  const others = handled(budgets.maintenance.sweep(context));
  const beganAt = clock.monotonic();
  const whyLeave = createLeaver(steps, beganAt);
  let reached = 0;
  await visitEach(queue, { atOnce: GROUPS_AT_A_TIME, signal: stop }, async (turn) => {
    const { key, group: zones } = turn;
    const why = whyLeave(namespaceOf(key));
    if (why !== "noTime") reached++;
    if (why === "namespaceFull") memory.pass(turn);
    if (why) return reportWaiting(zones, { why, leftMs: memory.leave(key, why === "noTime" ? why : "noRoom") }, input);
    // Before the group is reconciled, as the process may be killed.
    memory.begin(turn);
    const resync = resyncs.begin(key);
    if (resync) turns.onResync?.(key);
    await steps.start(key, () => {
      const given = { budgetLists, gatheredAt, gates, resync };
      return tracer.span(
        () => spanOf(zones),
        (span) => takeTurn([key, zones], { ...given, span }, input),
      );
    });
  });
  await Promise.all([others, advancing, gates.end(list)]);
  return { ...list, skipped: queue.length - reached, underWay: steps.underWay().size, ...summarize(steps.take()) };
}

/** The same promise; its error does not remain unhandled if the tick rejects before it is awaited. */
function handled<T>(work: Promise<T> | undefined): Promise<T> | undefined {
  work?.catch(() => {});
  return work;
}

/** Why a tick does not begin a group of a namespace now. */
type Obstacle = Exclude<WhyLeft, "busy" | "noRoom"> | "namespaceFull" | "allFull";

/** Once a tick has left out a group for lack of room, it begins no later one there: the order would be lost. */
function createLeaver(steps: Steps, beganAt: number): (namespace: string) => Obstacle | undefined {
  const full = new Set<string>();
  let isFull = false;
  return (namespace) => {
    if (!steps.hasTime(beganAt)) return "noTime";
    isFull ||= !steps.hasRoom();
    if (isFull) return "allFull";
    if (!steps.hasRoom(namespace)) full.add(namespace);
    return full.has(namespace) ? "namespaceFull" : undefined;
  };
}

/** The result of this tick's steps, and of slow ones of earlier ticks that have ended. */
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

const spanOf = ([zone]: readonly Zone[]) => ({
  name: "group",
  attributes: { "k8s.namespace.name": zone?.namespace, "zonewise.group": zone?.group },
});

/** The group's step, and meanwhile the checks of its gates. */
async function takeTurn(
  [key, zones]: readonly [string, readonly Zone[]],
  { span, ...gathered }: Gathered & { readonly span: Span },
  input: TickInput,
): Promise<StepResult> {
  const { context, report } = input;
  const { clock } = context;
  const startedAt = clock.monotonic();
  const outcome = await stepGroup(zones, gathered, input);
  report.onOutcome(outcome, clock.monotonic() - startedAt);
  const { state } = outcome;
  const reason = state === "held" ? outcome.hold.reason : undefined;
  span.set({ "zonewise.outcome": state, "zonewise.reason": reason });
  const { progressed, nextAt } = await gathered.gates.endGroup(key);
  return { outcome, acted: progressed || outcome.state === "acted", dueAt: nextAt };
}

async function advancePhased(
  phased: Omit<PhasedInput, "round">,
  { checking, phased: advance }: TickInput,
): Promise<StepResult> {
  using round = checking.checker.begin(phased.stop);
  return await advance({ ...phased, round });
}

/**
 * Milliseconds for which a group may wait for its turn without a report. A group whose status is settled may wait for
 * ever.
 */
const TURN_PATIENCE_MS = 30_000;

const OBSTACLES: Readonly<Record<Obstacle, string>> = {
  noTime: "the groups before it take all the time in which ticks begin groups",
  namespaceFull: `steps of other groups of its namespace take long, and beside ${MAX_SLOW_OF_NAMESPACE} of these no other is begun`,
  allFull: `steps of other groups take long, and beside ${MAX_SLOW} of these no other is begun`,
};

/** Reports a group that ticks have left out for long, with the reason. */
function reportWaiting(
  zones: readonly Zone[],
  { why, leftMs }: { readonly why: Obstacle; readonly leftMs: number },
  { report }: TickInput,
): void {
  const [first] = zones;
  if (!first || leftMs < TURN_PATIENCE_MS || decideByStatus(zones) === undefined) return;
  const { namespace, group } = first;
  const held = {
    ...hold("TurnAwaited", `group ${group} waits for its turn: ${OBSTACLES[why]}`, [first]),
    dedupKey: "",
  };
  report.onOutcome({ namespace, group, zones, scalingHolds: [], notes: [], state: "held", hold: held }, 0);
}
