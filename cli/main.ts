#!/usr/bin/env node
/** Entry of the CLI. */
import { systemClock } from "../infra/clock.ts";
import { END_SIGNALS } from "../infra/process.ts";
import { runCli } from "./run.ts";

const stop = new AbortController();
for (const signal of END_SIGNALS)
  process.on(signal, () => (stop.signal.aborted ? process.exit(130) : stop.abort(signal)));
// A reader that has gone, such as `head`, is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 4));

process.exitCode = await runCli(process.argv.slice(2), {
  write: (text) => void process.stdout.write(text),
  warn: (text) => void process.stderr.write(text),
  isTty: process.stdout.isTTY,
  size: () => (process.stdout.isTTY ? process.stdout : undefined),
  env: process.env,
  clock: systemClock,
  signal: stop.signal,
});
