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
const KEY = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

/** A fresh CA and a server certificate that it signed, ECDSA P-256. Only the leaf's key is handed out: the CA signs once. */
export async function generateCertificates(options: CertificateOptions): Promise<Certificates> {
  const { dnsNames, ipAddresses = [], organization, validityDays, now } = options;
  const validity = { notBeforeDate: now, notAfterDate: new Date(now.getTime() + validityDays * DAY_MS) };
  const ca = await generate(
    [
      { name: "commonName", value: `${organization} CA` },
      { name: "organizationName", value: organization },
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
      { name: "commonName", value: dnsNames[0] ?? ipAddresses[0] ?? organization },
      { name: "organizationName", value: organization },
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
