#!/usr/bin/env node
/** Entry of the CronJob: configuration -> lease -> ticks until the time budget is spent -> exit code (0 well, 1 some group failed, 2 bad configuration). */
import { systemClock } from "../infra/clock.ts";
import { hasCode } from "../infra/errors.ts";
import { createLog, stdout } from "../infra/log.ts";
import { compose } from "./compose.ts";
import { run } from "./run.ts";

const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort(signal));

async function main(): Promise<number> {
  const { push, run: input } = await compose(process.env, systemClock);
  const { exitCode, last } = await run({ ...input, stop: stop.signal });
  // A run that did nothing would wipe out what the last one pushed.
  if (last) await push();
  return exitCode;
}

try {
  process.exitCode = await main();
} catch (error) {
  const log = createLog({ level: "error", write: stdout.write, now: () => new Date() });
  const badConfiguration = hasCode(error, "BadConfiguration");
  log.error(badConfiguration ? error.message : "the reconciler failed", badConfiguration ? {} : { error });
  process.exitCode = badConfiguration ? 2 : 1;
}
await stdout.flush();
// Idle keep-alive connections would hold the process for their whole idle time.
process.exit();
