/** The command line: flags and commands as tables, read by commander. */
import { Command as Parser, Option } from "commander";
import type { Command, Flag } from "./session.ts";
import { pause, restart, resume, undo } from "./commands/actions.ts";
import { explain } from "./commands/explain.ts";
import { plan } from "./commands/plan.ts";
import { status } from "./commands/status.ts";

/** Flags of every command. */
export const GLOBAL_FLAGS: readonly Flag[] = [
  { flag: "-n, --namespace <name>", summary: "the namespace; that of the context by default" },
  { flag: "-A, --all-namespaces", summary: "all namespaces" },
  { flag: "--context <name>", summary: "a context of the kubeconfig" },
  { flag: "--kubeconfig <file>", summary: "the kubeconfig; by default KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount" },
  { flag: "--as <user>", summary: "impersonate this user" },
  { flag: "--as-group <group>", summary: "and this group; may be given several times", repeats: true },
  { flag: "--request-timeout <duration>", summary: "how long a call may take, 10s by default" },
  { flag: "-o, --output <format>", summary: "table, json or yaml", choices: ["table", "json", "yaml"] },
  { flag: "--no-color", summary: "no colours, as with NO_COLOR" },
];

export const COMMANDS: readonly Command[] = [status, explain, plan, pause, resume, restart, undo];

export type OnCommand = (command: Command, args: readonly string[], flags: Readonly<Record<string, unknown>>) => Promise<void>;

/** The parser; `onCommand` receives the command that was chosen, with the flags of all levels. */
export function createProgram(commands: readonly Command[], onCommand: OnCommand): Parser {
  const program = new Parser("zonewise")
    .description("Watches, explains and steers rollouts of zone-replicated StatefulSets. Also as: kubectl zonewise")
    .exitOverride()
    .configureHelp({ showGlobalOptions: true });
  for (const flag of GLOBAL_FLAGS) program.addOption(toOption(flag));
  for (const command of commands) {
    const sub = program.command(`${command.name} ${command.arguments}`.trim()).description(describe(command)).summary(command.summary);
    for (const flag of command.flags) sub.addOption(toOption(flag));
    sub.action(async () => await onCommand(command, sub.args, sub.optsWithGlobals()));
  }
  return program;
}

function toOption({ flag, summary, choices, repeats }: Flag): Option {
  const option = new Option(flag, summary);
  if (repeats) option.argParser((value, before: readonly string[] | undefined) => [...(before ?? []), value]);
  return choices ? option.choices(choices) : option;
}

function describe({ summary, exits }: Command): string {
  const codes = Object.entries(exits).map(([code, meaning]) => `  ${code}  ${meaning}`);
  return [summary, "", "Exit codes:", ...codes, "  2  wrong usage", "  4  the cluster could not be read or written"].join("\n");
}

/** `--watch=false` as `--no-watch`: kubectl's way to switch a flag off. */
export function normalize(argv: readonly string[]): string[] {
  return argv.map((arg) =>
    arg.replace(/^--([a-z-]+)=(true|false)$/, (_, name: string, value: string) => `--${value === "true" ? "" : "no-"}${name}`),
  );
}
