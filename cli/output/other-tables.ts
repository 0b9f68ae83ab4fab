/** The tables of `zonewise status` for PhasedRollouts and node updates. */
import { isInvalid, type InvalidPolicy, type Policy } from "../../reconciler/nodes/policy.ts";
import { firstReleased } from "../../reconciler/phased/target.ts";
import { explainPhased, nextCheckOf, type Phased } from "../decide/explain-phased.ts";
import { judgePhased } from "../decide/overview.ts";
import { formatAge, untilOf } from "./age.ts";
import { TONES } from "./status-tables.ts";
import type { Style } from "./style.ts";
import { formatTable, type Cell } from "./table.ts";

export function renderPhased(phased: readonly Phased[], style: Style, now: number): string {
  const isMixed = new Set(phased.map(({ rollout }) => rollout.namespace)).size > 1;
  const headings = [
    ...(isMixed ? ["NAMESPACE"] : []),
    "PHASED-ROLLOUT",
    "TARGET",
    "PHASE",
    "PARTITION",
    "UPDATED",
    "WAITING-FOR",
    "BLOCKED-BY",
    "SINCE",
    "NEXT-CHECK",
  ];
  return formatTable(
    headings,
    phased.map((one) => [...(isMixed ? [one.rollout.namespace] : []), ...describeRow(one, now)]),
    style,
  );
}

function describeRow(phased: Phased, now: number): Cell[] {
  const { rollout, target } = phased;
  const progress = judgePhased(phased);
  const { allowed, reason, since, until } = explainPhased(phased);
  const waits = allowed ? "" : reason;
  const counts = target
    ? [`${firstReleased(target)}/${target.replicas}`, `${target.status.updated}/${target.replicas}`]
    : ["-", "-"];
  const phase = { text: reason === "Unseen" ? "Unseen" : rollout.status.phase, tone: TONES[progress] };
  const blocked = { text: progress === "stalled" ? waits : "", tone: "bad" } as const;
  return [
    rollout.name,
    rollout.targetRef,
    phase,
    ...counts,
    progress === "going" ? waits : "",
    blocked,
    formatAge(since, now),
    untilOf(until ?? nextCheckOf(phased), now),
  ];
}

/** A line for a log, equal as long as nothing has changed. */
export function renderPhasedLine(phased: Phased): string {
  const { message } = explainPhased(phased);
  return `phasedrollout/${phased.rollout.name} ${phased.rollout.status.phase || "Unseen"}: ${message}\n`;
}

export function renderPolicies(policies: readonly (Policy | InvalidPolicy)[], style: Style, now: number): string {
  const headings = ["NODE-UPDATE-POLICY", "NODES", "UP-TO-DATE", "ACTIVE", "WAITING", "FAILED", "FROZEN", "MESSAGE"];
  return formatTable(
    headings,
    policies.map((policy) => describePolicy(policy, now)),
    style,
  );
}

function describePolicy(policy: Policy | InvalidPolicy, now: number): Cell[] {
  if (isInvalid(policy)) return [policy.name, "-", "-", "-", "-", "-", "", { text: policy.unreadable, tone: "bad" }];
  const { nodes, frozen, message, active } = policy.status;
  const count = [nodes.total, nodes.upToDate, nodes.active, nodes.waiting, nodes.failed].map(String);
  const doing = active.map(({ node, phase }) => `${node} ${phase}`).join(", ");
  return [
    policy.name,
    ...count,
    { text: frozen ? formatAge(frozen.at, now) : "", tone: "bad" },
    frozen?.message ?? (message || doing),
  ];
}
