/**
 * One step of one group: gather -> decide -> act.
 *
 *   settled by its status? -> done
 *   otherwise list its pods -> decideUngated -> what its gates make of that (passGates) -> act -> outcome
 */
import { hasCode, isSuperseded } from "../../infra/errors.ts";
import type { Context } from "../../infra/kubernetes/context.ts";
import type { Attributes } from "../../infra/tracing/tracer.ts";
import { gatherGroup } from "../snapshot/gather.ts";
import type { GroupGates, TickGates } from "../gates/act/tick-gates.ts";
import { wantedBy } from "../gates/rollout.ts";
import { groupKey, type GroupSnapshot, type Zone } from "../model/zone.ts";
import type { Common, DeletePods, GroupResult, Outcome } from "../model/outcome.ts";
import type { DisruptionContext, MayDisrupt } from "../budget/act/may-disrupt.ts";
import { decideByStatus, decideUngated, passGates, listRemaining } from "../rollout/decide-rollout.ts";
import type { RolloutDecision } from "../rollout/decide-zone.ts";
import { refusedGroup } from "../model/refused-group.ts";
import { scaleGroup } from "../scaling/act/scale-group.ts";
import type { ScalingTools } from "../scaling/act/gather-scaling.ts";
import { deletePods, finishZone, isOutdated, type Judged } from "../rollout/act/take-rollout-step.ts";

export interface StepInput {
  readonly context: Context;
  readonly scaling: ScalingTools;
  readonly mayDisrupt: MayDisrupt;
  readonly report: {
    /** How often in a row the group, by its key, was superseded before this step. */
    readonly timesSuperseded: (key: string) => number;
    /** Called with a zone that was finished, if the step goes on with the next one. */
    readonly onFinished: (outcome: Outcome) => void;
  };
}

/** The facts of a step, beside its zones. Those that its tick has read for all groups grow old while it waits. */
export interface Facts {
  /**
   * Before the StatefulSets were listed, by `clock.monotonic`: a rollout that acts on an older list reads them again.
   */
  readonly gatheredAt: number;
  readonly gates: TickGates;
  /** True if the pods of the group must be read even if its status shows that it is settled. */
  readonly isResync: boolean;
}

/** Never rejects: an error becomes the group's outcome. */
export async function stepGroup(zones: readonly Zone[], facts: Facts, input: StepInput): Promise<Outcome> {
  const common: Common = {
    namespace: zones[0]?.namespace ?? "",
    group: zones[0]?.group ?? "",
    zones,
    scalingHolds: [],
    bypasses: facts.gates.bypassesOf(zones),
    notes: [],
  };
  const refused = refusedGroup({ zones });
  if (refused) return { ...common, state: "held", hold: refused };
  try {
    const { change, scalingHolds, notes } = await scaleGroup(zones, { ...input.scaling, ...input.context });
    const seen = { ...common, scalingHolds };
    const outcome = change
      ? { ...seen, state: "acted" as const, decision: change, effect: { replaced: [], denied: [] } }
      : await rollOut(seen, facts, input).catch((error: unknown) => explain(error, seen, input));
    return { ...outcome, notes };
  } catch (error) {
    return explain(error, common, input);
  }
}

async function rollOut(common: Common, { gatheredAt, gates, isResync }: Facts, input: StepInput): Promise<Outcome> {
  const { context } = input;
  const { zones } = common;
  const gated = gates.of(zones);
  const ungated = decideByStatus(zones);
  const early = judgeByStatus(ungated, gated);
  const isOver = early && !isResync;
  if (ungated === undefined && (isOver || early?.state === "held")) gated.follow({ kind: "settled" });
  if (isOver) return { ...common, ...early };

  const snapshot = { ...(await gatherGroup(zones, context)), gatheredAt, now: context.clock.now() };
  const seen = { ...common, remaining: listRemaining(snapshot.zones) };
  if (early?.state === "held") return { ...seen, ...early };
  return await rollOutZones(seen, { snapshot, gated }, input);
}

/** The result by status alone, gates included; undefined if the pods must be read. */
function judgeByStatus(ungated: ReturnType<typeof decideByStatus>, { verdicts }: GroupGates): GroupResult | undefined {
  if (ungated === "readPods") return undefined;
  const held = ungated ?? verdicts?.beforeSettled;
  return held ? { state: "held", hold: held } : { state: "settled" };
}

type Snapshot = GroupSnapshot & Pick<Facts, "gatheredAt">;

interface Gathered {
  readonly snapshot: Snapshot;
  readonly gated: GroupGates;
}

async function rollOutZones(common: Common, { snapshot, gated }: Gathered, input: StepInput): Promise<Outcome> {
  const actor = { ...input.context, mayDisrupt: input.mayDisrupt };
  const decision = await decide(snapshot, gated, actor);
  actor.tracer?.mark("decide", () => describe(decision));
  if (!decision) return { ...common, state: "settled" };
  if (decision.action === "hold") return { ...common, state: "held", hold: decision };
  if (decision.action === "deletePods") return { ...common, ...(await replacePods(decision, snapshot, actor)) };
  const zone = await finishZone(decision, actor);
  const finished: Outcome = { ...common, state: "acted", decision, effect: { replaced: [], denied: [] } };
  return gated.verdicts ? finished : await beginNextZone(common, { finished, zone, snapshot }, input);
}

/**
 * The rules decide once, by this snapshot. Before a late deletion only the gates are read again, as one may have been
 * created meanwhile; the deletion itself reads the zones and pods again.
 */
async function decide(snapshot: Snapshot, gated: GroupGates, context: Context): Promise<RolloutDecision | undefined> {
  const { verdicts } = gated;
  const ungated = decideUngated(snapshot);
  if (verdicts) gated.follow(wantedBy(ungated));
  const decision = passGates(ungated, verdicts);
  const isLate = isOutdated(snapshot, context);
  return isLate && decision?.action === "deletePods" ? passGates(ungated, await gated.readAgain()) : decision;
}

const withRecorded = <Z extends Zone>(zones: readonly Z[], { uid, resourceVersion, status }: Zone): Z[] =>
  zones.map((zone) => (zone.uid === uid ? { ...zone, resourceVersion, status } : zone));

interface Finished {
  readonly finished: Outcome;
  /** As it is recorded. */
  readonly zone: Zone;
  readonly snapshot: Snapshot;
}

/**
 * Goes on with the zone after the one that was finished, by the same facts: the API server answers the lists of another
 * tick only once its caches know of the write. A group with gates waits for that tick, which asks them first.
 */
async function beginNextZone(
  common: Common,
  { finished, zone, snapshot }: Finished,
  input: StepInput,
): Promise<Outcome> {
  const judged = { ...snapshot, zones: withRecorded(snapshot.zones, zone) };
  const decision = decideUngated(judged);
  if (decision?.action !== "deletePods" || isOutdated(snapshot, input.context)) return finished;
  input.report.onFinished(finished);
  const zones = withRecorded(common.zones, zone);
  const seen = { ...common, zones, remaining: listRemaining(judged.zones) };
  const actor = { ...input.context, mayDisrupt: input.mayDisrupt };
  const result = await replacePods(decision, judged, actor).catch((error: unknown) => explain(error, seen, input));
  return { ...seen, ...result };
}

async function replacePods(decision: DeletePods, judged: Judged, actor: DisruptionContext): Promise<GroupResult> {
  const effect = await deletePods(decision, judged, actor);
  const [denial] = effect.denied;
  if (denial && effect.replaced.length === 0) return { state: "held", hold: denial };
  return { state: "acted", decision, effect };
}

function describe(decision: RolloutDecision | undefined): Attributes {
  const { action, message } = decision ?? { action: "settled", message: undefined };
  const reason = decision?.action === "hold" ? decision.reason : undefined;
  return { "zonewise.action": action, "zonewise.reason": reason, "zonewise.message": message };
}

/** A deleted pod, a changed zone or a stale read is no failure, but the decision is outdated. */
function explain(error: unknown, common: Common, { report }: StepInput): Outcome {
  if (!isSuperseded(error) && !hasCode(error, "Cancelled")) return { ...common, state: "failed", error };
  return { ...common, state: "superseded", error, times: report.timesSuperseded(groupKey(common)) + 1 };
}
