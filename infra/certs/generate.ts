import { generate } from "selfsigned";

export interface CertificateOptions {
  /** Subject alternative names; the first is the common name. */
  readonly dnsNames: readonly string[];
  readonly ipAddresses?: readonly string[];
  readonly organization: string;
  /** Days from `now` until both certificates expire. */
  readonly validityDays: number;
  readonly now: Date;
}

export interface Certificates {
  readonly caPem: string;
  readonly certPem: string;
  readonly keyPem: string;
}

const DAY_MS = 86_400_000;
/** Clocks differ: an API server whose clock is behind ours must not find the certificate too new. */
const BACKDATE_MS = 300_000;
/** X.520's bound on common names. */
const COMMON_NAME_LENGTH = 64;
const KEY = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

/** A fresh CA and a server certificate that it signed, ECDSA P-256. Only the leaf's key is handed out: the CA signs once. */
export async function generateCertificates(options: CertificateOptions): Promise<Certificates> {
  const { dnsNames, ipAddresses = [], organization, validityDays, now } = options;
  const validity = { notBeforeDate: new Date(now.getTime() - BACKDATE_MS), notAfterDate: new Date(now.getTime() + validityDays * DAY_MS) };
  const ca = await generate(
    [
      // OpenSSL looks for an issuer by its subject: two CAs in one bundle must not share theirs.
      { name: "commonName", value: `CA ${now.toISOString()}` },
      { name: "organizationName", value: escapeName(organization) },
    ],
    {
      ...KEY,
      ...validity,
      extensions: [
        { name: "basicConstraints", cA: true, critical: true },
        { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
      ],
    },
  );
  const leaf = await generate(
    [
      { name: "commonName", value: escapeName((dnsNames[0] ?? ipAddresses[0] ?? organization).slice(0, COMMON_NAME_LENGTH)) },
      { name: "organizationName", value: escapeName(organization) },
    ],
    {
      ...KEY,
      ...validity,
      ca: { key: ca.private, cert: ca.cert },
      extensions: [
        { name: "basicConstraints", cA: false, critical: true },
        { name: "keyUsage", digitalSignature: true, critical: true },
        { name: "extKeyUsage", serverAuth: true },
        {
          name: "subjectAltName",
          altNames: [...dnsNames.map((value) => ({ type: 2 as const, value })), ...ipAddresses.map((ip) => ({ type: 7 as const, ip }))],
        },
      ],
    },
  );
  return { caPem: ca.cert, certPem: leaf.cert, keyPem: leaf.private };
}

/** A value inside a distinguished name's text (RFC 4514, 2.4). */
function escapeName(value: string): string {
  return value.replaceAll(/[\\,+"<>;=#]/g, (character) => `\\${character}`);
}
