/**
 * The table of `zonewise doctor`: what the API server accepts and does not do what it is meant for. A row is a check: its
 * name, its level, when it finds something, in which object, what it says, and the fix. Its rows are in the files
 * beside this one, by their subject, the gravest first. Pure.
 */
import { groupKey } from "../../../reconciler/model/zone.ts";
import { isGrouped } from "../../../reconciler/remedies/leader.ts";
import { BUDGETS } from "./budgets.ts";
import type { Check, Finding, Found } from "./facts.ts";
import { GROUPS } from "./groups.ts";
import { INSTALLATION } from "./installation.ts";

export const CHECKS: readonly Check[] = [...INSTALLATION, ...BUDGETS, ...GROUPS];

/** Facts of a cluster in which nothing is wrong. */
const NOTHING: Found = {
  unread: [],
  noTicks: [],
  guards: [],
  webhooks: [],
  missingKinds: [],
  definitions: [],
  originals: [],
  budgets: [],
  others: undefined,
  sets: [],
  orphans: [],
  phased: [],
  claimed: [],
  gates: [],
  keyed: [],
  now: 0,
};

/**
 * What the checks find, errors first, and each in the order of the table. Of findings with one and the same fix, the
 * first.
 */
export function diagnose(found: Partial<Found>): Finding[] {
  const zones = (found.sets ?? []).map(({ zone }) => zone);
  const facts = { ...NOTHING, ...found, zones, groups: Map.groupBy(zones.filter(isGrouped), groupKey) };
  const findings = CHECKS.flatMap(({ find }) => find(facts));
  const sorted = (["error", "warning"] as const).flatMap((level) => findings.filter((one) => one.level === level));
  const fixes = new Set<string>();
  return sorted.filter(({ fix }) => {
    const change = fix.split("\n").at(-1) ?? "";
    const isNew = !fixes.has(change);
    // An edit, or a sentence, may be for several troubles.
    if (/^kubectl .* (label|annotate) /.test(change)) fixes.add(change);
    return isNew;
  });
}
