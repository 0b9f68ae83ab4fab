/** Kinds of objects that users name: `pod/NAME`, `sts/NAME`. */
import type { Completes } from "./session.ts";

/** Kinds by their own names, with the names that complete each. */
export const KINDS = {
  group: { completes: "groups", aliases: ["groups", "rolloutgroup", "rolloutgroups", "rg"] },
  statefulset: { completes: "zones", aliases: ["statefulsets", "sts"] },
  pod: { completes: "pods", aliases: ["pods", "po"] },
  node: { completes: "nodes", aliases: ["nodes", "no"] },
  phasedrollout: { completes: "phasedrollouts", aliases: ["phasedrollouts", "phased"] },
  rolloutgate: { completes: "gates", aliases: ["rolloutgates", "gate", "gates"] },
  zoneawarepoddisruptionbudget: { completes: "budgets", aliases: ["zoneawarepoddisruptionbudgets", "zpdb"] },
} as const satisfies Readonly<Record<string, { readonly completes: Completes; readonly aliases: readonly string[] }>>;

export type Kind = keyof typeof KINDS;

/**
 * The kind by its name, with or without its API group, as `kubectl get -o name` prints it. Undefined for an unknown
 * kind.
 */
export function findKind(text: string): Kind | undefined {
  const [name = ""] = text.toLowerCase().split(".");
  const all = Object.entries(KINDS) as [Kind, (typeof KINDS)[Kind]][];
  return all.find(([kind, { aliases }]) => kind === name || (aliases as readonly string[]).includes(name))?.[0];
}
