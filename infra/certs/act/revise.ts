/** Carries out a decision on the Secret: one write, with the resourceVersion that was read. */
import { X509Certificate } from "node:crypto";
import type { Cluster } from "../../kubernetes/cluster.ts";
import { secrets, type Secret } from "../../kubernetes/resources.ts";
import { type CertificateAction, type Decision, type Situation, usableNext } from "../decide-certificate.ts";
import type { Certificates } from "./generate.ts";
import { composeData, type Contents, type KeyMaterial } from "../secret.ts";
import { findIssuer, spentShare } from "../x509.ts";

/** Makes a new CA and a pair that it signed. */
export type Issue = () => Promise<Certificates>;

/** Upper bound of the bundle: two jobs with different names would replace each other's pair forever. */
const MAX_CAS = 10;

interface Revision {
  readonly namespace: string;
  readonly secretName: string;
  /** The Secret as it was read; undefined if there is none. */
  readonly secret: Secret | undefined;
  readonly situation: Situation;
  readonly issue: Issue;
}

/**
 * Writes the decided change; resolves with false without one. Rejects with `Conflict`, `AlreadyExists` or `NotFound` if
 * another process was faster.
 */
export async function reviseSecret(cluster: Cluster, { action }: Decision, revision: Revision): Promise<boolean> {
  const { namespace, secretName: name, secret, situation } = revision;
  const material = situation.stored.state === "whole" ? situation.stored.material : undefined;
  const contents = await PLANS[action](material, revision);
  if (!contents) return false;
  if (secret)
    await cluster.replace(secrets, { namespace, name, body: { ...secret, data: composeData(contents, secret.data) } });
  else {
    const body = {
      apiVersion: "v1",
      kind: "Secret",
      type: "Opaque",
      metadata: { name, namespace },
      data: composeData(contents),
    };
    await cluster.create(secrets, { namespace, body });
  }
  return true;
}

/**
 * The contents that an action gives the Secret; undefined if it changes nothing, or needs material that is not there.
 */
type Plan = (material: KeyMaterial | undefined, revision: Revision) => Contents | undefined | Promise<Contents>;

const changeNothing: Plan = () => undefined;

const PLANS: Readonly<Record<CertificateAction, Plan>> = {
  async issue(material, { situation: { now }, issue }) {
    const { caPem, certPem, keyPem } = await issue();
    return { cas: bundle([new X509Certificate(caPem), ...(material?.cas ?? [])], now), serving: { certPem, keyPem } };
  },
  publish: (material, revision) => material && publish(material, revision),
  switch(material, { situation }) {
    const next = material && usableNext(material, situation);
    return next && { cas: bundle(material.cas, situation.now), serving: next };
  },
  tidy: (material, { situation }) =>
    material && {
      cas: bundle(material.cas, situation.now),
      serving: material.serving,
      next: usableNext(material, situation),
    },
  keep: changeNothing,
  wait: changeNothing,
  refuse: changeNothing,
};

async function publish(material: KeyMaterial, { situation: { now }, issue }: Revision): Promise<Contents> {
  const { caPem, certPem, keyPem } = await issue();
  const needed = [new X509Certificate(caPem), ...servingCa(material)];
  return { cas: bundle([...needed, ...material.cas], now), serving: material.serving, next: { certPem, keyPem } };
}

function servingCa({ serving, cas }: KeyMaterial): X509Certificate[] {
  const ca = findIssuer(serving.certificate, cas);
  return ca ? [ca] : [];
}

function bundle(cas: readonly X509Certificate[], now: number): X509Certificate[] {
  const living = cas.filter((ca) => spentShare(ca, now) < 1);
  return living
    .filter((ca, at) => living.findIndex((other) => other.fingerprint256 === ca.fingerprint256) === at)
    .slice(0, MAX_CAS);
}
