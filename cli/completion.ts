/**
 * Completions: one script per shell, which asks this program for the words. Also `kubectl_complete-zonewise` for
 * kubectl.
 */
import { Option, Command as Parser } from "commander";
import { disruptionBudgets, phasedRollouts, rolloutGates } from "../infra/kubernetes/custom-resources.ts";
import { namespaces, nodes, pods, type Resource } from "../infra/kubernetes/resources.ts";
import { gatherZones, readAll } from "../reconciler/snapshot/gather.ts";
import { GLOBAL_FLAGS, collectFlag } from "./flags.ts";
import { findKind, KINDS } from "./kinds.ts";
import type { Command, Completes, Session, Flag } from "./session.ts";
import type { ConnectionFlags } from "./connect.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;

const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], string>> = {
  bash: `_zonewise() {
  mapfile -t COMPREPLY < <(zonewise __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _zonewise zonewise
`,
  zsh: `#compdef zonewise
_zonewise() {
  local -a words_found
  words_found=(\${(f)"$(zonewise __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -a words_found
}
compdef _zonewise zonewise
`,
  fish: `complete -c zonewise -f -a '(zonewise __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
};

/** Undefined for an unknown shell. */
export const scriptOf = (shell: string): string | undefined => SCRIPTS[shell as (typeof SHELLS)[number]];

/** The names that a cluster has. */
type FindNames = (what: Completes) => Promise<readonly string[]>;

/** The words that may replace the last one. Never rejects: without an answer of the cluster there are no names. */
export async function complete(
  typed: TypedWords,
  commands: readonly Command[],
  findNames: FindNames,
): Promise<string[]> {
  const { last } = typed;
  const candidates = await findCandidates(typed, commands, async (what) => await findNames(what).catch(() => []));
  return candidates.filter((word) => word.startsWith(last) && !typed.operands.includes(word)).toSorted();
}

type Find = (
  typed: TypedWords,
  commands: readonly Command[],
  findNames: FindNames,
) => Promise<readonly string[]> | readonly string[];

const findCandidates: Find = (typed, commands, findNames) => {
  const { operands, last, valueOf } = typed;
  const command = commands.find(({ name }) => name === operands[0]);
  if (valueOf) return valueOf.choices ?? findOptional(valueOf.completes, findNames);
  if (last.startsWith("-"))
    return [...GLOBAL_FLAGS, ...(command?.flags ?? [])].flatMap(({ flag }) => new Option(flag).long ?? []);
  if (operands.length === 0) return [...commands.map(({ name }) => name), "completion", "help"];
  if (!command || isFull(command, operands.length - 1)) return [];
  return command.completes === "objects" ? findObjects(last, findNames) : findOptional(command.completes, findNames);
};

const findOptional = async (what: Completes | undefined, findNames: FindNames): Promise<readonly string[]> =>
  what ? await findNames(what) : [];

/** `pod/NAME`, or a name alone. */
async function findObjects(last: string, findNames: FindNames): Promise<readonly string[]> {
  const [prefix = "", name] = last.split("/", 2);
  if (name === undefined) return await findNames("objects");
  const kind = findKind(prefix);
  return kind ? (await findNames(KINDS[kind].completes)).map((one) => `${prefix}/${one}`) : [];
}

/** `<nodes...>` takes any number of arguments, all others take one. */
const isFull = (command: Command, given: number): boolean =>
  given >= (command.arguments.includes("...") ? Infinity : 1);

interface Named {
  readonly metadata?: { readonly name?: string };
}

const LISTED: Partial<Readonly<Record<Completes, { readonly resource: Resource<Named>; readonly isGlobal?: true }>>> = {
  pods: { resource: pods },
  gates: { resource: rolloutGates },
  budgets: { resource: disruptionBudgets },
  phasedrollouts: { resource: phasedRollouts },
  nodes: { resource: nodes, isGlobal: true },
  namespaces: { resource: namespaces, isGlobal: true },
};

/** The names of the objects that a command takes. */
export async function findNames(session: Session, what: Completes): Promise<readonly string[]> {
  const listed = LISTED[what];
  if (listed) {
    const query = listed.isGlobal || session.namespace === "" ? {} : { namespace: session.namespace };
    const read = ({ metadata }: Named): string => metadata?.name ?? "";
    return (await readAll({ resource: listed.resource, query, read }, session)).items;
  }
  const { groups } = await gatherZones([session.namespace], session);
  const zones = [...groups.values()].flat();
  const own = [...new Set(zones.map(({ group }) => group))];
  const names = zones.map(({ name }) => name);
  return what === "groups" ? own : what === "zones" ? names : [...own, ...names];
}

/** The typed part of a command line. It may be incomplete or wrong. */
interface TypedWords {
  /** The words that are no flags, before the last word. */
  readonly operands: readonly string[];
  readonly flags: ConnectionFlags;
  /** The text to complete. */
  readonly last: string;
  /** The flag whose value is to be completed. */
  readonly valueOf: Flag | undefined;
}

/** `flags` belong to every command. */
export function readTyped(words: readonly string[], flags: readonly Flag[]): TypedWords {
  const find = (name: string): Flag | undefined => flags.find(({ flag }) => takesValue(flag, name));
  // Bash makes `=` a word of its own.
  const whole = words.slice(0, -1).filter((word) => word !== "=");
  const last = words.at(-1) ?? "";
  const open = find(whole.at(-1) ?? "");
  const parser = createParser(flags);
  const { operands, unknown } = parser.parseOptions(open ? whole.slice(0, -1) : whole);
  const mistyped = unknown.filter((word) => !word.startsWith("-"));
  return { operands: [...operands, ...mistyped], flags: parser.opts(), valueOf: open, last: last === "=" ? "" : last };
}

function takesValue(flag: string, name: string): boolean {
  const { required, short, long } = new Option(flag);
  return required && (name === short || name === long);
}

/** Commands may share a flag. A wrong or missing value is no error here: only running the command reports it. */
function createParser(flags: readonly Flag[]): Parser {
  const parser = new Parser().helpOption(false);
  const own = [...new Map(flags.map((one) => [one.flag, one])).values()];
  for (const { flag, repeats } of own) {
    const option = new Option(flag.replace(/<(.*)>/, "[$1]"));
    parser.addOption(repeats ? option.argParser(collectFlag) : option);
  }
  return parser;
}
