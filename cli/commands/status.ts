/** `zonewise status`: how far groups are, and whether they are done. It renders what the reconciler has recorded. */
import { isRetryable, messageOf } from "../../infra/errors.ts";
import { parseGoDuration, shortDuration } from "../../infra/duration.ts";
import { describeProgress, judgeProgress, sortBlocks, type GroupState, type Completion } from "../decide/group-state.ts";
import { EXIT, usageError, type ExitCode } from "../exit.ts";
import { findGroup, gatherGroups } from "../gather/groups.ts";
import { format } from "../output/print.ts";
import { createScreen, type Frame } from "../output/screen.ts";
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
  const { table, document } = frameOf(session, args, groups);
  session.io.write(session.output === "table" ? table() : document());
  if (groups.length === 0) session.io.warn("no rollout groups: no StatefulSet has the label rollout-group\n");
  return codeOf(groups);
}

function frameOf({ io, clock, output }: Session, { length }: readonly string[], groups: readonly GroupState[]): Frame {
  const [first] = groups;
  const now = clock.now();
  return {
    table: () => (length > 0 && first ? renderGroup(first, io.style, now) : renderGroups(groups, io.style, now)),
    lines: () => groups.map((group) => renderLine(group)).join(""),
    document: () => format(output, length > 0 && first ? toValue(first, now) : groups.map((group) => toValue(group, now))) ?? "",
  };
}

/** What `-o json` shows of a group. */
function toValue(state: GroupState, now: number): unknown {
  const { namespace, group, status: recorded } = state;
  const { blocked, waiting } = sortBlocks(state, now);
  const reasons = { blockedBy: blocked.map(({ reason }) => reason), waitingFor: waiting.map(({ reason }) => reason) };
  return { namespace, group, progress: judgeProgress(state), message: describeProgress(state), ...reasons, status: recorded };
}

/** Reads again and again. A lost connection is retried: it says nothing of the rollout. */
async function watch(session: Session, input: Input, timeoutMs: number): Promise<ExitCode> {
  const { clock, io, signal } = session;
  const endAt = clock.monotonic() + timeoutMs;
  const left = (): number => endAt - clock.monotonic();
  const screen = createScreen(session);
  let pause = EVERY_MS;
  while (!signal.aborted) {
    try {
      const groups = await within(Math.max(left(), EVERY_MS), clock, gather(session, input));
      if (!groups) break;
      screen.update(frameOf(session, input.args, groups));
      const code = codeOf(groups);
      pause = EVERY_MS;
      if (code !== EXIT.timeout) return code;
    } catch (error) {
      if (signal.aborted) break;
      if (!isRetryable(error)) throw error;
      io.warn(`the connection is lost, trying again: ${messageOf(error)}\n`);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
    if (left() <= 0) break;
    await clock.sleep(Math.min(pause, left()), signal);
  }
  if (!signal.aborted) io.warn(`not done within ${shortDuration(timeoutMs)}\n`);
  return EXIT.timeout;
}

/** Undefined once the time is over: an API server that does not answer must not make a wait longer. */
async function within<T>(ms: number, clock: Session["clock"], work: Promise<T>): Promise<T | undefined> {
  if (ms === Infinity) return await work;
  const over = new AbortController();
  const timeUp = clock.sleep(ms, over.signal).then(() => undefined);
  return await Promise.race([work, timeUp]).finally(() => over.abort());
}
