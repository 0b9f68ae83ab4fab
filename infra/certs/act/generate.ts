import { generate } from "selfsigned";

export interface CertificateOptions {
  /** Subject alternative names; the first is also the common name. */
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
/** Milliseconds before now at which the certificate becomes valid, for API servers whose clock is behind. */
const BACKDATE_MS = 300_000;
/** Upper bound of a common name (X.520). */
const COMMON_NAME_LENGTH = 64;
const KEY = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

/**
 * A new CA and a server certificate that it signed, ECDSA P-256. Only the leaf's key is returned: the CA signs once.
 */
export async function generateCertificates(options: CertificateOptions): Promise<Certificates> {
  const { dnsNames, ipAddresses = [], organization, validityDays, now } = options;
  const validity = {
    notBeforeDate: new Date(now.getTime() - BACKDATE_MS),
    notAfterDate: new Date(now.getTime() + validityDays * DAY_MS),
  };
  const ca = await generate(
    [
      // OpenSSL finds an issuer by its subject: the subjects of CAs in one bundle must differ.
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
      {
        name: "commonName",
        value: escapeName((dnsNames[0] ?? ipAddresses[0] ?? organization).slice(0, COMMON_NAME_LENGTH)),
      },
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
          altNames: [
            ...dnsNames.map((value) => ({ type: 2 as const, value })),
            ...ipAddresses.map((ip) => ({ type: 7 as const, ip })),
          ],
        },
      ],
    },
  );
  return { caPem: ca.cert, certPem: leaf.cert, keyPem: leaf.private };
}

/** Escapes a value of a distinguished name (RFC 4514, 2.4). */
function escapeName(value: string): string {
  return value.replaceAll(/[\\,+"<>;=#]/g, (character) => `\\${character}`);
}
