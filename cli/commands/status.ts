/** `zonewise status`: how far groups are, and whether they are done. It renders what the reconciler has recorded. */
import { isRetryable, messageOf } from "../../infra/errors.ts";
import { parseGoDuration, shortDuration } from "../../infra/duration.ts";
import { describeProgress, judgeProgress, type GroupState, type Completion } from "../decide/group-state.ts";
import { EXIT, usageError, type ExitCode } from "../exit.ts";
import { findGroup, gatherGroups } from "../gather/groups.ts";
import { print } from "../output/print.ts";
import { renderGroup, renderGroups, renderLine } from "../output/status-tables.ts";
import type { Command, Input, Session } from "../session.ts";

/** Milliseconds between two reads while it watches, and the longest pause after a lost connection. */
const EVERY_MS = 2000;
const LONGEST_PAUSE_MS = 30_000;

export const status: Command = {
  name: "status",
  arguments: "[group]",
  summary: "How far a group is, or all of them; waits until they are done",
  flags: [
    { flag: "-w, --watch", summary: "wait until all is done or something has stalled; on by default on a terminal" },
    { flag: "--no-watch", summary: "look once (also --watch=false)" },
    { flag: "--timeout <duration>", summary: "stop waiting after this time, such as 30m; without it, wait for ever" },
  ],
  exits: { 0: "all groups are done", 1: "a group has stalled", 3: "not done in time; with --watch=false: not done yet" },
  completes: "groups",
  async run(session, input) {
    const timeoutMs = readTimeout(input);
    const isWatching = input.flags["watch"] ?? session.io.isTty;
    return isWatching ? await watch(session, input, timeoutMs) : show(session, input, await gather(session, input));
  },
};

function readTimeout({ flags: { timeout } }: Input): number {
  if (timeout === undefined) return Infinity;
  const ms = parseGoDuration(String(timeout));
  if (ms === undefined || ms < 0) throw usageError(`--timeout ${timeout} is no duration such as 30m`);
  return ms;
}

async function gather(session: Session, { args: [group] }: Input): Promise<readonly GroupState[]> {
  return group === undefined ? await gatherGroups(session, session.namespace) : [await findGroup(session, session.namespace, group)];
}

const CODES: Readonly<Record<Completion, ExitCode>> = { done: EXIT.ok, stalled: EXIT.no, going: EXIT.timeout };

function codeOf(groups: readonly GroupState[]): ExitCode {
  const all = groups.map(judgeProgress);
  return CODES[all.find((one) => one === "stalled") ?? all.find((one) => one === "going") ?? "done"];
}

function show(session: Session, { args }: Input, groups: readonly GroupState[]): ExitCode {
  print(session, args.length > 0 ? toValue(groups[0]) : groups.map(toValue), () => renderAll(session, args, groups));
  if (groups.length === 0) session.io.warn("no rollout groups: no StatefulSet has the label rollout-group\n");
  return codeOf(groups);
}

function renderAll({ io, clock }: Session, args: readonly string[], groups: readonly GroupState[]): string {
  const [first] = groups;
  return args.length > 0 && first ? renderGroup(first, io.style, clock.now()) : renderGroups(groups, io.style, clock.now());
}

/** What `-o json` shows of a group. */
function toValue(state: GroupState | undefined): unknown {
  if (!state) return undefined;
  const { namespace, group, status: recorded } = state;
  return { namespace, group, progress: judgeProgress(state), message: describeProgress(state), status: recorded };
}

/** Reads again and again. A lost connection is retried: it says nothing of the rollout. */
async function watch(session: Session, input: Input, timeoutMs: number): Promise<ExitCode> {
  const { clock, io, signal } = session;
  const endAt = clock.monotonic() + timeoutMs;
  const screen = createScreen(session, input);
  let pause = EVERY_MS;
  let code: ExitCode = EXIT.timeout;
  while (!signal.aborted) {
    try {
      const groups = await gather(session, input);
      screen.update(groups);
      code = codeOf(groups);
      pause = EVERY_MS;
      if (code !== EXIT.timeout) return code;
    } catch (error) {
      if (!isRetryable(error)) throw error;
      io.warn(`the connection is lost, trying again: ${messageOf(error)}\n`);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
    const left = endAt - clock.monotonic();
    if (left <= 0) break;
    await clock.sleep(Math.min(pause, left), signal);
  }
  if (!signal.aborted) io.warn(`not done within ${shortDuration(timeoutMs)}\n`);
  return code;
}

/** A terminal shows the newest state in place; a log gets a line a change, and a program a document a change. */
function createScreen(session: Session, { args }: Input) {
  const { io, output } = session;
  let height = 0;
  let shown = "";
  return {
    update(groups: readonly GroupState[]): void {
      const isDrawn = io.isTty && output === "table";
      const text = isDrawn ? renderAll(session, args, groups) : groups.map((group) => renderLine(group)).join("");
      if (text === shown) return;
      shown = text;
      if (output !== "table") return void show(session, { args, flags: {} }, groups);
      io.write(isDrawn && height > 0 ? `\u001B[${height}A\u001B[J${text}` : text);
      height = text.split("\n").length - 1;
    },
  };
}
