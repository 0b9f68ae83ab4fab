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
import { groupKey, type GatheredGroup, type Zone } from "../model/zone.ts";
import type { Common, GroupResult, Outcome } from "../model/outcome.ts";
import type { DisruptionContext, MayDisrupt } from "../budget/act/may-disrupt.ts";
import { decideByStatus, decideUngated, passGates, listRemaining } from "../rollout/decide-rollout.ts";
import type { RolloutDecision } from "../rollout/decide-zone.ts";
import { refusedGroup } from "../model/refused-group.ts";
import { scaleGroup } from "../scaling/act/scale-group.ts";
import type { ScalingTools } from "../scaling/act/gather-scaling.ts";
import { isOutdated, takeRolloutStep } from "../rollout/act/take-rollout-step.ts";

export interface StepInput {
  readonly context: Context;
  readonly scaling: ScalingTools;
  readonly mayDisrupt: MayDisrupt;
  readonly report: {
    /** How often in a row the group, by its key, was superseded before this step. */
    readonly timesSuperseded: (key: string) => number;
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

async function rollOut(
  common: Common,
  { gatheredAt, gates, isResync }: Facts,
  { context, mayDisrupt }: StepInput,
): Promise<Outcome> {
  const { zones } = common;
  const gated = gates.of(zones);
  const ungated = decideByStatus(zones);
  const early = judgeByStatus(ungated, gated);
  const isOver = early && !isResync;
  if (ungated === undefined && (isOver || early?.state === "held")) gated.follow({ kind: "settled" });
  if (isOver) return { ...common, ...early };

  const snapshot = await gatherGroup(zones, context);
  const seen = { ...common, remaining: listRemaining(snapshot.zones) };
  if (early?.state === "held") return { ...seen, ...early };
  return { ...seen, ...(await rollOutZones({ ...snapshot, gatheredAt }, gated, { ...context, mayDisrupt })) };
}

/** The result by status alone, gates included; undefined if the pods must be read. */
function judgeByStatus(ungated: ReturnType<typeof decideByStatus>, { verdicts }: GroupGates): GroupResult | undefined {
  if (ungated === "readPods") return undefined;
  const held = ungated ?? verdicts?.beforeSettled;
  return held ? { state: "held", hold: held } : { state: "settled" };
}

/**
 * The rules decide once, by this snapshot. Before a late deletion only the gates are read again, as one may have been
 * created meanwhile; the deletion itself reads the zones and pods again.
 */
async function rollOutZones(
  gathered: GatheredGroup & Pick<Facts, "gatheredAt">,
  gated: GroupGates,
  actor: DisruptionContext,
): Promise<GroupResult> {
  const { verdicts } = gated;
  const snapshot = { ...gathered, now: actor.clock.now() };
  const ungated = decideUngated(snapshot);
  if (verdicts) gated.follow(wantedBy(ungated));
  let decision = passGates(ungated, verdicts);
  const isLate = isOutdated(snapshot, actor);
  if (isLate && decision?.action === "deletePods") decision = passGates(ungated, await gated.readAgain());
  actor.tracer?.mark("decide", () => describe(decision));
  if (!decision) return { state: "settled" };
  if (decision.action === "hold") return { state: "held", hold: decision };

  const effect = await takeRolloutStep(decision, snapshot, actor);
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
