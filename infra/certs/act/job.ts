/**
 * One run of the certificate job: gather -> decide -> act, until nothing is left to do.
 *
 *   list configurations -> read the Secret -> inject its bundle -> decide -> one write of the Secret -> again
 *
 * Every write has a precondition, so that any number of jobs may run at once and be killed at any point: the next one
 * starts from the state that it finds.
 */
import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../kubernetes/cluster.ts";
import { absent, hasCode, isTransient, RolloutError } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { secrets } from "../../kubernetes/resources.ts";
import { isOurConfiguration, lagsBehind, type Listed } from "../configurations.ts";
import { decideCertificates, SETTLE_MS, type Decision } from "../decide-certificate.ts";
import { injectBundle, listConfigurations, logInjection, type Injection } from "./inject.ts";
import { reviseSecret, type Issue } from "./revise.ts";
import { readStored, type Stored } from "../secret.ts";

export interface JobInput {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly namespace: string;
  readonly secretName: string;
  /** Names that the certificate must hold for. */
  readonly dnsNames: readonly string[];
  readonly issue: Issue;
  /** False leaves webhook configurations alone: they are not even listed. */
  readonly inject: boolean;
  /** Gives the bundle to others; resolves with false if one of them does not have it. */
  readonly publish?: (caPem: string) => Promise<boolean>;
  /** Ends the run after the current step. */
  readonly stop: AbortSignal;
}

/** Pause before the next step if the last one failed or wrote nothing. */
const PAUSE_MS = 1000;
const NOTHING: Injection = { patched: [], superseded: [], failed: [] };
/** Steps after which the run leaves the rest to the next one; a renewal takes four. */
const MAX_STEPS = 15;

/**
 * Completes the Secret, and makes the configurations trust it. Resolves with 0, or with 1 if a configuration could not
 * be given the bundle or `stop` fired first; rejects with `Invalid` for a damaged Secret, and with an error of the API
 * server that lasts.
 */
export async function runCertificateJob(input: JobInput): Promise<0 | 1> {
  const { log, stop } = input;
  let step: Step | undefined;
  let isMissed = true;
  for (let count = 1; count <= MAX_STEPS && !stop.aborted; count++) {
    step = await takeStep(input, step?.spreadSince).catch((error: unknown) => {
      if (!mayPass(error) || count === MAX_STEPS) throw error;
      // A conflict: another process wrote the Secret first.
      log[hasCode(error, "Conflict", "AlreadyExists") ? "info" : "warn"]("transient API error; trying again", {
        error,
      });
      return undefined;
    });
    if (step && isDone(step, input)) return 0;
    if (step) isMissed = isAnyMissed(step.injection) || !step.isPublished;
    await pauseAfter(step, input);
  }
  return endRun(input, isMissed, step?.injection);
}

/** Logs the configurations that the run leaves without the bundle, unless `stop` has fired. */
function endRun({ log, stop }: JobInput, isMissed: boolean, { superseded } = NOTHING): 0 | 1 {
  if (stop.aborted) return 1;
  logInjection(log, { ...NOTHING, superseded });
  return isMissed ? 1 : 0;
}

/** After a write, the next step follows at once. */
async function pauseAfter(step: Step | undefined, { clock, stop }: JobInput): Promise<void> {
  if (step?.written) return;
  const isSettling = step?.decision.action === "wait" && step.spreadSince !== undefined;
  await clock.sleep(isSettling ? SETTLE_MS - (clock.monotonic() - step.spreadSince) : PAUSE_MS, stop);
}

/** The API server may not know a role yet that was granted together with the job. */
function mayPass(error: unknown): boolean {
  return isTransient(error) || hasCode(error, "Forbidden");
}

interface Step {
  readonly decision: Decision;
  readonly written: boolean;
  readonly injection: Injection;
  readonly isPublished: boolean;
  /** On the monotonic clock: since when every configuration has been seen with the bundle. */
  readonly spreadSince: number | undefined;
}

function isDone({ decision, injection, isPublished }: Step, { inject, publish }: JobInput): boolean {
  if (decision.action === "wait") return !inject && publish === undefined;
  return decision.action === "keep" && isPublished && !isAnyMissed(injection);
}

function isAnyMissed({ failed, superseded }: Injection): boolean {
  return failed.length + superseded.length > 0;
}

/** The distribution of the stored bundle. */
interface Spread {
  readonly injection: Injection;
  /** Configurations of other injectors that have the old bundle. */
  readonly lagging: readonly Listed[];
  readonly isPublished: boolean;
  /** Every configuration has the bundle, and so have the others that it is published to. */
  readonly isSpread: boolean;
}

/** Injects the stored bundle, if there is one, into the listed configurations. */
async function spreadBundle(
  { cluster, log, namespace, inject, publish }: JobInput,
  stored: Stored,
  listed: readonly Listed[],
): Promise<Spread> {
  if (stored.state !== "whole") return { injection: NOTHING, lagging: [], isSpread: false, isPublished: false };
  const { material } = stored;
  const isPublished = (await publish?.(material.caPem)) ?? true;
  const injection = await injectBundle(cluster, { namespace, listed, caPem: material.caPem });
  // Another writer has changed them since the list (at a first start, the reconciler): the next step lists them again.
  logInjection(log, { ...injection, superseded: [] });
  for (const { name, error } of injection.superseded)
    log.debug("a webhook configuration is read again", { configuration: name, error });
  const lagging = listed.filter((one) => !isOurConfiguration(one, namespace) && lagsBehind(one, material));
  return {
    injection,
    lagging,
    isPublished,
    isSpread: (inject || publish !== undefined) && isPublished && !isAnyMissed(injection) && lagging.length === 0,
  };
}

function logDecision({ log, secretName }: JobInput, decision: Decision, lagging: readonly Listed[]): void {
  const waitsFor = lagging.map(({ configuration }) => configuration.metadata?.name);
  const level = decision.action === "keep" ? "debug" : "info";
  log[level]("certificate", { ...decision, secret: secretName, ...(lagging.length > 0 && { waitsFor }) });
}

async function takeStep(input: JobInput, spreadBefore: number | undefined): Promise<Step> {
  const { cluster, clock, namespace, secretName, inject } = input;
  const listed = inject ? await listConfigurations(cluster, namespace) : [];
  const secret = await cluster.get(secrets, { namespace, name: secretName }).catch(absent);
  const stored = readStored(secret);
  const { injection, lagging, isSpread, isPublished } = await spreadBundle(input, stored, listed);
  const since = injection.patched.length > 0 ? undefined : spreadBefore;
  const spreadSince = isSpread ? (since ?? clock.monotonic()) : undefined;

  const spreadForMs = spreadSince === undefined ? undefined : clock.monotonic() - spreadSince;
  const situation = { stored, dnsNames: input.dnsNames, now: clock.now(), spreadForMs };
  const decision = decideCertificates(situation);
  if (decision.action === "refuse") throw new RolloutError("Invalid", decision.message);
  logDecision(input, decision, lagging);
  const written = await reviseSecret(cluster, decision, {
    namespace,
    secretName,
    secret,
    situation,
    issue: input.issue,
  });
  return { decision, written, injection, isPublished, spreadSince: written ? undefined : spreadSince };
}
