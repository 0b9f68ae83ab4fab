#!/usr/bin/env node
/** Entry of `npm run drill`. */
import { parseArgs } from "node:util";
import { openCluster } from "../../cli/connect.ts";
import { explainError } from "../../cli/decide/explain-error.ts";
import { CliError, EXIT, type ExitCode, usageError } from "../../cli/exit.ts";
import { colourful, plain } from "../../cli/output/text.ts";
import { systemClock } from "../../infra/clock.ts";
import { parseGoDuration } from "../../infra/duration.ts";
import { hasCode } from "../../infra/errors.ts";
import { END_SIGNALS } from "../../infra/process.ts";
import { type Choices, clean, play } from "./drill.ts";

const MAX_MS = 30 * 60_000;

const HELP = `npm run drill -- [options]: makes three zones in a namespace, rolls, evicts, drains and scales them, and judges what it
sees of the installation that serves the namespace. It removes what it makes.

  -n, --namespace NAME         the namespace; that of the context by default
  --kubeconfig FILE, --context NAME
  --image IMAGE                of the pods, which only wait; that of Zonewise's reconciler by default
  --node-selector LABEL=VALUE  nodes for the pods; may be given several times
  --timeout DURATION           no longer than this, such as 10m; 30m by default
  --json                       the report as JSON
  --clean                      no drill: removes what killed ones have left in the namespace

Exit codes: 0 all promises held, with --clean nothing is left; 1 a promise did not hold; 2 wrong usage; 3 nothing was broken,
and not all was seen, with --clean something is left; 4 it could not begin, or what it made could not be removed.
`;

const OPTIONS = {
  namespace: { type: "string", short: "n" },
  kubeconfig: { type: "string" },
  context: { type: "string" },
  image: { type: "string" },
  "node-selector": { type: "string", multiple: true, default: [] as string[] },
  timeout: { type: "string", default: "30m" },
  json: { type: "boolean", default: false },
  clean: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

function readFlags(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS }).values;
  } catch (error) {
    throw usageError(error instanceof Error ? error.message : String(error), "npm run drill -- --help");
  }
}

/** Throws a `CliError`. */
function readChoices({ image, json, timeout, ...flags }: ReturnType<typeof readFlags>): Choices {
  const timeoutMs = parseGoDuration(timeout) ?? 0;
  if (timeoutMs <= 0 || timeoutMs > MAX_MS)
    throw usageError(`--timeout ${timeout} is not a duration up to 30m, e.g. 10m`);
  const nodeSelector = flags["node-selector"].map((pair) => {
    const [label = "", value] = pair.split("=", 2);
    if (label === "" || value === undefined) throw usageError(`--node-selector ${pair} is not label=value`);
    return [label, value] as const;
  });
  return { image, json, timeoutMs, nodeSelector: Object.fromEntries(nodeSelector) };
}

const stop = new AbortController();
for (const signal of END_SIGNALS)
  process.on(signal, () => (stop.signal.aborted ? process.exit(EXIT.interrupted) : stop.abort(signal)));
// The terminal was closed. The shell and the kernel may both send this signal: the second one does not force the exit.
process.on("SIGHUP", () => stop.abort("SIGHUP"));
// A reader that has gone is no error, and changes no answer: what was made is removed before the report.
process.stdout.on("error", ({ code }: NodeJS.ErrnoException) =>
  process.exit(code === "EPIPE" ? (process.exitCode ?? EXIT.ok) : EXIT.unknown),
);
process.stderr.on("error", () => {});

async function run(): Promise<ExitCode> {
  const flags = readFlags(process.argv.slice(2));
  if (flags.help) {
    process.stdout.write(HELP);
    return EXIT.ok;
  }
  const choices = readChoices(flags);
  const { namespace, kubeconfig, context } = flags;
  const where = { ...(namespace && { namespace }), ...(kubeconfig && { kubeconfig }), ...(context && { context }) };
  const machine = { env: process.env, clock: systemClock };
  const opened = await openCluster(where, { ...machine, signal: stop.signal });
  // A Ctrl-C does not end the calls that remove what was made.
  const cleaning = await openCluster(where, { ...machine, signal: new AbortController().signal });
  const io = {
    write: (text: string) => void process.stdout.write(text),
    warn: (text: string) => void process.stderr.write(text),
    style: process.stdout.isTTY && !process.env["NO_COLOR"] ? colourful : plain,
    width: () => (process.stdout.isTTY ? process.stdout.columns || undefined : undefined),
  };
  const around = { ...opened, cleanup: cleaning.cluster, io, signal: stop.signal };
  return await (flags.clean ? clean(around) : play(around, choices)).finally(() => {
    opened.close();
    cleaning.close();
  });
}

function fail(error: unknown): ExitCode {
  const { message, hint } = error instanceof CliError ? error : explainError(error);
  process.stderr.write(`error: ${message}\n${hint === undefined ? "" : `       ${hint}\n`}`);
  if (error instanceof CliError) return error.exitCode;
  return hasCode(error, "BadConfiguration") ? EXIT.usage : EXIT.unknown;
}

const code = await run().catch(fail);
process.exitCode = stop.signal.aborted ? EXIT.interrupted : code;
