/**
 * `zonewise plan`: the next steps of a group in order, with the waits between them. It decides as the ticks will, and
 * changes nothing.
 */
import { shortDuration } from "../../infra/duration.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { describeBypass } from "../../reconciler/gates/bypass.ts";
import { bypassesOf } from "../../reconciler/gates/hold.ts";
import { describeStep } from "../../reconciler/group-status/progress.ts";
import { factsOf } from "../../reconciler/model/decision.ts";
import { type GroupPlan, planGroup } from "../../reconciler/plan/plan-group.ts";
import { concerns } from "../../reconciler/report/ticking.ts";
import { EXIT } from "../exit.ts";
import { notePause } from "../decide/group-state.ts";
import { findZones } from "../gather/groups.ts";
import { gatherNow } from "../gather/world.ts";
import { print } from "../output/print.ts";
import { renderSteps } from "../output/plan-table.ts";
import { wrapWords } from "../output/table.ts";
import type { Command, Session } from "../session.ts";

const MAX_STEPS = 1000;
/** A wait after the last step that is worth a word. */
const LONG_WAIT_MS = 10_000;

export const plan: Command = {
  name: "plan",
  arguments: "<group>",
  group: "Look",
  summary: "The next steps of a group, with waits and an estimate",
  examples: [
    ["plan GROUP", "the next steps, with an estimate"],
    ["plan GROUP -o json", "the same for a program"],
  ],
  flags: [],
  exits: {
    0: "nothing to do",
    1: "there are steps, or something blocks",
    4: "not known: the reconciler does not run, no such group, or the cluster cannot be read",
  },
  async run(session, { args: [group = ""] }) {
    const { world } = await gatherNow(await findZones(session, group), session);
    const planned = planGroup(world, MAX_STEPS);
    const isStopped = session.noTicks.some((one) => one.state === "stopped" && concerns(one, world.namespace));
    const bypasses = bypassesOf(world.gates, world);
    const notes = [
      ...bypasses.map((one) => `${one.zone} begins without its gates ${describeBypass(one)}`),
      ...(planned.end === "settled" ? notePause(world.zones) : []),
    ];
    const value = { ...toValue(planned, group, isStopped), ...(notes.length > 0 && { notes }) };
    print(session, value, () => render(planned, session, { isStopped, notes }));
    if (planned.end === "blocked" && planned.steps.length === 0) return EXIT.no;
    if (isStopped) return EXIT.unknown;
    return planned.steps.length === 0 ? EXIT.ok : EXIT.no;
  },
};

/** Without times if the reconciler does not tick: nothing can be promised then. */
function toValue(
  { steps, end, holds, remaining, endsAt, lastWait }: GroupPlan,
  group: string,
  isStopped: boolean,
): object {
  const waitOf = ({ waitMs, waits }: GroupPlan["lastWait"]) => ({ seconds: Math.round(waitMs / 1000), reasons: waits });
  return {
    group,
    end,
    ...(!isStopped && { estimatedEnd: formatTimestamp(endsAt) }),
    steps: steps.map(({ at, waitMs, waits, ...step }) => ({
      ...step,
      ...(!isStopped && { at: formatTimestamp(at) }),
      wait: waitOf({ waitMs, waits }),
    })),
    lastWait: waitOf(lastWait),
    holds: holds.map(({ reason, message, objects }) => ({
      reason,
      message,
      objects: objects.map(({ kind, name }) => ({ kind, name })),
    })),
    remaining,
  };
}

interface Remarks {
  readonly isStopped: boolean;
  readonly notes: readonly string[];
}

function render(planned: GroupPlan, { io, clock }: Session, { isStopped, notes }: Remarks): string {
  const table = renderSteps(planned.steps, io);
  const end = describeEnd(planned, isStopped ? Infinity : clock.now()).split("\n");
  const lines = [...notes, ...end].flatMap((line) => wrapWords(line, io.width?.() ?? Infinity));
  return `${table}${table && "\n"}${lines.join("\n")}`;
}

const describeDone = (now: number, after: string): string =>
  now === Infinity ? "Then done, once the reconciler ticks\n" : `Done${after}\n`;

const describeLast = ({ waitMs, waits }: GroupPlan["lastWait"]): string =>
  waitMs < LONG_WAIT_MS ? "" : ` (${shortDuration(waitMs)} after the last step: ${waits.join(", ")})`;

/** The last lines of a plan; `now` in milliseconds since the epoch, Infinity for no estimate. */
export function describeEnd({ end, holds, remaining, endsAt, steps, lastWait }: GroupPlan, now: number): string {
  const last = describeLast(lastWait);
  const after = endsAt > now ? ` in about ${shortDuration(endsAt - now)}${last}, judging by past pod starts` : "";
  if (end === "settled")
    return steps.length === 0 ? "Nothing to do: all zones are up to date\n" : describeDone(now, after);
  if (end === "cut") return `and more than ${MAX_STEPS} steps${after && `; these end${after}`}\n`;
  const isPaused = holds[0] !== undefined && factsOf(holds[0].reason).phase === "Paused";
  const stop = isPaused ? "Paused" : "Blocked";
  const causes = holds.map(({ reason, message }) => `  ${reason}: ${message}\n`).join("");
  const rest = remaining.map((step) => `  ${describeStep(step)}\n`).join("");
  return `${stop}${steps.length > 0 ? after : ""}. Nothing happens until:\n${causes}${rest && `Then:\n${rest}`}`;
}
