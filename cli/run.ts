/** One run of the CLI: arguments -> command -> exit code. Every failure is one sentence for the user. */
import { CommanderError } from "commander";
import { hasCode } from "../infra/errors.ts";
import { openCluster, type CliMachine } from "./connect.ts";
import { explainError } from "./decide/explain-error.ts";
import { CliError, EXIT, type ExitCode } from "./exit.ts";
import { gatherTicking } from "./gather/ticking.ts";
import { colourful, plain, showControls } from "./output/text.ts";
import { COMMANDS, createProgram, normalize } from "./program.ts";
import type { Command, Io, Session } from "./session.ts";

interface Terminal extends Omit<Io, "style" | "width">, CliMachine {}

/** `argv` without the interpreter and the script. Never rejects. */
export async function runCli(argv: readonly string[], { write, warn, confirm, ...rest }: Terminal): Promise<ExitCode> {
  const terminal: Terminal = {
    ...rest,
    write: (text) => write(showControls(text)),
    warn: (text) => warn(showControls(text)),
    ...(confirm && { confirm: (question: string) => confirm(showControls(question)) }),
  };
  let code: ExitCode = EXIT.ok;
  const program = createProgram(COMMANDS, async (command, args, flags) => {
    code = await runCommand(command, { args, flags }, terminal);
  });
  program.configureOutput({ writeOut: terminal.write, writeErr: terminal.warn });
  for (const command of program.commands) command.copyInheritedSettings(program);
  try {
    await program.parseAsync(normalize(argv), { from: "user" });
  } catch (error) {
    // Commander has already written the error, or the requested help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    code = tell(error, terminal);
  }
  return terminal.signal.aborted ? EXIT.interrupted : code;
}

/** The values of `-o`. */
type Format = Session["output"] | "wide";

interface Parsed {
  readonly args: readonly string[];
  readonly flags: Readonly<Record<string, unknown>>;
}

async function runCommand(command: Command, { args, flags }: Parsed, terminal: Terminal): Promise<ExitCode> {
  const format = (flags["output"] as Format | undefined) ?? "table";
  const { close, ...opened } = await openCluster(flags, terminal);
  try {
    const output = format === "wide" ? "table" : format;
    // A terminal of unknown size reports 0.
    const width = (): number | undefined => (format === "wide" ? undefined : terminal.size?.()?.columns || undefined);
    const io = { ...terminal, style: isColoured(flags, terminal) ? colourful : plain, width };
    const noTicks = command.asksTicking ? [] : await gatherTicking(opened);
    return await command.run(
      { ...opened, noTicks, output, io, signal: terminal.signal },
      { args, flags: flags as Record<string, string | boolean> },
    );
  } finally {
    close();
  }
}

/** https://no-color.org */
function isColoured({ color }: Readonly<Record<string, unknown>>, { env, isTty }: Terminal): boolean {
  return isTty && color !== false && !env["NO_COLOR"] && env["TERM"] !== "dumb";
}

function tell(error: unknown, { warn }: Terminal): ExitCode {
  const { message, hint } = error instanceof CliError ? error : explainError(error);
  warn(`error: ${message}\n${hint === undefined ? "" : `       ${hint}\n`}`);
  if (error instanceof CliError) return error.exitCode;
  return hasCode(error, "BadConfiguration") ? EXIT.usage : EXIT.unknown;
}
