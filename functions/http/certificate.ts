/** The server's certificate, followed while its files change: they are a mounted Secret, which the kubelet swaps at its leisure. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Clock } from "../../infra/clock.ts";
import { messageOf } from "../../infra/errors.ts";
import type { Log } from "../../infra/log.ts";

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface Following {
  readonly files: CertificateFiles;
  /** Milliseconds between two looks. */
  readonly everyMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Tells of the pair, and of each that follows it, until the signal fires. What cannot be used is logged once and left alone. */
export async function followCertificate({ files, everyMs, clock, log, signal }: Following, onPair: (pair: KeyPair) => void): Promise<void> {
  let used = "";
  let complaint = "";
  while (!signal.aborted) {
    try {
      const pair = await readPair(files);
      const text = pair.cert + pair.key;
      if (text !== used) {
        onPair(pair);
        log.info("certificate loaded", { ...files, validUntil: new X509Certificate(pair.cert).validTo });
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

/** Rejects if a file is missing or no PEM, or if they do not fit: one of them may be older than the other. */
async function readPair({ certFile, keyFile }: CertificateFiles): Promise<KeyPair> {
  const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) throw new Error("the key is not the certificate's");
  return { cert, key };
}
