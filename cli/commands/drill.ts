/**
 * `zonewise drill`: tries an installation on three zones of its own, and reports which of its promises held. It removes
 * what it makes, also after a Ctrl-C; the next run removes the objects of a killed one.
 */
import { firstOfSignals } from "../../infra/clock.ts";
import { parseGoDuration, shortDuration } from "../../infra/duration.ts";
import { hasCode, messageOf } from "../../infra/errors.ts";
import { judge, type Row } from "../drill/judge.ts";
import { createHistory } from "../drill/history.ts";
import {
  CLUSTER_RIGHTS,
  KILL_RIGHTS,
  NAMESPACED_RIGHTS,
  nameRun,
  PAUSE_IMAGE,
  RENEWAL_MS,
  type Run,
} from "../drill/plan.ts";
import {
  findAsked,
  findImage,
  findInstallation,
  findKilled,
  guardOf,
  type Killed,
  servedElsewhere,
  type Installation,
} from "../drill/act/installation.ts";
import { findLeftovers, makeNamespace, removePlace, renew, type Caller, type Place } from "../drill/act/place.ts";
import { runDrill } from "../drill/act/run-drill.ts";
import { describeRight } from "../decide/doctor/rights.ts";
import { CliError, EXIT, usageError, type ExitCode } from "../exit.ts";
import { findDenied } from "../gather/denied-rights.ts";
import { gatherTicking } from "../gather/ticking.ts";
import { renderReport, type Report } from "../output/drill-table.ts";
import { print } from "../output/print.ts";
import type { Command, Input, Session } from "../session.ts";
import type { NoTick } from "../../reconciler/report/ticking.ts";

/** Milliseconds. */
const MAX_MS = 30 * 60_000;

export const drill: Command = {
  name: "drill",
  arguments: "",
  group: "Installation",
  summary: "Tries the installation: makes three zones, rolls, evicts, drains and scales them, and judges what it sees",
  examples: [["drill", "try the installation"]],
  flags: [
    { flag: "--image <image>", summary: "of the pods, which only wait; the installation's by default" },
    {
      flag: "--node-selector <label=value>",
      summary: "nodes for the pods; may be given several times",
      repeats: true,
    },
    { flag: "--kill", summary: "also kill pods of the installation, 6 in each of three stages at most" },
    { flag: "--timeout <duration>", summary: "no longer than this, such as 10m; 30m by default" },
    { flag: "--clean", summary: "no drill: remove what killed ones have left" },
  ],
  exits: {
    0: "all promises held; with --clean: nothing is left",
    1: "a promise did not hold",
    3: "nothing was broken, and not all was seen, or --kill has killed nothing; with --clean: something is left",
    4: "it could not begin, or what it made could not be removed",
  },
  asksTicking: true,
  async run(session, input) {
    const { flags } = input;
    if (session.namespace === "") throw usageError("a drill takes place in one namespace: leave -A out");
    const namespace = typeof flags["namespace"] === "string" ? session.namespace : undefined;
    return flags["clean"] === true
      ? await clean(session, namespace)
      : await play(session, readChoices(input), namespace);
  },
};

interface Choices {
  readonly image: string | undefined;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly isKilling: boolean;
  readonly timeoutMs: number;
}

function readChoices({ flags }: Input): Choices {
  const { image, kill, timeout = "30m", nodeSelector = [] } = flags as Record<string, unknown>;
  const timeoutMs = parseGoDuration(String(timeout)) ?? 0;
  if (timeoutMs <= 0 || timeoutMs > MAX_MS)
    throw usageError(`--timeout ${String(timeout)} is no duration up to 30m, such as 10m`);
  const pairs = (nodeSelector as readonly string[]).map((pair) => {
    const [label = "", value] = pair.split("=", 2);
    if (label === "" || value === undefined) throw usageError(`--node-selector ${pair} is not label=value`);
    return [label, value] as const;
  });
  return {
    image: typeof image === "string" ? image : undefined,
    isKilling: kill === true,
    timeoutMs,
    nodeSelector: Object.fromEntries(pairs),
  };
}

async function play(session: Session, choices: Choices, given: string | undefined): Promise<ExitCode> {
  const { cluster } = session;
  const name = nameRun(Math.random);
  const namespace = given ?? name;
  const place: Place = { run: name, namespace, isOwn: given === undefined };
  await requireBudgets(session);
  const installation = await findInstallation(cluster, namespace);
  const home = choices.isKilling ? await chooseHome(session, installation, place) : undefined;
  await requireRights(session, place, home);
  const kill = home === undefined ? undefined : await chooseKilled(session, home);
  await removeDead(session, given);
  const own = choices.image === undefined ? await findImage(cluster, installation) : undefined;
  const run: Run = {
    name,
    namespace,
    image: choices.image ?? own ?? PAUSE_IMAGE,
    isOwnImage: own !== undefined,
    nodeSelector: choices.nodeSelector,
  };
  return await conduct(session, { place, run, installation, kill, timeoutMs: choices.timeoutMs });
}

interface Plan {
  readonly place: Place;
  readonly run: Run;
  readonly installation: Installation;
  /** Undefined if no pods of the installation are to be killed. */
  readonly kill: Killed | undefined;
  readonly timeoutMs: number;
}

/** Prints the report after the removal: its reader may have gone, and the objects must be removed all the same. */
async function conduct(session: Session, { place, ...plan }: Plan): Promise<ExitCode> {
  const { clock, io, signal } = session;
  const removing: Caller = { cluster: session.cleanup, clock };
  const over = new AbortController();
  const startedAt = clock.monotonic();
  const tell = (text: string): void =>
    io.warn(`${shortDuration(clock.monotonic() - startedAt).padStart(6)}  ${text}\n`);
  let renewing: Promise<void> | undefined;
  const remove = async (): Promise<void> => {
    over.abort();
    await renewing;
    if (signal.aborted) io.warn("stopped: what was made is being removed; a second Ctrl-C leaves it\n");
    else tell("what was made is being removed");
    await removeAll(removing, place);
  };
  const { report, noTicks } = await (async () => {
    if (place.isOwn) await openNamespace(session, plan.run, plan.installation);
    renewing = renew(removing, place, over.signal);
    void clock.sleep(plan.timeoutMs, firstOfSignals(signal, over.signal)).then(() => over.abort());
    const found = await playAndJudge({ ...session, signal: firstOfSignals(signal, over.signal) }, { ...plan, tell });
    const seconds = Math.round((clock.monotonic() - startedAt) / 1000);
    const made: Report = { run: place.run, namespace: place.namespace, made: place.isOwn, seconds, ...found };
    return { report: made, noTicks: await findNoTicks(session, made) };
  })().catch(async (error: unknown) => {
    // The first error is the cause, and the one that is thrown.
    await remove().catch(({ message, hint }: CliError) => io.warn(`error: ${message}\n       ${hint}\n`));
    throw error;
  });
  try {
    await remove();
  } finally {
    print({ ...session, noTicks }, report, () => renderReport(report, io));
  }
  const isIdle = plan.kill !== undefined && report.killed === 0;
  if (isIdle) io.warn("note: no pod of the installation was killed: what --kill is for was not tried\n");
  return exitOf(report.promises, isIdle);
}

type Playing = Pick<Plan, "run" | "kill"> & { readonly tell: (text: string) => void };

async function playAndJudge({ cluster, clock, signal }: Session, { run, kill, tell }: Playing) {
  const history = createHistory(clock.monotonic);
  await runDrill({ cluster, clock, history, run, random: Math.random, signal }, { kill, tell });
  const killed = history.entries.filter(({ what }) => what === "killed").length;
  return { image: run.image, killed, promises: judge(history.entries) };
}

/** The reconcilers that do not tick, read only if something was not seen: they may be the reason. */
async function findNoTicks(session: Session, { namespace, promises }: Report): Promise<readonly NoTick[]> {
  const isUnseen = promises.some(({ verdict }) => verdict === "not seen");
  return isUnseen && !session.signal.aborted ? await gatherTicking({ ...session, namespace }) : [];
}

const exitOf = (rows: readonly Row[], isIdle: boolean): ExitCode =>
  rows.some(({ verdict }) => verdict === "did not hold")
    ? EXIT.no
    : isIdle || rows.some(({ verdict }) => verdict === "not seen")
      ? EXIT.timeout
      : EXIT.ok;

async function requireBudgets({ cluster }: Session): Promise<void> {
  const kind = "ZoneAwarePodDisruptionBudget";
  if ((await cluster.discover("rollout-operator.grafana.com", kind)).length > 0) return;
  throw new CliError(`the cluster has no definition of ${kind}: neither Zonewise nor the original is installed`, {
    hint: "kubectl apply -k infra/manifests/crds",
  });
}

/** The namespace of the only installation that the drill tries: pods of other installations must not be killed. */
async function chooseHome({ cluster }: Session, installation: Installation, place: Place): Promise<string> {
  const homes = await findAsked(cluster, installation, place);
  const [home] = homes;
  if (home !== undefined && homes.length === 1) return home;
  const found =
    home === undefined
      ? `no eviction webhook was seen to select ${place.namespace}`
      : `eviction webhooks of several installations select ${place.namespace}: those of ${homes.join(", ")}`;
  throw new CliError(`${found}; whose pods --kill may kill is not known, nothing was made`, {
    hint: [...installation.reading.unread, "without --kill no pod of an installation is touched"].join("; "),
  });
}

async function chooseKilled({ cluster }: Session, home: string): Promise<Killed> {
  const killed = await findKilled(cluster, home);
  if (killed) return killed;
  throw new CliError(`no pod of the installation runs in ${home}: --kill would kill none, nothing was made`, {
    hint: `kubectl -n ${home} get pods`,
  });
}

async function requireRights(session: Session, { namespace, isOwn }: Place, home: string | undefined): Promise<void> {
  const inNamespace = NAMESPACED_RIGHTS.map((right) => ({ ...right, namespace }));
  const toKill = home === undefined ? [] : KILL_RIGHTS.map((right) => ({ ...right, namespace: home }));
  const denied = await findDenied(session, [...(isOwn ? CLUSTER_RIGHTS : []), ...inNamespace, ...toKill]);
  if (denied.length === 0) return;
  throw new CliError(`you may not ${denied.map(describeRight).join(", ")}: nothing was made`, {
    hint: "docs/drill.md has the rights that a drill needs",
  });
}

/** Makes the namespace, and checks that evictions in it are judged at all: otherwise there would be nothing to try. */
async function openNamespace(session: Session, run: Run, installation: Installation): Promise<void> {
  await makeNamespace(session, run);
  const guard = guardOf(installation, run.namespace);
  if (guard.state !== "open") return;
  const homes = servedElsewhere(installation);
  const hint =
    homes.length > 0
      ? `the installation serves its own namespace: zonewise -n ${homes[0]} drill makes objects of its own there, and removes them`
      : "say -n NAMESPACE for a namespace that an installation serves";
  throw new CliError(`in a namespace of its own the drill can prove nothing: ${guard.message}`, { hint });
}

async function removeAll(removing: Caller, place: Place): Promise<void> {
  const again = `zonewise${place.isOwn ? "" : ` -n ${place.namespace}`} drill --clean`;
  const isGone = await removePlace(removing, place).catch((error: unknown) => {
    throw new CliError(`what the drill has made in ${place.namespace} could not be removed: ${messageOf(error)}`, {
      hint: again,
    });
  });
  if (isGone) return;
  throw new CliError(`what the drill has made in ${place.namespace} is not gone yet`, { hint: again });
}

/** Removes the objects of dead runs; resolves with those of runs that live. */
async function removeDead(session: Session, namespace: string | undefined) {
  const found = await findLeftovers(session, namespace);
  const dead = found.filter(({ expires }) => expires < session.clock.now());
  for (const place of dead) {
    session.io.warn(`removing what ${place.run} has left in ${place.namespace}\n`);
    await removeAll(session, place);
  }
  return found.filter((one) => !dead.includes(one));
}

/**
 * Removes the objects of dead runs. Runs that seem alive are awaited first: a killed run counts as alive for up to a
 * minute, but only a living one renews its expiry.
 */
async function clean(session: Session, namespace: string | undefined): Promise<ExitCode> {
  const { clock, signal } = session;
  const first = await removeDead(session, namespace).catch(explainRights);
  const wait = Math.min(Math.max(0, ...first.map(({ expires }) => expires - clock.now())), 4 * RENEWAL_MS);
  if (first.length > 0) {
    session.io.warn(`waiting ${shortDuration(wait)} for a sign of life of ${first.map(({ run }) => run).join(", ")}\n`);
    await clock.sleep(wait + RENEWAL_MS, signal);
  }
  const left = first.length > 0 && !signal.aborted ? await removeDead(session, namespace) : first;
  const lines = left.map(({ run, namespace: where }) => `${run} is alive in ${where}, and removes what it has made\n`);
  print(session, { left }, () => (left.length > 0 ? lines.join("") : "nothing is left\n"));
  return left.length > 0 ? EXIT.timeout : EXIT.ok;
}

function explainRights(error: unknown): never {
  if (!hasCode(error, "Forbidden")) throw error;
  throw new CliError(`what drills have left may not be listed: ${messageOf(error)}`, {
    hint: "for a namespace that was there before: zonewise -n NAMESPACE drill --clean",
  });
}
