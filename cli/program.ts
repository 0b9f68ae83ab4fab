/** The command line: flags and commands as tables, read by commander. */
import { Command as Parser, Option } from "commander";
import own from "../package.json" with { type: "json" };
import { collectFlag, GLOBAL_FLAGS } from "./flags.ts";
import type { Command, Flag } from "./session.ts";
import { bypass, pause, restart, resume } from "./commands/actions.ts";
import { promote, retry } from "./commands/annotations.ts";
import { doctor } from "./commands/doctor.ts";
import { drainOrder } from "./commands/drain-order.ts";
import { explain } from "./commands/explain.ts";
import { history } from "./commands/history.ts";
import { plan } from "./commands/plan.ts";
import { status } from "./commands/status.ts";
import { undo } from "./commands/undo.ts";
import { helpOfCommand, helpOfProgram } from "./output/help.ts";

export const COMMANDS: readonly Command[] = [
  status,
  explain,
  plan,
  history,
  drainOrder,
  pause,
  resume,
  restart,
  undo,
  retry,
  promote,
  bypass,
  doctor,
];

type OnCommand = (command: Command, args: readonly string[], flags: Readonly<Record<string, unknown>>) => Promise<void>;

/** The parser; `onCommand` receives the command that was chosen, with the flags of all levels. */
export function createProgram(commands: readonly Command[], onCommand: OnCommand): Parser {
  const program = new Parser("zonewise")
    .version(own.version)
    .exitOverride()
    .configureHelp({ formatHelp: (of) => helpOf(commands, of.name()) });
  for (const flag of GLOBAL_FLAGS) program.addOption(toOption(flag));
  for (const command of commands) {
    const sub = program.command(`${command.name} ${command.arguments}`.trim());
    for (const flag of command.flags) sub.addOption(toOption(flag));
    sub.action(async () => await onCommand(command, sub.args, sub.optsWithGlobals()));
  }
  return program;
}

function helpOf(commands: readonly Command[], name: string): string {
  const command = commands.find((one) => one.name === name);
  return command ? helpOfCommand(command) : helpOfProgram(commands);
}

function toOption({ flag, summary, choices, repeats }: Flag): Option {
  const option = new Option(flag, summary);
  if (repeats) option.argParser(collectFlag);
  return choices ? option.choices(choices) : option;
}

/** `--watch=false` as `--no-watch`: kubectl's way to switch a flag off. */
export function normalize(argv: readonly string[]): string[] {
  return argv.map((arg) =>
    arg.replace(
      /^--([a-z-]+)=(true|false)$/,
      (_, name: string, value: string) => `--${value === "true" ? "" : "no-"}${name}`,
    ),
  );
}
