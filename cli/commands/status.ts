/** `zonewise status`: how far groups are, and whether they are done. It renders what the reconciler has recorded. */
import { isRetryable, messageOf } from "../../infra/errors.ts";
import { parseGoDuration, shortDuration } from "../../infra/duration.ts";
import { describeAll, describeGroup, judgeAll, leaveOutDone, sortByNeed, type Overview } from "../decide/overview.ts";
import { EXIT, usageError, type ExitCode } from "../exit.ts";
import { findGroup, gatherGroups } from "../gather/groups.ts";
import { gatherPolicies } from "../gather/node-update.ts";
import { readPhased } from "../gather/phased.ts";
import { renderPhased, renderPhasedLine, renderPolicies } from "../output/other-tables.ts";
import { format } from "../output/print.ts";
import { createScreen, type Frame } from "../output/screen.ts";
import { renderGroup, renderGroups, renderLine } from "../output/status-tables.ts";
import type { Command, Input, Session } from "../session.ts";

/** Milliseconds between two reads while it watches, and the longest pause after a lost connection. */
const EVERY_MS = 2000;
const MAX_PAUSE_MS = 30_000;

export const status: Command = {
  name: "status",
  arguments: "[group]",
  summary:
    "How far a group is, or all groups, PhasedRollouts and node updates; waits until the groups and PhasedRollouts are done",
  flags: [
    { flag: "-w, --watch", summary: "wait until all is done or something has stalled; on by default on a terminal" },
    { flag: "--no-watch", summary: "look once (also --watch=false)" },
    { flag: "--timeout <duration>", summary: "stop waiting after this time, such as 30m; without it, wait for ever" },
  ],
  exits: {
    0: "all groups and PhasedRollouts are done",
    1: "one of them has stalled",
    3: "not done in time; with --watch=false: not done yet",
    4: "the groups are done, PhasedRollouts may not be read; or the cluster does not answer",
  },
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

async function gather(session: Session, { args: [group] }: Input): Promise<Overview> {
  const { namespace } = session;
  if (group !== undefined) return { groups: [await findGroup(session, namespace, group)], phased: [], policies: [] };
  const [groups, found, policies] = await Promise.all([
    gatherGroups(session, namespace),
    readPhased(session, namespace),
    gatherPolicies(session),
  ]);
  return { groups, ...found, policies };
}

const CODES: Readonly<Record<ReturnType<typeof judgeAll>, ExitCode>> = {
  done: EXIT.ok,
  stalled: EXIT.no,
  going: EXIT.timeout,
  unknown: EXIT.unknown,
};

function show(session: Session, { args }: Input, overview: Overview): ExitCode {
  const { table, document } = frameOf(session, args, overview);
  session.io.write(session.output === "table" ? table() : document());
  warnOfGaps(session, overview);
  return CODES[judgeAll(overview)];
}

/** With nothing to wait for, all is done; but the namespace may be mistyped, or PhasedRollouts may be unreadable. */
function warnOfGaps({ io }: Session, { groups, phased, unread }: Overview): void {
  if (unread !== undefined) io.warn(`PhasedRollouts are left out: ${unread}\n`);
  else if (groups.length + phased.length === 0)
    io.warn("no rollout groups: no StatefulSet has the label rollout-group\n");
}

function frameOf({ io, clock, output }: Session, { length }: readonly string[], overview: Overview): Frame {
  const { groups, phased } = overview;
  const own = length > 0 ? groups[0] : undefined;
  const now = clock.now();
  const tables = ({ groups, phased, policies }: Overview): string =>
    [renderGroups(groups, io.style, now), renderPhased(phased, io.style, now), renderPolicies(policies, io.style, now)]
      .filter((text) => text !== "")
      .join("\n");
  const table = (): string => (own ? renderGroup(own, io.style, now) : tables(sortByNeed(overview)));
  const short = (): string => {
    const { done, ...left } = leaveOutDone(sortByNeed(overview));
    return own ? table() : `${done} of ${groups.length + phased.length} are done\n${tables(left)}`;
  };
  return {
    table,
    short,
    lines: () => [...groups.map(renderLine), ...phased.map(renderPhasedLine)].join(""),
    document: () => format(output, own ? describeGroup(own, now) : describeAll(overview, now)) ?? "",
  };
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
      const overview = await within(Math.max(left(), EVERY_MS), clock, gather(session, input));
      if (!overview) break;
      screen.update(frameOf(session, input.args, overview));
      const code = CODES[judgeAll(overview)];
      pause = EVERY_MS;
      if (code !== EXIT.timeout) {
        warnOfGaps(session, overview);
        return code;
      }
    } catch (error) {
      if (signal.aborted) break;
      if (!isRetryable(error)) throw error;
      io.warn(`the connection is lost, trying again: ${messageOf(error)}\n`);
      pause = Math.min(pause * 2, MAX_PAUSE_MS);
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
