#!/usr/bin/env node
import { createInterface } from "node:readline/promises";
import { systemClock } from "../infra/clock.ts";
import { END_SIGNALS } from "../infra/process.ts";
import { runCli } from "./run.ts";

const stop = new AbortController();
for (const signal of END_SIGNALS)
  process.on(signal, () => (stop.signal.aborted ? process.exit(130) : stop.abort(signal)));
// The terminal was closed. The shell and the kernel may both send this signal: unlike a second Ctrl-C, the second one
// does not force the exit.
process.on("SIGHUP", () => stop.abort("SIGHUP"));
// A reader that has gone, such as `head`, is no error, and changes no answer. A command that makes objects prints its
// result after it has removed them.
process.stdout.on("error", ({ code }: NodeJS.ErrnoException) =>
  process.exit(code === "EPIPE" ? (process.exitCode ?? 0) : 4),
);
// A closed standard error must not end the process.
process.stderr.on("error", () => {});

/** Asks on standard error, as the result may be redirected. The end of the input counts as no. */
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
