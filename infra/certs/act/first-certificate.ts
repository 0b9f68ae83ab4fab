/**
 * The first certificate of an installation, or the one after its Secret was deleted. The reconciler makes it, because
 * it runs every minute, so that no manifest holds a Job: a Job cannot be changed, and one with a wrong image would
 * block every later `kubectl apply`.
 */
import type { Call, Cluster } from "../../kubernetes/cluster.ts";
import { absent, hasCode } from "../../errors.ts";
import { secrets } from "../../kubernetes/resources.ts";
import { decideCertificates } from "../decide-certificate.ts";
import { type Issue, reviseSecret } from "./revise.ts";
import { readStored } from "../secret.ts";

export interface FirstCertificate {
  readonly namespace: string;
  readonly secretName: string;
  /** Names that the certificate must hold for. */
  readonly dnsNames: readonly string[];
  readonly issue: Issue;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Fills the Secret if it is missing or empty; the certificate job handles any other content. Resolves with true if it
 * wrote, and with false if another process was faster; rejects with the error of the API server.
 */
export async function issueFirstCertificate(cluster: Cluster, input: FirstCertificate, call?: Call): Promise<boolean> {
  const { namespace, secretName, dnsNames, issue, now } = input;
  const secret = await cluster.get(secrets, { namespace, name: secretName }, call).catch(absent);
  const stored = readStored(secret);
  if (stored.state !== "absent" && stored.state !== "empty") return false;
  const situation = { stored, dnsNames, now, spreadForMs: undefined };
  try {
    return await reviseSecret(cluster, decideCertificates(situation), {
      namespace,
      secretName,
      secret,
      situation,
      issue,
    });
  } catch (error) {
    if (hasCode(error, "Conflict", "AlreadyExists")) return false;
    throw error;
  }
}
