#!/usr/bin/env node
/** Entry of the certificate job: configuration -> Secret and CA bundles -> exit code (0 done, 1 incomplete, 2 bad configuration). */
import { systemClock } from "../clock.ts";
import { connectCluster } from "../kubernetes/connect-cluster.ts";
import { readConfiguration } from "../config/config.ts";
import { loadConnection } from "../kubernetes/connection.ts";
import { createLog, stdout } from "../log.ts";
import { runEntry } from "../process.ts";
import { createServerClock } from "../server-clock.ts";
import { warnOfMisspelt } from "../config/unknown-variables.ts";
import { generateCertificates } from "./generate.ts";
import { runCertificateJob } from "./job.ts";

const DAY_MS = 86_400_000;

await runEntry("the certificate job failed", async (stop) => {
  const configuration = readConfiguration(process.env);
  const { namespace, certificates } = configuration;
  const log = createLog({ ...configuration.log, write: stdout.write, now: () => new Date(systemClock.now()) });
  warnOfMisspelt(process.env, log);
  if (!certificates.selfSigned) {
    log.info(
      "nothing to do: SERVER_TLS_SELF_SIGNED_CERT_ENABLED is false, and whoever brings the certificate also tells the API server of its CA",
    );
    return 0;
  }
  const connection = await loadConnection(configuration.connection);
  const { clientTimeoutMs: timeoutMs, rate } = configuration;
  // The API server judges certificates: they are issued and renewed by its clock.
  const clock = createServerClock(systemClock);
  const cluster = connectCluster(connection, { timeoutMs, rate, onDate: clock.follow, clock: systemClock });
  const { dnsNames, organization, validityMs } = certificates;
  const issue = () => generateCertificates({ dnsNames, organization, validityDays: validityMs / DAY_MS, now: new Date(clock.now()) });
  return await runCertificateJob({ ...certificates, cluster, clock, log, namespace, issue, stop });
});
