/** Functions on certificates of node:crypto. */
import { X509Certificate } from "node:crypto";

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The certificates of a PEM text, in order; throws if one is invalid or there is none. */
export function readCertificates(pem: string): X509Certificate[] {
  const blocks = pem.match(BLOCK);
  if (!blocks) throw new Error("no certificate in PEM format");
  return blocks.map((block) => new X509Certificate(block));
}

/** The CA among `cas` that has signed the certificate. */
export const findIssuer = (
  certificate: X509Certificate,
  cas: readonly X509Certificate[],
): X509Certificate | undefined =>
  cas.find((ca) => ca.ca && certificate.checkIssued(ca) && certificate.verify(ca.publicKey));

/** The elapsed share of the certificate's validity: 0 at its begin, 1 at its end. */
export function spentShare(certificate: X509Certificate, now: number): number {
  const from = certificate.validFromDate.getTime();
  return (now - from) / (certificate.validToDate.getTime() - from);
}

/**
 * The names among `dnsNames` that the certificate lacks. The common name does not count, as for the API server (Go
 * 1.15).
 */
export function missingNames(certificate: X509Certificate, dnsNames: readonly string[]): string[] {
  return dnsNames.filter((name) => certificate.checkHost(name, { subject: "never" }) === undefined);
}
