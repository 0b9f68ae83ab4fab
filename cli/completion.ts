/** Completions: a script a shell, which asks this program for the words. Also `kubectl_complete-zonewise` for kubectl. */
import { nodes, pods } from "../infra/kubernetes/resources.ts";
import { gatherZones, readAll } from "../reconciler/gather.ts";
import { GLOBAL_FLAGS } from "./flags.ts";
import type { Command, Completes, Session } from "./session.ts";

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
  words_found=("\${(@f)$(zonewise __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -a words_found
}
compdef _zonewise zonewise
`,
  fish: `complete -c zonewise -f -a '(zonewise __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
};

/** Undefined for a shell that it does not know. */
export const scriptOf = (shell: string): string | undefined => SCRIPTS[shell as (typeof SHELLS)[number]];

/** The names that a cluster has. */
export type FindNames = (what: Completes) => Promise<readonly string[]>;

/** The words that may stand for the last of `words`, which may be empty. Never rejects: without an answer of the cluster there are no names. */
export async function complete(words: readonly string[], commands: readonly Command[], findNames: FindNames): Promise<string[]> {
  const last = words.at(-1) ?? "";
  const command = commands.find(({ name }) => words.slice(0, -1).includes(name));
  const starts = (candidates: readonly string[]): string[] => candidates.filter((word) => word.startsWith(last)).toSorted();
  if (last.startsWith("-")) return starts([...GLOBAL_FLAGS, ...(command?.flags ?? [])].flatMap(({ flag }) => longOf(flag)));
  if (!command) return starts(commands.map(({ name }) => name));
  return command.completes ? starts(await findNames(command.completes).catch(() => [])) : [];
}

const longOf = (flag: string): string[] => flag.match(/--[a-z-]+/g) ?? [];

/** Names by what a command takes. */
export async function findNames(session: Session, what: Completes): Promise<readonly string[]> {
  const query = session.namespace === "" ? {} : { namespace: session.namespace };
  const list = async (resource: typeof pods | typeof nodes, scope: object): Promise<string[]> =>
    (await readAll({ resource, query: scope, read: ({ metadata }: { metadata?: { name?: string } }) => metadata?.name ?? "" }, session))
      .items;
  if (what === "pods") return await list(pods, query);
  if (what === "nodes") return await list(nodes, {});
  const { groups } = await gatherZones([session.namespace], session);
  const zones = [...groups.values()].flat();
  const names = [...new Set(zones.map(({ group }) => group))];
  return what === "groups" ? names : [...names, ...zones.map(({ name }) => name)];
}
