#!/usr/bin/env node
/**
 * Entry of the CronJob: configuration -> lease -> ticks until the time budget is spent -> exit code (0 success, 1 some
 * group failed, 2 bad configuration).
 */
import { systemClock } from "../../infra/clock.ts";
import { runEntry } from "../../infra/process.ts";
import { compose } from "./compose.ts";
import { run } from "./run.ts";

await runEntry("the reconciler failed", async (stop) => {
  const { push, run: input } = await compose(process.env, systemClock);
  const { exitCode, last } = await run({ ...input, stop });
  input.log.info("the run ended", { exitCode });
  // A push after a run without a tick would overwrite the metrics of the run before it.
  if (last) await push();
  await input.tracer?.flush();
  return exitCode;
});
