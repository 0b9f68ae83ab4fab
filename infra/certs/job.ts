/**
 * One run of the certificate job: gather -> decide -> act, until nothing is left to do.
 *
 *   list configurations -> read the Secret -> inject its bundle -> decide -> one write of the Secret -> again
 *
 * Every write has a precondition, so that any number of jobs may run at once and be killed anywhere: the next one goes on from what it finds.
 */
import type { Clock } from "../clock.ts";
import type { Cluster } from "../kubernetes/cluster.ts";
import { absent, hasCode, isTransient, RolloutError } from "../errors.ts";
import type { Log } from "../log.ts";
import { secrets } from "../kubernetes/resources.ts";
import { isOurs, lagsBehind } from "./configurations.ts";
import { decideCertificates, SETTLE_MS, type Decision } from "./decide.ts";
import { injectBundle, listConfigurations, type Injection } from "./inject.ts";
import { reviseSecret, type Issue } from "./revise.ts";
import { readStored } from "./secret.ts";

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
  /** Ends the run after the current step. */
  readonly stop: AbortSignal;
}

/** Pause before the next look when something was in the way. */
const PAUSE_MS = 1000;
/** Looks after which the run leaves the rest to the next one; a renewal takes four. */
const MOST_LOOKS = 15;

/**
 * Makes the Secret good and the configurations trust it. Resolves with 0, or with 1 if a configuration could not be given the bundle or
 * `stop` fired first; rejects with `Invalid` for a damaged Secret, and with what the cluster says when it goes on saying so.
 */
export async function runCertificateJob(input: JobInput): Promise<0 | 1> {
  const { clock, log, stop } = input;
  let spreadSince: number | undefined;
  let verdict: 0 | 1 = 1;
  for (let look = 1; look <= MOST_LOOKS && !stop.aborted; look++) {
    const step = await takeStep(input, spreadSince).catch((error: unknown) => {
      if (!mayPass(error) || look === MOST_LOOKS) throw error;
      log.warn("transient API error; trying again", { error });
      return undefined;
    });
    spreadSince = step?.spreadSince;
    if (step && isDone(step, input)) return 0;
    if (step) verdict = step.injection.failed.length + step.injection.superseded.length > 0 ? 1 : 0;
    const settling = step?.decision.action === "wait" && spreadSince !== undefined;
    if (!step?.written) await clock.sleep(settling ? SETTLE_MS - (clock.monotonic() - (spreadSince ?? 0)) : PAUSE_MS, stop);
  }
  return stop.aborted ? 1 : verdict;
}

/** The API server may not know yet a role that was granted with the job. */
function mayPass(error: unknown): boolean {
  return isTransient(error) || hasCode(error, "Forbidden");
}

interface Step {
  readonly decision: Decision;
  readonly written: boolean;
  readonly injection: Injection;
  /** On the monotonic clock: since when every configuration has been seen with the bundle. */
  readonly spreadSince: number | undefined;
}

function isDone({ decision, injection }: Step, { inject }: JobInput): boolean {
  if (decision.action === "wait") return !inject;
  return decision.action === "keep" && injection.failed.length === 0 && injection.superseded.length === 0;
}

const NOTHING: Injection = { patched: [], superseded: [], failed: [] };

async function takeStep(input: JobInput, spreadBefore: number | undefined): Promise<Step> {
  const { cluster, clock, log, namespace, secretName, inject } = input;
  const listed = inject ? (await listConfigurations(cluster, namespace)).listed : [];
  const secret = await cluster.get(secrets, { namespace, name: secretName }).catch(absent);
  const stored = readStored(secret);
  const material = stored.state === "whole" ? stored.material : undefined;
  const injection = material ? await injectBundle(cluster, namespace, listed, material.caPem) : NOTHING;
  for (const { name, error } of [...injection.failed, ...injection.superseded])
    log.warn("a webhook configuration could not be given the CA bundle", { name, error });
  if (injection.patched.length > 0) log.info("webhook configurations were given the CA bundle", { names: injection.patched });

  const missed = injection.failed.length + injection.superseded.length > 0;
  const lagging = material ? listed.filter((one) => !isOurs(one, namespace) && lagsBehind(one, material)) : [];
  const isSpread = inject && material !== undefined && !missed && lagging.length === 0;
  const since = injection.patched.length > 0 ? undefined : spreadBefore;
  const spreadSince = isSpread ? (since ?? clock.monotonic()) : undefined;

  const spreadForMs = spreadSince === undefined ? undefined : clock.monotonic() - spreadSince;
  const situation = { stored, dnsNames: input.dnsNames, now: clock.now(), spreadForMs };
  const decision = decideCertificates(situation);
  if (decision.action === "refuse") throw new RolloutError("Invalid", decision.message);
  const waitsFor = lagging.map(({ configuration }) => configuration.metadata?.name);
  log[decision.action === "keep" ? "debug" : "info"]("certificate", {
    ...decision,
    secret: secretName,
    ...(lagging.length > 0 && { waitsFor }),
  });
  const written = await reviseSecret(cluster, decision, { namespace, secretName, secret, situation, issue: input.issue });
  return { decision, written, injection, spreadSince: written ? undefined : spreadSince };
}
