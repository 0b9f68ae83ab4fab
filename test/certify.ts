/** Certificates for the servers of tests. */
import { type Certificates, generateCertificates } from "../infra/certs/act/generate.ts";

/** A certificate for these names, and this machine, that is valid for a year by the real time, with its key and its CA. */
export const certify = (...dnsNames: readonly string[]): Promise<Certificates> =>
  generateCertificates({
    dnsNames,
    ipAddresses: ["127.0.0.1"],
    organization: "test",
    validityDays: 365,
    now: new Date(),
  });
