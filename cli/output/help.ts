/** The text of `--help`: what to type first, then the flags. Pure. */
import { EXIT } from "../exit.ts";
import { GLOBAL_FLAGS } from "../flags.ts";
import type { Command, Flag } from "../session.ts";

/** The codes that mean the same everywhere, where a command does not say more of them. */
const COMMON_EXITS = {
  [EXIT.usage]: "wrong usage",
  [EXIT.unknown]: "the cluster could not be read or written",
  [EXIT.interrupted]: "Ctrl-C",
};

const GROUPS: readonly Command["group"][] = ["Look", "Steer", "Check"];

type Row = readonly [name: string, meaning: string];

function section(heading: string, rows: readonly Row[], before = ""): string {
  if (rows.length === 0) return "";
  const width = Math.max(...rows.map(([name]) => name.length));
  return `\n${heading}:\n${rows.map(([name, meaning]) => `  ${name.padEnd(width)}  ${before}${meaning}\n`).join("")}`;
}

const flagRows = (flags: readonly Flag[]): Row[] =>
  flags.map(({ flag, summary }) => [flag.startsWith("--") ? `    ${flag}` : flag, summary]);

export const helpOfProgram = (commands: readonly Command[]): string =>
  [
    "Rollouts of zone-replicated StatefulSets: look, steer, check. Also as: kubectl zonewise\n",
    "\nUsage: zonewise COMMAND [flags]\n",
    ...GROUPS.map((group) =>
      section(
        group,
        commands.flatMap((one) =>
          one.group === group ? [[`${one.name} ${one.arguments}`.trim(), one.summary] as const] : [],
        ),
      ),
    ),
    section("Flags of every command", flagRows(GLOBAL_FLAGS)),
    "\nExamples and exit codes: zonewise COMMAND --help.\n",
  ].join("");

export const helpOfCommand = ({ name, arguments: args, summary, examples, flags, exits }: Command): string =>
  [
    `${summary}\n`,
    section(
      "Examples",
      examples.map(([words, meaning]) => [`zonewise ${words}`, meaning]),
      "# ",
    ),
    `\nUsage: zonewise ${`${name} ${args}`.trim()} [flags]\n`,
    section("Flags", flagRows(flags)),
    section("Exit codes", Object.entries({ ...COMMON_EXITS, ...exits })),
    "\nFlags of every command: zonewise --help\n",
  ].join("");
