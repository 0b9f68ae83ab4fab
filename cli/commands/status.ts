/** `zonewise status`: the progress of groups, and whether they are done. It renders the reconciler's records. */
import { hasCode, isRetryable, messageOf } from "../../infra/errors.ts";
import { parseGoDuration, shortDuration } from "../../infra/duration.ts";
import {
  describeAll,
  describeGroup,
  judgeAll,
  leaveOutDone,
  sortByNeed,
  type Overview,
  addUnprotected,
  type Unprotected,
} from "../decide/overview.ts";
import { concerns, type NoTick } from "../../reconciler/report/ticking.ts";
import { EXIT, usageError, type ExitCode } from "../exit.ts";
import { findGroup, gatherGroups, gatherOrphanedGroups, ofGroup, ofOthers } from "../gather/groups.ts";
import { gatherUnprotected } from "../gather/guard.ts";
import { gatherTicking, markOld } from "../gather/ticking.ts";
import { readPhased } from "../gather/records.ts";
import { missingNamespace } from "../gather/suggest.ts";
import { addNoTicks, format, renderNoTicks, renderUnprotected } from "../output/print.ts";
import { createScreen, type Frame } from "../output/screen.ts";
import { renderGroup, renderGroups, renderLine, renderPhased, renderPhasedLine } from "../output/status-tables.ts";
import type { Command, Input, Session } from "../session.ts";

/** Milliseconds between two reads while it watches, and the longest pause after a lost connection. */
const EVERY_MS = 2000;
const MAX_PAUSE_MS = 30_000;

export const status: Command = {
  name: "status",
  arguments: "[group]",
  group: "Look",
  summary: "How far groups and PhasedRollouts are; waits until they are done",
  examples: [
    ["status", "all groups and PhasedRollouts of the namespace"],
    ["status GROUP --timeout 1h", "wait for a rollout, in a pipeline"],
    ["status -A -o wide", "all namespaces, all columns"],
  ],
  flags: [
    {
      flag: "-w, --watch",
      summary: "wait until all is done or one is blocked; default on a terminal",
    },
    { flag: "--no-watch", summary: "look once" },
    { flag: "--timeout <duration>", summary: "wait at most this long, e.g. 30m" },
  ],
  exits: {
    0: "all are done",
    1: "one is blocked",
    3: "not done yet, or not within --timeout",
    4: "not known: the reconciler does not run, nothing to wait for, or the cluster cannot be read",
  },
  asksTicking: true,
  async run(session, input) {
    const timeoutMs = readTimeout(input);
    const isWatching = isAskedToWait(input) ?? session.io.isTty;
    if (isWatching) return await watch(session, input, timeoutMs);
    return show(session, input, await gather(session, input));
  },
};

/** Undefined if the flags leave it to the terminal. */
const isAskedToWait = ({ flags: { watch, timeout } }: Input): boolean | undefined =>
  typeof watch === "boolean" ? watch : timeout === undefined ? undefined : true;

function readTimeout({ flags: { timeout } }: Input): number {
  if (timeout === undefined) return Infinity;
  const ms = parseGoDuration(String(timeout));
  if (ms === undefined || ms < 0) throw usageError(`invalid --timeout "${timeout}": use e.g. 30m`);
  return ms;
}

/** What is recorded, and the orphans that no record has. */
async function gather(session: Session, input: Input): Promise<Overview> {
  const recorded = await gatherRecorded(session, input);
  const [groups, unprotected] = await Promise.all([
    lookForOrphans(session, input, recorded),
    gatherUnprotected(session),
  ]);
  return { ...recorded, groups, unprotected };
}

/** The reconciler lists no pods of a settled group. A wait looks for its orphans once all is done by its record. */
async function lookForOrphans(session: Session, input: Input, recorded: Overview): Promise<Overview["groups"]> {
  const { groups } = recorded;
  const [group] = input.args;
  const isGoing = (isAskedToWait(input) ?? session.io.isTty) && judgeAll(recorded) !== "done";
  if (isGoing && group !== undefined) return groups;
  const selector = group !== undefined ? ofGroup(group) : isGoing ? ofOthers(groups, session) : undefined;
  // Another namespace may have lost a group of the same name.
  const { namespace } = (group === undefined ? undefined : groups[0]) ?? session;
  return await gatherOrphanedGroups(groups, { ...session, namespace }, selector).catch((error: unknown) => {
    if (!hasCode(error, "Forbidden")) throw error;
    return groups;
  });
}

async function gatherRecorded(session: Session, { args: [group] }: Input): Promise<Overview> {
  const { namespace } = session;
  const noTicks = await gatherTicking(session);
  if (group !== undefined) {
    const only = await findGroup(session, group);
    const own = noTicks.filter((one) => concerns(one, only.namespace));
    return { groups: [markOld(only, own)], phased: [], noTicks: own, unprotected: [] };
  }
  const [groups, found] = await Promise.all([gatherGroups(session, namespace), readPhased(session, namespace)]);
  const wrongNamespace = isEmpty({ groups, ...found }) ? await missingNamespace(session) : undefined;
  if (wrongNamespace) throw wrongNamespace;
  // A namespace without objects of ours needs no reconciler.
  const own = isEmpty({ groups, ...found }) ? noTicks.filter(({ reason }) => reason !== "NotInstalled") : noTicks;
  return { groups: groups.map((one) => markOld(one, noTicks)), ...found, noTicks: own, unprotected: [] };
}

const isEmpty = ({ groups, phased }: Pick<Overview, "groups" | "phased">): boolean =>
  groups.length + phased.length === 0;

const CODES: Readonly<Record<ReturnType<typeof judgeAll>, ExitCode>> = {
  done: EXIT.ok,
  blocked: EXIT.no,
  stopped: EXIT.unknown,
  going: EXIT.timeout,
  unknown: EXIT.unknown,
};

function show(session: Session, input: Input, overview: Overview): ExitCode {
  const { table, document } = frameOf(session, input.args, overview);
  session.io.write(session.output === "table" ? table() : document());
  return conclude(session, input, overview);
}

/**
 * Reports what is missing in the overview. If there is nothing at all, a single read succeeds, as with `kubectl get`; a
 * pipeline that waits fails, as with `kubectl wait`, because it has named the wrong place.
 */
function conclude({ io, namespace }: Session, input: Input, overview: Overview): ExitCode {
  const { unread } = overview;
  const place = namespace === "" ? "any namespace" : `namespace ${namespace}`;
  if (unread !== undefined) io.warn(`PhasedRollouts are not shown: ${unread}\n`);
  else if (isEmpty(overview)) io.warn(`no rollout groups in ${place}: no StatefulSet has the label rollout-group\n`);
  return isEmpty(overview) && isAskedToWait(input) ? EXIT.unknown : CODES[judgeAll(overview)];
}

function frameOf({ io, clock, output }: Session, { length }: readonly string[], overview: Overview): Frame {
  const { groups, phased, noTicks, unprotected } = overview;
  const look = { style: io.style, columns: io.size?.()?.columns || undefined };
  const first = renderNoTicks(noTicks, look) + renderUnprotected(unprotected, look);
  const own = length > 0 ? groups[0] : undefined;
  const now = clock.now();
  const tables = ({ groups, phased }: Overview): string =>
    [renderGroups(groups, io, now), renderPhased(phased, io, now)].filter((text) => text !== "").join("\n");
  const table = (): string => (own ? renderGroup(own, io, now) : tables(sortByNeed(overview)));
  const short = (): string => {
    const { done, ...left } = leaveOutDone(sortByNeed(overview));
    return own ? table() : `${done} of ${groups.length + phased.length} are done\n${tables(left)}`;
  };
  const value = (): unknown => addUnprotected(own ? describeGroup(own) : describeAll(overview), unprotected);
  return {
    table: () => first + table(),
    short: () => first + short(),
    lines: () =>
      [
        ...noTicks.map(renderNoTickLine),
        ...unprotected.map(renderUnprotectedLine),
        ...groups.map(renderLine),
        ...phased.map(renderPhasedLine),
      ].join(""),
    document: () => format(output, addNoTicks(value(), noTicks)) ?? "",
  };
}

/** Without its age: a log gets one line per change. */
const renderNoTickLine = ({ message }: NoTick): string => `warning: ${message.replace(/ \([^)]* ago\)/, "")}\n`;

const renderUnprotectedLine = ({ message }: Unprotected): string => `warning: ${message}\n`;

/**
 * Reads repeatedly, also while the reconciler does not tick. A lost connection is retried: it says nothing about the
 * rollout.
 */
async function watch(session: Session, input: Input, timeoutMs: number): Promise<ExitCode> {
  const { clock, io, signal } = session;
  const endAt = clock.monotonic() + timeoutMs;
  const left = (): number => endAt - clock.monotonic();
  const screen = createScreen(session);
  let pause = EVERY_MS;
  let code: ExitCode = EXIT.timeout;
  while (!signal.aborted) {
    try {
      const overview = await within(Math.max(left(), EVERY_MS), clock, gather(session, input));
      if (!overview) break;
      screen.update(frameOf(session, input.args, overview));
      const judged = judgeAll(overview);
      pause = EVERY_MS;
      code = CODES[judged];
      if (judged !== "going" && judged !== "stopped") return conclude(session, input, overview);
    } catch (error) {
      if (signal.aborted) break;
      if (!isRetryable(error)) throw error;
      io.warn(`connection lost, trying again: ${messageOf(error)}\n`);
      pause = Math.min(pause * 2, MAX_PAUSE_MS);
    }
    if (left() <= 0) break;
    await clock.sleep(Math.min(pause, left()), signal);
  }
  if (!signal.aborted) io.warn(`not done within ${shortDuration(timeoutMs)}\n`);
  return code;
}

/** Undefined once the time is over: an API server that does not answer must not make a wait longer. */
async function within<T>(ms: number, clock: Session["clock"], work: Promise<T>): Promise<T | undefined> {
  if (ms === Infinity) return await work;
  const over = new AbortController();
  const timeUp = clock.sleep(ms, over.signal).then(() => undefined);
  return await Promise.race([work, timeUp]).finally(() => over.abort());
}
