/**
 * `zonewise plan`: the next steps of a group in order, with the waits between them. It decides as the ticks will, and
 * changes nothing.
 */
import { shortDuration } from "../../infra/duration.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import type { GroupPlan, PlannedAction } from "../../reconciler/plan/plan-group.ts";
import { planGroup } from "../../reconciler/plan/plan-group.ts";
import { EXIT, usageError } from "../exit.ts";
import { gatherZonesOf } from "../gather/groups.ts";
import { gatherWorld } from "../gather/world.ts";
import { print } from "../output/print.ts";
import { formatTable, type Cell } from "../output/table.ts";
import type { Command, Input, Session } from "../session.ts";

const MAX_STEPS = 1000;

export const plan: Command = {
  name: "plan",
  arguments: "<group>",
  summary: "The next steps of a group in order, with waits and an estimate; changes nothing",
  flags: [{ flag: "--steps <number>", summary: `at most so many steps, ${MAX_STEPS} by default` }],
  exits: { 0: "nothing to do", 1: "there are steps, or something blocks" },
  completes: "groups",
  async run(session, input) {
    const most = readSteps(input);
    const [group = ""] = input.args;
    const [zone] = await gatherZonesOf(session, session.namespace, group);
    const world = await gatherWorld({ namespace: zone?.namespace ?? session.namespace, group }, session);
    const planned = planGroup(world, most);
    print(session, toValue(planned, group), () => render(planned, session));
    return planned.steps.length === 0 && planned.end === "settled" ? EXIT.ok : EXIT.no;
  },
};

function readSteps({ flags: { steps = String(MAX_STEPS) } }: Input): number {
  const most = Number(steps);
  if (!Number.isInteger(most) || most < 1) throw usageError(`--steps ${steps} is no number of 1 or more`);
  return most;
}

function toValue({ steps, end, holds, endsAt }: GroupPlan, group: string): unknown {
  return {
    group,
    end,
    estimatedEnd: formatTimestamp(endsAt),
    steps: steps.map(({ at, waitMs, waits, ...step }) => ({
      ...step,
      at: formatTimestamp(at),
      wait: { seconds: Math.round(waitMs / 1000), reasons: waits },
    })),
    blocked: holds.map(({ reason, message, objects }) => ({
      reason,
      message,
      objects: objects.map(({ kind, name }) => ({ kind, name })),
    })),
  };
}

function render(planned: GroupPlan, { io, clock }: Session): string {
  const rows = planned.steps.map((step, i): Cell[] => [
    String(i + 1),
    step.waitMs > 0 ? shortDuration(step.waitMs) : "",
    step.waits.join(", "),
    step.action,
    step.zone,
    subjectOf(step),
  ]);
  const table = formatTable(["STEP", "WAIT", "FOR", "ACTION", "ZONE", "WHAT"], rows, io.style);
  return `${table}${table && "\n"}${describeEnd(planned, clock.now())}`;
}

function subjectOf({ action, pods = [], replicas }: PlannedAction): string {
  if (action === "FinishZone") return "all pods are updated and ready";
  return replicas === undefined ? pods.join(", ") : `to ${replicas} replicas`;
}

/** The last lines of a plan; `now` in milliseconds since the epoch. */
export function describeEnd({ end, holds, endsAt, steps }: GroupPlan, now: number): string {
  const estimate =
    endsAt > now ? `, in about ${shortDuration(endsAt - now)} by the pods' own times to become ready` : "";
  if (end === "settled") return steps.length === 0 ? "nothing to do\n" : `then all is done${estimate}\n`;
  if (end === "cut") return `and more: see --steps${estimate}\n`;
  const blocked = holds.map(({ reason, message }) => `  ${reason}: ${message}\n`).join("");
  return `${steps.length === 0 ? "nothing can be done now" : `then it stops${estimate}`}:\n${blocked}`;
}
