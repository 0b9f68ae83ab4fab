/**
 * Judges who changes the webhooks' certificate, and when (§7.3, §7.5): a reconciler makes the first one, and replaces one
 * only if the daily job is overdue; and a new one serves once every configuration has trusted it for half a minute, while
 * the old one is good. Judged from the store.
 */
import { X509Certificate } from "node:crypto";
import { dig, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import type { Caller } from "../network.ts";
import { CONFIGURATIONS, OTHER_INJECTOR, SECRET, whyNotTrusted } from "./trust.ts";

export interface CertificateSafetyOptions {
  readonly violated: (what: string) => void;
  readonly now: () => number;
}

/** In which all API servers have seen a configuration. */
const SETTLE_MS = 30_000;
/** A job has read what people have written before. */
const READ_MS = 150_000;
/** Share of its time before which a reconciler leaves a certificate to the job, as clocks may tell it. */
const OVERDUE_SHARE = 0.73;
/** Share of its time after which a certificate is replaced whoever trusts the next one, as clocks may tell it. */
const LAST_SHARE = 0.85;

/** The certificate of a Secret; undefined if it has none that can be read. */
function certificateOf(secret: KubeObject | undefined): X509Certificate | undefined {
  try {
    return new X509Certificate(Buffer.from(textOf(dig(secret, "data", "tls.crt")) ?? "", "base64"));
  } catch {
    return undefined;
  }
}

const bundleOf = (configuration: KubeObject): Buffer =>
  Buffer.from(textOf(dig(listOf(configuration["webhooks"])[0], "clientConfig", "caBundle")) ?? "", "base64");

/** Calls `violated` with what happened, in words. */
export function createCertificateSafety({ violated, now }: CertificateSafetyOptions) {
  /** By configuration its bundles, and since when it has each; the latest last. */
  const bundles = new Map<string, readonly { readonly at: number; readonly bundle: Buffer }[]>();
  /** When people last wrote a configuration or the Secret. */
  let theirsAt = -Infinity;

  /** Which part of its time is over. */
  function shareOf({ validFromDate, validToDate }: X509Certificate): number {
    const [from, to] = [validFromDate.getTime(), validToDate.getTime()];
    return (now() - from) / (to - from);
  }

  function isGood(certificate: X509Certificate, secret: KubeObject): boolean {
    const ca = Buffer.from(textOf(dig(secret, "data", "ca.crt")) ?? "", "base64");
    return whyNotTrusted(certificate, ca, now()) === undefined && shareOf(certificate) < LAST_SHARE;
  }

  /** Since when a configuration trusts this certificate. */
  function trustedMs(configuration: string, certificate: X509Certificate): number {
    const all = bundles.get(configuration) ?? [];
    const untrusted = all.findLastIndex(({ bundle }) => whyNotTrusted(certificate, bundle, now()) !== undefined);
    return now() - (all[untrusted + 1]?.at ?? now());
  }

  function onSecret({ object, previous }: StoreEvent, actor: string): void {
    if (!previous) return;
    const [before, after] = [certificateOf(previous), certificateOf(object)];
    if (!before || !after || before.fingerprint256 === after.fingerprint256) return;
    const isByReconciler = actor.startsWith("reconciler-");
    if (isByReconciler && shareOf(before) < OVERDUE_SHARE)
      violated(`${actor} replaces a certificate that is left to the certificate job`);
    if (
      !(isByReconciler || actor.startsWith("certificates-")) ||
      !isGood(before, previous) ||
      now() - theirsAt < READ_MS
    )
      return;
    for (const configuration of bundles.keys()) {
      const ms = trustedMs(configuration, after);
      if (ms < SETTLE_MS) violated(`${actor} serves a certificate that ${configuration} has trusted for ${ms} ms only`);
    }
  }

  return {
    onEvent(event: StoreEvent, caller: Caller | undefined): void {
      const { type, resource, object } = event;
      const { name } = object.metadata;
      const isConfiguration = CONFIGURATIONS.includes(resource);
      const isSecret = resource === "secrets" && name === SECRET;
      if (!isConfiguration && !isSecret) return;
      if (!/^(?:certificates|reconciler)-/.test(caller?.actor ?? "")) theirsAt = caller ? now() : theirsAt;
      if (isSecret && type === "MODIFIED") onSecret(event, caller?.actor ?? "");
      if (!isConfiguration) return;
      // Its bundle is not ours, and serves nobody here.
      if (object.metadata.annotations?.[OTHER_INJECTOR] !== undefined) {
        const isChanged = event.previous !== undefined && !bundleOf(event.previous).equals(bundleOf(object));
        if (isChanged && /^(?:certificates|reconciler)-/.test(caller?.actor ?? ""))
          violated(`${caller?.actor ?? ""} changes the bundle of ${name}, which another injector maintains`);
        return;
      }
      const before = type === "ADDED" ? [] : (bundles.get(name) ?? []);
      if (type === "DELETED") bundles.delete(name);
      else bundles.set(name, [...before, { at: now(), bundle: bundleOf(object) }]);
    },
  };
}
