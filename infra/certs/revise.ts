/** Carries out a decision on the Secret: one write, with the resourceVersion that was read. */
import { X509Certificate } from "node:crypto";
import type { Cluster } from "../kubernetes/cluster.ts";
import { secrets, type Secret } from "../kubernetes/resources.ts";
import type { Decision } from "./decide.ts";
import { usableNext, type Situation } from "./decide.ts";
import type { Certificates } from "./generate.ts";
import { composeData, type Contents, type KeyMaterial } from "./secret.ts";
import { findIssuer, spentShare } from "./x509.ts";

/** Makes a new CA and a pair that it signed. */
export type Issue = () => Promise<Certificates>;

/** Upper bound of the bundle: two jobs with different names would replace each other's pair forever. */
const MOST_CAS = 10;

export interface Revision {
  readonly namespace: string;
  readonly secretName: string;
  /** The Secret as it was read; undefined if there is none. */
  readonly secret: Secret | undefined;
  readonly situation: Situation;
  readonly issue: Issue;
}

/** Writes the decided change; resolves with false without one. Rejects with `Conflict`, `AlreadyExists` or `NotFound` if another process was faster. */
export async function reviseSecret(cluster: Cluster, { action }: Decision, revision: Revision): Promise<boolean> {
  const { namespace, secretName: name, secret, situation } = revision;
  const contents = await plan(action, situation, revision.issue);
  if (!contents) return false;
  if (secret) await cluster.replace(secrets, { namespace, name }, { ...secret, data: composeData(contents, secret.data) });
  else {
    const metadata = { name, namespace };
    await cluster.create(secrets, namespace, { apiVersion: "v1", kind: "Secret", type: "Opaque", metadata, data: composeData(contents) });
  }
  return true;
}

async function plan(action: Decision["action"], situation: Situation, issue: Issue): Promise<Contents | undefined> {
  const { stored, now } = situation;
  const material = stored.state === "whole" ? stored.material : undefined;
  switch (action) {
    case "issue": {
      const { caPem, certPem, keyPem } = await issue();
      return { cas: bundle([new X509Certificate(caPem), ...(material?.cas ?? [])], now), serving: { certPem, keyPem } };
    }
    case "publish": {
      if (!material) return undefined;
      const { caPem, certPem, keyPem } = await issue();
      const needed = [new X509Certificate(caPem), ...servingCa(material)];
      return { cas: bundle([...needed, ...material.cas], now), serving: material.serving, next: { certPem, keyPem } };
    }
    case "switch": {
      const next = material && usableNext(material, situation);
      return next && { cas: bundle(material.cas, now), serving: next };
    }
    case "tidy":
      return material && { cas: bundle(material.cas, now), serving: material.serving, next: usableNext(material, situation) };
    case "keep":
    case "wait":
    case "refuse":
      return undefined;
  }
}

function servingCa({ serving, cas }: KeyMaterial): X509Certificate[] {
  const ca = findIssuer(serving.chain, cas);
  return ca ? [ca] : [];
}

function bundle(cas: readonly X509Certificate[], now: number): X509Certificate[] {
  const living = cas.filter((ca) => spentShare(ca, now) < 1);
  return living.filter((ca, at) => living.findIndex((other) => other.fingerprint256 === ca.fingerprint256) === at).slice(0, MOST_CAS);
}
