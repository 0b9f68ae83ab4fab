/** The tables of `zonewise status` for PhasedRollouts and node updates. */
import { isInvalid, type InvalidPolicy, type Policy } from "../../reconciler/nodes/policy.ts";
import { firstReleased } from "../../reconciler/phased/target.ts";
import { explainPhased, nextCheckOf, type Phased } from "../decide/explain-phased.ts";
import { standingOfPhased } from "../decide/overview.ts";
import { formatAge, untilOf } from "./age.ts";
import { TONES } from "./status-tables.ts";
import type { Display } from "./style.ts";
import { formatByNamespace, formatTable, type Cell, type Column } from "./table.ts";

const PHASED_COLUMNS: readonly Column[] = [
  { heading: "PHASED-ROLLOUT" },
  { heading: "TARGET", rank: 5 },
  { heading: "PHASE" },
  { heading: "PARTITION", rank: 4 },
  { heading: "UPDATED", rank: 2 },
  { heading: "REASON", rank: 1 },
  { heading: "SINCE", rank: 3 },
  { heading: "NEXT-CHECK", rank: 6 },
];

export const renderPhased = (phased: readonly Phased[], display: Display, now: number): string =>
  formatByNamespace(
    PHASED_COLUMNS,
    phased.map((one) => ({ namespace: one.rollout.namespace, cells: describeRow(one, now) })),
    display,
  );

function describeRow(phased: Phased, now: number): Cell[] {
  const { rollout, target } = phased;
  const tone = TONES[standingOfPhased(phased)];
  const { allowed, reason, since, until } = explainPhased(phased);
  const counts = target
    ? [`${firstReleased(target)}/${target.replicas}`, `${target.status.updated}/${target.replicas}`]
    : ["-", "-"];
  const phase = { text: reason === "Unseen" ? "Unseen" : rollout.status.phase, tone };
  return [
    rollout.name,
    rollout.targetRef,
    phase,
    ...counts,
    { text: allowed ? "" : reason, tone },
    formatAge(since, now),
    untilOf(until ?? nextCheckOf(phased), now),
  ];
}

/** A line for a log, equal as long as nothing has changed. */
export function renderPhasedLine(phased: Phased): string {
  const { message } = explainPhased(phased);
  return `phasedrollout/${phased.rollout.name} ${phased.rollout.status.phase || "Unseen"}: ${message}\n`;
}

const POLICY_COLUMNS: readonly Column[] = [
  { heading: "NODE-UPDATE-POLICY" },
  { heading: "NODES", rank: 5 },
  { heading: "UP-TO-DATE", rank: 6 },
  { heading: "ACTIVE", rank: 4 },
  { heading: "WAITING", rank: 7 },
  { heading: "FAILED", rank: 3 },
  { heading: "FROZEN", rank: 2 },
  { heading: "MESSAGE", rank: 1 },
];

export const renderPolicies = (policies: readonly (Policy | InvalidPolicy)[], display: Display, now: number): string =>
  formatTable(
    POLICY_COLUMNS,
    policies.map((policy) => describePolicy(policy, now)),
    display,
  );

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
