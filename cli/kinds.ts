/** Kinds of objects that users name: `pod/NAME`, `sts/NAME`. */
import { usageError } from "./exit.ts";
import type { Plural } from "./gather/suggest.ts";

/** Kinds by their own names, with those of several. */
export const KINDS = {
  group: { plural: "groups", aliases: ["groups", "rolloutgroup", "rolloutgroups", "rg"] },
  statefulset: { plural: "statefulsets", aliases: ["statefulsets", "sts"] },
  pod: { plural: "pods", aliases: ["pods", "po"] },
  node: { plural: "nodes", aliases: ["nodes", "no"] },
  phasedrollout: { plural: "phasedrollouts", aliases: ["phasedrollouts", "phased"] },
} as const satisfies Readonly<Record<string, { readonly plural: Plural; readonly aliases: readonly string[] }>>;

export type Kind = keyof typeof KINDS;

/**
 * The kind by its name, with or without its API group, as `kubectl get -o name` prints it. Undefined for an unknown
 * kind.
 */
function findKind(text: string): Kind | undefined {
  const [name = ""] = text.toLowerCase().split(".");
  const all = Object.entries(KINDS) as [Kind, (typeof KINDS)[Kind]][];
  return all.find(([kind, { aliases }]) => kind === name || (aliases as readonly string[]).includes(name))?.[0];
}

/** `pod/NAME`; or a name alone, of an object of any kind. Throws a usage error for anything else. */
export function readObject(object: string): { readonly kinds: readonly Kind[]; readonly name: string } {
  const [first = "", second, more] = object.split("/");
  const all = Object.keys(KINDS) as Kind[];
  const kind = second === undefined ? undefined : findKind(first);
  const name = second ?? first;
  if (second !== undefined && !kind)
    throw usageError(`unknown kind ${JSON.stringify(first)}`, `use one of ${all.join(", ")}`);
  if (name === "" || more !== undefined)
    throw usageError(`${JSON.stringify(object)} names no object`, "use pod/NAME, or a name alone");
  return { kinds: kind ? [kind] : all, name };
}
