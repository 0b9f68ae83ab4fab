/**
 * What the reconciler does about the certificate of the webhooks, because it runs every minute:
 *
 * - It makes the first one of an installation, or the one after its Secret was deleted. So no manifest has a Job: a Job
 *   cannot be changed, and one with a wrong image would block every later `kubectl apply`.
 * - It does the daily job's work once that is overdue: a cluster that is off at the job's hour never runs it.
 */
import type { Call } from "../../kubernetes/cluster.ts";
import { absent, hasCode } from "../../errors.ts";
import { secrets } from "../../kubernetes/resources.ts";
import { decideCertificates, isRenewalOverdue } from "../decide-certificate.ts";
import { type JobInput, runCertificateJob } from "./job.ts";
import { reviseSecret } from "./revise.ts";
import { readStored } from "../secret.ts";

export type ProvideInput = Omit<JobInput, "publish">;

/**
 * `made`: the Secret was missing or empty, and is filled. `overdue`: the renewal was overdue, and is done, or waits for
 * the configurations. `left`: nothing to do, or it is left to the certificate job or to another process.
 */
export type Provided = "made" | "overdue" | "left";

/** Rejects with the error of the API server. */
export async function provideCertificate(input: ProvideInput, call?: Call): Promise<Provided> {
  const { cluster, clock, namespace, secretName, dnsNames, issue } = input;
  const secret = await cluster.get(secrets, { namespace, name: secretName }, call).catch(absent);
  const stored = readStored(secret);
  const situation = { stored, dnsNames, now: clock.now(), spreadForMs: undefined };
  if (isRenewalOverdue(situation)) {
    await runCertificateJob(input);
    return "overdue";
  }
  if (stored.state !== "absent" && stored.state !== "empty") return "left";
  const change = { namespace, secretName, secret, situation, issue };
  try {
    return (await reviseSecret(cluster, decideCertificates(situation), change)) ? "made" : "left";
  } catch (error) {
    if (hasCode(error, "Conflict", "AlreadyExists")) return "left";
    throw error;
  }
}
