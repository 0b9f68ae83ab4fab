/**
 * Follows the server's certificate: its files are a mounted Secret, which the kubelet replaces at some time after a
 * change.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Clock } from "../../infra/clock.ts";
import { messageOf } from "../../infra/errors.ts";
import type { Log } from "../../infra/log.ts";

interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

interface Following {
  readonly files: CertificateFiles;
  /** Milliseconds between two reads. */
  readonly everyMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * Calls `onPair` with the pair, and with each new one, until the signal fires. An unusable pair is logged once and
 * ignored.
 */
export async function followCertificate(
  { files, everyMs, clock, log, signal }: Following,
  onPair: (pair: KeyPair) => void,
): Promise<void> {
  let used = "";
  let complaint = "";
  while (!signal.aborted) {
    try {
      const pair = await readPair(files);
      const text = pair.cert + pair.key;
      // Only a new pair is checked: that costs more than all else that a server at rest does.
      if (text !== used) {
        const { validTo: validUntil } = checkPair(pair);
        onPair(pair);
        log.info("certificate loaded", { ...files, validUntil });
        used = text;
      }
      complaint = "";
    } catch (error) {
      const problem = messageOf(error);
      if (problem !== complaint) log.warn("certificate cannot be used", { ...files, problem });
      complaint = problem;
    }
    await clock.sleep(everyMs, signal);
  }
}

/** Rejects if a file is missing. */
async function readPair({ certFile, keyFile }: CertificateFiles): Promise<KeyPair> {
  const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
  return { cert, key };
}

/** Throws if one is not PEM, or if key and certificate do not match, as one may be older than the other. */
function checkPair({ cert, key }: KeyPair): X509Certificate {
  const certificate = new X509Certificate(cert);
  if (!certificate.checkPrivateKey(createPrivateKey(key))) throw new Error("the key is not the certificate's");
  return certificate;
}
