/** The part of a policy's status that people and metrics read (NR17, NR19, NR32). */
import { hasUpdate } from "./skip.ts";
import type { PolicyStatus } from "./policy-status.ts";
import type { PolicySnapshot, Skip } from "./snapshot.ts";

/** Nodes that are listed with the reason why they wait; all are counted. */
const MAX_LISTED = 50;

export interface Summary {
  readonly snapshot: Pick<PolicySnapshot, "nodes" | "policy">;
  readonly skips: readonly Skip[];
  readonly status: PolicyStatus;
}

/** The status with its counts, and with who waits for what. */
export function summarize({ snapshot: { nodes, policy }, skips, status }: Summary): PolicyStatus {
  const skipped: Record<string, number> = {};
  for (const { reason } of skips) skipped[reason] = (skipped[reason] ?? 0) + 1;
  const active = new Set(status.active.map(({ node }) => node));
  const upToDate = nodes.filter((node) => !active.has(node.name) && node.shadow?.status && !hasUpdate(node)).length;
  return {
    ...status,
    observedGeneration: policy.generation,
    nodes: { total: nodes.length, upToDate, waiting: skips.length, active: active.size, failed: status.failed.length },
    skipped: Object.fromEntries(Object.entries(skipped).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    waiting: skips.slice(0, MAX_LISTED).map(({ node, reason, message }) => ({ node, reason, message })),
  };
}
