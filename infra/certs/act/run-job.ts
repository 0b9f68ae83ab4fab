/** Runs the certificate job from the environment. */
import { systemClock } from "../../clock.ts";
import { connectCluster } from "../../kubernetes/connect-cluster.ts";
import { type Environment, readConfiguration } from "../../config/config.ts";
import { loadConnection } from "../../kubernetes/connection.ts";
import { createLog, stdout } from "../../log.ts";
import type { Machine } from "../../machine.ts";
import { createServerClock } from "../../server-clock.ts";
import { generateCertificates } from "./generate.ts";
import { runCertificateJob } from "./job.ts";
import { publishCa } from "./publish-ca.ts";

const DAY_MS = 86_400_000;

interface JobRun {
  readonly stop: AbortSignal;
  /** Gives the bundle to objects other than webhook configurations, too. */
  readonly publishes?: boolean;
  readonly machine?: Machine;
}

/** Resolves with the exit code. */
export async function runJob(
  env: Environment,
  { stop, publishes = false, machine = systemClock }: JobRun,
): Promise<number> {
  const configuration = readConfiguration(env);
  const { namespace, certificates } = configuration;
  const { connect = loadConnection, write = stdout.write, generate = generateCertificates } = machine;
  const log = createLog({ ...configuration.log, write, now: () => new Date(machine.now()) });
  if (!certificates.selfSigned) {
    log.info(
      "nothing to do: SERVER_TLS_SELF_SIGNED_CERT_ENABLED is false; give the API server the CA of your certificate yourself",
    );
    return 0;
  }
  const connection = await connect(configuration.connection);
  const { clientTimeoutMs: timeoutMs, rate } = configuration;
  // The API server judges certificates: they are issued and renewed by its clock.
  const clock = createServerClock(machine);
  const cluster = connectCluster(connection, { timeoutMs, rate, onDate: clock.follow, clock: machine });
  const { dnsNames, organization, validityMs } = certificates;
  const issue = () =>
    generate({ dnsNames, organization, validityDays: validityMs / DAY_MS, now: new Date(clock.now()) });
  return await runCertificateJob({
    ...certificates,
    cluster,
    clock,
    log,
    namespace,
    issue,
    stop,
    ...(publishes && { publish: (caPem) => publishCa(caPem, { cluster, log, namespace }) }),
  });
}
