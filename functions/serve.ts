#!/usr/bin/env node
/** Entry of the webhook server: configuration -> certificate -> serve until SIGTERM -> drain -> exit code (0 well, 1 it could not serve, 2 bad configuration). */
import { systemClock } from "../infra/clock.ts";
import { hasCode } from "../infra/errors.ts";
import { createLog, stdout } from "../infra/log.ts";
import { compose } from "./compose.ts";
import { runServer } from "./server.ts";

const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort(signal));

try {
  await runServer(await compose(process.env, systemClock), stop.signal);
} catch (error) {
  const log = createLog({ level: "error", write: stdout.write, now: () => new Date() });
  const badConfiguration = hasCode(error, "BadConfiguration");
  log.error(badConfiguration ? error.message : "the webhooks could not be served", badConfiguration ? {} : { error });
  process.exitCode = badConfiguration ? 2 : 1;
}
await stdout.flush();
// Idle connections to the API server would hold the process for their whole idle time.
process.exit();
