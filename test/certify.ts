/** Certificates for the servers of tests. */
import { type Certificates, generateCertificates } from "../infra/certs/act/generate.ts";

/** A certificate for these names that is valid for a day, with its key and its CA. */
export const certify = (...dnsNames: readonly string[]): Promise<Certificates> =>
  generateCertificates({ dnsNames, organization: "test", validityDays: 1, now: new Date() });
