/** The sections of the status page, without the document around them: other pages show them, too. Pure. */
import { h, type ComponentChild } from "preact";
import type { Focus } from "../gather.ts";
import {
  isQuiet,
  keyOf,
  isUnread,
  listPart,
  type PageGroup,
  type PageRecords,
  type Part,
  PHASE_ORDER,
  UNREAD,
} from "./records.ts";
import { type AddressOf, ownAddress, showGroup } from "./show-group.ts";
import { isStopped, showBudgets, showDecisions, showNoTick, showQuietGroups } from "./show-tables.ts";

export interface PageView {
  readonly records: PageRecords;
  /** The key of the group that is shown alone. */
  readonly focus: Focus;
  /** That of the status page by default. */
  readonly addressOf?: AddressOf | undefined;
}

/** The groups that are shown. */
const groupsOf = ({ records, focus }: PageView): readonly PageGroup[] =>
  listPart(records.groups).filter((group) => focus === undefined || keyOf(group) === focus);

/**
 * The first line of the page and the title of its window: whether ticks are missing, and how many groups are in each
 * phase.
 */
export function sayHeadline(view: PageView): string {
  const { records, focus } = view;
  const phases = isUnread(records, focus) ? "Rollout groups could not be read" : countPhases(groupsOf(view));
  return isStopped(records.reconciler) ? `No tick. As recorded: ${phases}` : phases;
}

function countPhases(groups: readonly PageGroup[]): string {
  const byPhase = Map.groupBy(groups, ({ status }) => status.phase ?? "Unknown");
  const counts = ["Unknown" as const, ...PHASE_ORDER].flatMap((phase) => {
    const count = byPhase.get(phase)?.length ?? 0;
    return count > 0 ? [`${count} ${phase}`] : [];
  });
  return counts.join(", ") || "No rollout groups";
}

/** The facts that come first on the page: a missing tick, and the read errors. */
export const showProblems = ({ reconciler, problems }: PageRecords): ComponentChild[] => [
  showNoTick(reconciler),
  ...problems.map((problem) => h("p", { class: "problem" }, problem)),
];

/** Groups, budgets and decisions, below headings of the second level. */
export function showSections(view: PageView): ComponentChild[] {
  const { records, focus, addressOf = ownAddress } = view;
  const groups = groupsOf(view);
  const { zones, budgets, decisions, readAt: now } = records;
  const busy = groups.filter((group) => focus !== undefined || !isQuiet(group));
  const quiet = groups.filter((group) => !busy.includes(group));
  return [
    focus !== undefined && h("p", { id: "back" }, h("a", { href: addressOf(undefined) }, "All groups")),
    h("h2", {}, "Groups"),
    groups.length === 0 && h("p", { id: "none" }, whyNone(records, focus)),
    ...busy.map((group) =>
      showGroup({ group, live: zones.get(keyOf(group)), now, isStopped: isStopped(records.reconciler), addressOf }),
    ),
    quiet.length > 0 && h("div", { id: "quiet" }, showQuietGroups(quiet, now, addressOf)),
    h("h2", {}, "Disruption budgets"),
    h(
      "div",
      { id: "budgets" },
      sayOr(budgets, "There is none.", (all) => showBudgets(all, now)),
    ),
    h("h2", {}, "Last decisions"),
    h(
      "div",
      { id: "decisions" },
      sayOr(decisions, "None is recorded.", (all) => showDecisions(all, now)),
    ),
  ];
}

function whyNone(records: PageRecords, focus: Focus): string {
  if (isUnread(records, focus)) return NOT_READ;
  if (!records.groups)
    return "The cluster knows no RolloutGroup: install the definitions (kubectl apply -k infra/manifests/crds).";
  return focus === undefined ? "There is no rollout group." : `There is no rollout group ${focus}.`;
}

export const NOT_READ = "Not read yet.";

/** Shows a part; or says that there is nothing in it, or that it has not been read. */
export function sayOr<T>(all: Part<T>, none: string, show: (all: readonly T[]) => ComponentChild): ComponentChild {
  const known = listPart(all);
  return known.length > 0 ? show(known) : h("p", {}, all === UNREAD ? NOT_READ : none);
}
