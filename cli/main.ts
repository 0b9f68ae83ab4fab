#!/usr/bin/env node
/** Entry of the CLI. */
import { createInterface } from "node:readline/promises";
import { systemClock } from "../infra/clock.ts";
import { END_SIGNALS } from "../infra/process.ts";
import { runCli } from "./run.ts";

const stop = new AbortController();
for (const signal of END_SIGNALS)
  process.on(signal, () => (stop.signal.aborted ? process.exit(130) : stop.abort(signal)));
// The terminal was closed. The shell and the kernel may both say so: nobody insists, as by a second Ctrl-C.
process.on("SIGHUP", () => stop.abort("SIGHUP"));
// A reader that has gone, such as `head`, is no error, and changes no answer. A command that makes something prints its
// result once that is removed.
process.stdout.on("error", ({ code }: NodeJS.ErrnoException) =>
  process.exit(code === "EPIPE" ? (process.exitCode ?? 0) : 4),
);
// What is said beside the result ends nothing where nobody reads it.
process.stderr.on("error", () => {});

/** Asks on standard error: a result may be redirected. An end of the input is a no. */
async function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  terminal.on("SIGINT", () => stop.abort("SIGINT"));
  const ended = new Promise<string>((resolve) => terminal.once("close", () => resolve("")));
  const asked = terminal.question(`${question} [y/N] `, { signal: stop.signal }).catch(() => "");
  const answer = await Promise.race([asked, ended]);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

process.exitCode = await runCli(process.argv.slice(2), {
  write: (text) => void process.stdout.write(text),
  warn: (text) => void process.stderr.write(text),
  isTty: process.stdout.isTTY,
  size: () => (process.stdout.isTTY ? process.stdout : undefined),
  ...(process.stdin.isTTY && process.stderr.isTTY && { confirm }),
  env: process.env,
  clock: systemClock,
  signal: stop.signal,
});
