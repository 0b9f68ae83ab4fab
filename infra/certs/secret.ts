/**
 * The layout of the Secret: the original's keys (§7.2), those of kubernetes.io/tls, and the next pair, which serves
 * once its CA is trusted everywhere.
 *
 *   ca, cert, key              the original's keys; these are decisive
 *   ca.crt, tls.crt, tls.key   copies of the same values
 *   next.crt, next.key         the next pair; its CA is in `ca` already
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { messageOf } from "../errors.ts";
import type { Secret } from "../kubernetes/resources.ts";
import { readCertificates } from "./x509.ts";

/** A certificate with its key. */
export interface Pair {
  readonly certificate: X509Certificate;
  readonly certPem: string;
  readonly keyPem: string;
}

export interface KeyMaterial {
  /** The stored bundle, as webhook configurations get it. */
  readonly caPem: string;
  readonly cas: readonly X509Certificate[];
  readonly serving: Pair;
  readonly next: Pair | undefined;
  /** False if a copy is missing or differs, or if parts of a next pair are left over. */
  readonly complete: boolean;
}

export type Stored =
  | { readonly state: "absent" }
  | { readonly state: "empty" }
  | { readonly state: "damaged"; readonly message: string }
  | { readonly state: "whole"; readonly material: KeyMaterial };

const ALIASES = { ca: "ca.crt", cert: "tls.crt", key: "tls.key" } as const;
const NEXT = { cert: "next.crt", key: "next.key" } as const;
const ADVICE = "delete the secret and try again";

/** Reads a Secret (§7.3); the message for a damaged one names the key. */
export function readStored(secret: Secret | undefined): Stored {
  if (!secret) return { state: "absent" };
  const data = new Map(
    Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
  );
  if (data.size === 0) return { state: "empty" };
  const { namespace = "", name = "" } = secret.metadata ?? {};
  const which = `secret "${name}" in namespace "${namespace}"`;
  const missing = Object.keys(ALIASES).find((key) => !data.get(key));
  if (missing) return { state: "damaged", message: `${which} does not contain a ${missing} key, ${ADVICE}` };
  try {
    return { state: "whole", material: readMaterial(data) };
  } catch (error) {
    return { state: "damaged", message: `${which}: ${messageOf(error)}, ${ADVICE}` };
  }
}

function readMaterial(data: ReadonlyMap<string, string>): KeyMaterial {
  const next = readNext(data);
  const mirrored = Object.entries(ALIASES).every(([key, alias]) => data.get(key) === data.get(alias));
  return {
    caPem: data.get("ca") ?? "",
    cas: readPart(data, "ca", readCertificates),
    serving: readPair(data, "cert", "key"),
    next,
    complete: mirrored && (next !== undefined || !(data.has(NEXT.cert) || data.has(NEXT.key))),
  };
}

// No process uses the next pair yet: a damaged one is ignored.
function readNext(data: ReadonlyMap<string, string>): Pair | undefined {
  try {
    return readPair(data, NEXT.cert, NEXT.key);
  } catch {
    return undefined;
  }
}

function readPair(data: ReadonlyMap<string, string>, cert: string, key: string): Pair {
  const certificate = readPart(data, cert, (pem) => new X509Certificate(pem));
  const privateKey = readPart(data, key, createPrivateKey);
  if (!certificate.checkPrivateKey(privateKey))
    throw new Error(`its key ${JSON.stringify(key)} is not the one of ${JSON.stringify(cert)}`);
  return { certificate, certPem: data.get(cert) ?? "", keyPem: data.get(key) ?? "" };
}

function readPart<T>(data: ReadonlyMap<string, string>, key: string, read: (pem: string) => T): T {
  try {
    return read(data.get(key) ?? "");
  } catch (cause) {
    throw new Error(`its key ${JSON.stringify(key)} cannot be read`, { cause });
  }
}

export interface Contents {
  readonly cas: readonly X509Certificate[];
  readonly serving: Pick<Pair, "certPem" | "keyPem">;
  readonly next?: Pick<Pair, "certPem" | "keyPem"> | undefined;
}

/** The data of a Secret with these contents; other keys are kept. */
export function composeData({ cas, serving, next }: Contents, before: Secret["data"] = {}): Record<string, string> {
  const ours = { ca: cas.map((ca) => ca.toString()).join(""), cert: serving.certPem, key: serving.keyPem };
  const waiting = next ? { [NEXT.cert]: next.certPem, [NEXT.key]: next.keyPem } : {};
  const aliases = Object.entries(ALIASES).map(([key, alias]) => [alias, ours[key as keyof typeof ours]] as const);
  const texts = Object.entries({ ...ours, ...Object.fromEntries(aliases), ...waiting });
  const { [NEXT.cert]: _, [NEXT.key]: __, ...rest } = before;
  return { ...rest, ...Object.fromEntries(texts.map(([key, text]) => [key, Buffer.from(text).toString("base64")])) };
}
