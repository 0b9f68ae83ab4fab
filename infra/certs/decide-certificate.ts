/**
 * Decides the next change of the Secret by an ordered list of small rules, each named for the situation it finds; the
 * first with a decision wins.
 *
 *   absent --issue--> serving --2/3 of its validity, or a name is missing--> publish: new CA in the bundle, next pair stored
 *      ^                 ^                                                  |
 *      |                 +-- switch: every configuration has had the bundle for a while, and the next pair serves
 *      +-- expired, not valid yet, not signed by the bundle, or for none of the names: every call fails already, so waiting would
 *          protect nothing: a new pair serves at once
 *
 * An old CA stays in the bundle until it expires, as its last certificate does: a reader may reload late. Its key was
 * discarded, so it can sign nothing else meanwhile.
 */
import type { X509Certificate } from "node:crypto";
import { firstOf } from "../rules.ts";
import type { KeyMaterial, Pair, Stored } from "./secret.ts";
import { findIssuer, missingNames, spentShare } from "./x509.ts";

export interface Situation {
  readonly stored: Stored;
  /** DNS names that the certificate must have. */
  readonly dnsNames: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: number;
  /**
   * Milliseconds since every configuration of ours was first seen with the stored bundle; undefined if one lacks it, or
   * if none was read.
   */
  readonly spreadForMs: number | undefined;
}

/**
 * `issue`: a new pair serves at once; `publish`: it is stored as the next pair; `tidy`: only other keys of the Secret
 * are corrected.
 */
export type CertificateAction = "keep" | "issue" | "publish" | "switch" | "wait" | "tidy" | "refuse";

export interface Decision {
  readonly action: CertificateAction;
  readonly reason: string;
  readonly message: string;
}

/** Share of a certificate's validity after which its successor is made. */
const RENEW_AT = 2 / 3;
/**
 * Share after which the certificate job is overdue, a month after its first chance with the default validity. It is a
 * share, so that it leaves time for any validity: a daily job is too rare for one below 72 hours.
 */
const OVERDUE_AT = 3 / 4;
/**
 * Share after which the successor serves even if not every configuration is known to trust it: no client trusts an
 * expired certificate.
 */
const SWITCH_ANYWAY_AT = 11 / 12;
/**
 * Milliseconds in which all API servers have seen a change of a configuration. They watch it, usually with a delay well
 * under a second.
 */
export const SETTLE_MS = 30_000;
/**
 * Milliseconds. A certificate that becomes valid within this time is kept: the next read may go to an API server whose
 * clock is behind.
 */
const CLOCKS_DIFFER_MS = 300_000;

const say = (action: CertificateAction, reason: string, message: string): Decision => ({ action, reason, message });

const decideByStored = firstOf<[Situation], Decision>([
  ({ stored }) => (stored.state === "absent" ? say("issue", "SecretMissing", "there is no secret yet") : undefined),
  ({ stored }) => (stored.state === "empty" ? say("issue", "SecretEmpty", "the secret is empty") : undefined),
  ({ stored }) => (stored.state === "damaged" ? say("refuse", "SecretDamaged", stored.message) : undefined),
]);

const decideByMaterial = firstOf<[KeyMaterial, Situation], Decision>([
  ({ cas, serving }) =>
    findIssuer(serving.certificate, cas)
      ? undefined
      : say("issue", "CaDoesNotSign", "no CA of the bundle has signed the certificate"),

  (material, situation) => {
    const why = whyRefused(material, situation);
    return why && say(usableNext(material, situation) ? "switch" : "issue", ...why);
  },

  (material, situation) => {
    if (!usableNext(material, situation)) return undefined;
    const { spreadForMs } = situation;
    if (spreadForMs !== undefined && spreadForMs >= SETTLE_MS)
      return say("switch", "NextTrusted", "the new CA is trusted everywhere");
    if (spreadForMs !== undefined)
      return say("wait", "BundleSettling", "the new CA has just reached the last configuration");
    if (share(material, situation.now) >= SWITCH_ANYWAY_AT)
      return say("switch", "LastCall", "the certificate is about to expire");
    return say("wait", "BundleNotSpread", "the new CA is not known to be in every webhook configuration");
  },

  (material, { dnsNames }) => {
    const missing = findMissing(material, dnsNames);
    return missing.length > 0
      ? say("publish", "NameMissing", `the certificate does not hold for ${missing.join(", ")}`)
      : undefined;
  },

  (material, { now }) =>
    share(material, now) >= RENEW_AT
      ? say("publish", "DueForRenewal", "two thirds of the certificate's time are over")
      : undefined,

  ({ next }) => (next ? say("tidy", "NextUnusable", "the waiting certificate is of no use") : undefined),

  ({ cas }, { now }) =>
    cas.some((ca) => spentShare(ca, now) >= 1) ? say("tidy", "ExpiredCa", "a CA of the bundle has expired") : undefined,

  ({ complete }) =>
    complete
      ? undefined
      : say("tidy", "LayoutIncomplete", "ca.crt, tls.crt and tls.key are not what ca, cert and key are"),
]);

/** The next change of the Secret (§7.3, §7.5, §13.9). */
export function decideCertificates(situation: Situation): Decision {
  const { stored } = situation;
  const decision =
    decideByStored(situation) ?? (stored.state === "whole" ? decideByMaterial(stored.material, situation) : undefined);
  return decision ?? say("keep", "UpToDate", "the certificate is good");
}

/** True if the certificate job should have replaced the certificate that serves long ago. */
export const isRenewalOverdue = ({ stored, now }: Pick<Situation, "stored" | "now">): boolean =>
  stored.state === "whole" && share(stored.material, now) >= OVERDUE_AT;

/** Why every client refuses the certificate, or its CA. */
function whyRefused(
  material: KeyMaterial,
  { now, dnsNames }: Situation,
): [reason: string, message: string] | undefined {
  const all = withIssuer(material);
  const name = ({ subject }: X509Certificate): string => subject.replaceAll("\n", ", ");
  const expired = all.find((one) => spentShare(one, now) >= 1);
  if (expired) return ["Expired", `${name(expired)} expired at ${expired.validToDate.toISOString()}`];
  const early = all.find(({ validFromDate }) => validFromDate.getTime() > now + CLOCKS_DIFFER_MS);
  if (early) return ["NotYetValid", `${name(early)} is valid from ${early.validFromDate.toISOString()} on only`];
  return findMissing(material, dnsNames).length < dnsNames.length
    ? undefined
    : ["NoNameHeld", `the certificate covers none of ${dnsNames.join(", ")}`];
}

const findMissing = ({ serving }: KeyMaterial, dnsNames: readonly string[]): string[] =>
  missingNames(serving.certificate, dnsNames);

/** The larger of the elapsed shares of the certificate's and its CA's validity. */
const share = (material: KeyMaterial, now: number): number =>
  Math.max(...withIssuer(material).map((one) => spentShare(one, now)));

function withIssuer({ serving: { certificate }, cas }: KeyMaterial): X509Certificate[] {
  const issuer = findIssuer(certificate, cas);
  return issuer ? [certificate, issuer] : [certificate];
}

/**
 * The next pair, if it can serve: signed by the bundle, for all names, valid already, and not due for renewal itself.
 */
export function usableNext(
  { next, cas }: KeyMaterial,
  { dnsNames, now }: Pick<Situation, "dnsNames" | "now">,
): Pair | undefined {
  if (!next || missingNames(next.certificate, dnsNames).length > 0) return undefined;
  const issuer = findIssuer(next.certificate, cas);
  const isGood = (spent: number): boolean => spent >= 0 && spent < RENEW_AT;
  return issuer && [next.certificate, issuer].every((one) => isGood(spentShare(one, now))) ? next : undefined;
}
