/**
 * A drill: tries whatever serves the namespace on three zones of its own, and reports which promises held. It removes
 * what it makes, also after a Ctrl-C; the next run removes the objects of a killed one.
 */
import { CliError, EXIT, type ExitCode } from "../../cli/exit.ts";
import { CRON_JOB, HOME, type ReadSettings } from "../../cli/gather/settings.ts";
import { gatherTicking } from "../../cli/gather/ticking.ts";
import type { Display } from "../../cli/output/text.ts";
import { firstOfSignals, type Clock } from "../../infra/clock.ts";
import { shortDuration } from "../../infra/duration.ts";
import { messageOf } from "../../infra/errors.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { type CronJob, cronJobs, resourceOf } from "../../infra/kubernetes/resources.ts";
import { createHistory } from "./history.ts";
import { judge, type Row } from "./judge.ts";
import { findLeftovers, type Leftover, type Place, removePlace, renew, type Caller } from "./place.ts";
import { describeRight, nameRun, PAUSE_IMAGE, RENEWAL_MS, RIGHTS, type Run } from "./plan.ts";
import { renderReport, type Report } from "./report.ts";
import { runDrill } from "./stages.ts";

/** What a drill is done with, and where. */
interface Surroundings {
  readonly cluster: Cluster;
  /** The same cluster for calls that a Ctrl-C does not end. */
  readonly cleanup: Cluster;
  readonly clock: Clock;
  readonly namespace: string;
  readonly settings: ReadSettings;
  readonly signal: AbortSignal;
  readonly io: Display & {
    readonly write: (text: string) => void;
    readonly warn: (text: string) => void;
  };
}

export interface Choices {
  /** Of the pods; that of the reconciler by default. */
  readonly image: string | undefined;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly json: boolean;
}

export async function play(around: Surroundings, { image, nodeSelector, timeoutMs, json }: Choices): Promise<ExitCode> {
  const { cluster, namespace, signal } = around;
  await requireBudgets(around);
  await requireRights(around);
  await removeDead(around);
  const own = await findImage(around);
  const name = nameRun(Math.random);
  const isOwnImage = image === undefined && own !== undefined;
  const run: Run = { name, namespace, image: image ?? own ?? PAUSE_IMAGE, isOwnImage, nodeSelector };
  const { report, left } = await conduct(around, run, timeoutMs);
  const isUnseen = report.promises.some(({ verdict }) => verdict === "not seen");
  // Where Zonewise is not installed, its reconciler is no reason.
  const isAsked = isUnseen && own !== undefined && !signal.aborted;
  const noTicks = isAsked ? await gatherTicking({ ...around, cluster }) : [];
  const whole: Report = { ...report, notes: noTicks.map(({ message, remedy }) => `${message}; helps: ${remedy}`) };
  around.io.write(json ? `${JSON.stringify(whole, undefined, 2)}\n` : renderReport(whole, around.io));
  if (left) throw left.error;
  return exitOf(whole.promises);
}

interface Conducted {
  readonly report: Omit<Report, "notes">;
  /** Why what was made could not be removed. */
  readonly left: { readonly error: unknown } | undefined;
}

/** Resolves after the removal: its reader may have gone, and the objects must be removed all the same. */
async function conduct(around: Surroundings, run: Run, timeoutMs: number): Promise<Conducted> {
  const { cluster, clock, io, signal, namespace } = around;
  const place: Place = { run: run.name, namespace };
  const removing: Caller = { cluster: around.cleanup, clock };
  const over = new AbortController();
  const startedAt = clock.monotonic();
  const tell = (text: string): void =>
    io.warn(`${shortDuration(clock.monotonic() - startedAt).padStart(6)}  ${text}\n`);
  const renewing = renew(removing, place, over.signal);
  void clock.sleep(timeoutMs, firstOfSignals(signal, over.signal)).then(() => over.abort());
  const history = createHistory(clock.monotonic);
  const until = firstOfSignals(signal, over.signal);
  const played = await runDrill({ cluster, clock, history, run, random: Math.random, signal: until }, tell).then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  const seconds = Math.round((clock.monotonic() - startedAt) / 1000);
  over.abort();
  await renewing;
  if (signal.aborted) io.warn("stopped: what was made is being removed; a second Ctrl-C leaves it\n");
  else tell("what was made is being removed");
  const left = await removeAll(removing, place).then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  if (played) {
    // The first error is the cause, and the one that is thrown.
    if (left) io.warn(`error: ${messageOf(left.error)}\n`);
    throw played.error;
  }
  const report = { run: run.name, namespace, image: run.image, seconds, promises: judge(history.entries) };
  return { report, left };
}

const exitOf = (rows: readonly Row[]): ExitCode =>
  rows.some(({ verdict }) => verdict === "did not hold")
    ? EXIT.no
    : rows.some(({ verdict }) => verdict === "not seen")
      ? EXIT.timeout
      : EXIT.ok;

async function requireBudgets({ cluster }: Surroundings): Promise<void> {
  const kind = "ZoneAwarePodDisruptionBudget";
  if ((await cluster.discover("rollout-operator.grafana.com", kind)).length > 0) return;
  throw new CliError(`the cluster has no definition of ${kind}: neither Zonewise nor the original is installed`, {
    hint: "kubectl apply -k infra/manifests/crds",
  });
}

const accessReviews = resourceOf<{ readonly spec: object; readonly status?: { readonly allowed?: boolean } }>(
  "authorization.k8s.io/v1",
  "selfsubjectaccessreviews",
);

async function requireRights(around: Surroundings): Promise<void> {
  const { cluster, namespace } = around;
  const isAllowed = async (right: (typeof RIGHTS)[number]): Promise<boolean> => {
    const spec = { resourceAttributes: { ...right, namespace } };
    const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec };
    return (await cluster.create(accessReviews, { body })).status?.allowed === true;
  };
  const answers = await Promise.all(RIGHTS.map(isAllowed));
  const denied = RIGHTS.filter((_, i) => !answers[i]);
  if (denied.length === 0) return;
  throw new CliError(`you may not ${denied.map(describeRight).join(", ")}: nothing was made`, {
    hint: "docs/operate/drill.md has the rights that a drill needs",
  });
}

/** The image of Zonewise's reconciler; undefined if there is none, or if it may not be read. */
async function findImage({ cluster, namespace }: Surroundings): Promise<string | undefined> {
  const imageOf = ({ spec }: CronJob): string | undefined =>
    spec?.jobTemplate?.spec?.template?.spec?.containers?.[0]?.image;
  for (const home of [namespace, HOME]) {
    const image = await cluster.get(cronJobs, { namespace: home, name: CRON_JOB }).then(imageOf, () => undefined);
    if (image !== undefined) return image;
  }
  return undefined;
}

async function removeAll(removing: Caller, place: Place): Promise<void> {
  const again = `npm run drill -- -n ${place.namespace} --clean`;
  const isGone = await removePlace(removing, place).catch((error: unknown) => {
    throw new CliError(`what the drill has made in ${place.namespace} could not be removed: ${messageOf(error)}`, {
      hint: again,
    });
  });
  if (!isGone) throw new CliError(`what the drill has made in ${place.namespace} is not gone yet`, { hint: again });
}

/** Removes the objects of dead runs; resolves with those of runs that live. */
async function removeDead(around: Surroundings): Promise<Leftover[]> {
  const found = await findLeftovers(around, around.namespace);
  const dead = found.filter(({ expires }) => expires < around.clock.now());
  for (const place of dead) {
    around.io.warn(`removing what ${place.run} has left in ${place.namespace}\n`);
    await removeAll(around, place);
  }
  return found.filter((one) => !dead.includes(one));
}

/**
 * Removes the objects of dead runs. Runs that seem alive are awaited first: a killed run counts as alive for up to a
 * minute, but only a living one renews its expiry.
 */
export async function clean(around: Surroundings): Promise<ExitCode> {
  const { clock, io, signal } = around;
  const first = await removeDead(around);
  const wait = Math.min(Math.max(0, ...first.map(({ expires }) => expires - clock.now())), 4 * RENEWAL_MS);
  if (first.length > 0) {
    io.warn(`waiting ${shortDuration(wait)} for a sign of life of ${first.map(({ run }) => run).join(", ")}\n`);
    await clock.sleep(wait + RENEWAL_MS, signal);
  }
  const left = first.length > 0 && !signal.aborted ? await removeDead(around) : first;
  const lines = left.map(({ run, namespace: where }) => `${run} is alive in ${where}, and removes what it has made\n`);
  io.write(left.length > 0 ? lines.join("") : "nothing is left\n");
  return left.length > 0 ? EXIT.timeout : EXIT.ok;
}
