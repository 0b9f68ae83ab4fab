/** The status page as HTML. It renders what is recorded and derives nothing; preact escapes every text. Pure. */
import { h, type ComponentChild } from "preact";
import { renderToString } from "preact-render-to-string";
import type { Focus } from "../gather.ts";
import {
  type BudgetRecord,
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
import { SCRIPT } from "./script.ts";
import { showGroup } from "./show-group.ts";
import { sayDoubt, showBudgets, showDecisions, showNoTick, showQuietGroups, showReconciler } from "./show-tables.ts";
import { STYLE } from "./style.ts";

interface PageView {
  readonly records: PageRecords;
  /** The key of the group that is shown alone. */
  readonly focus: Focus;
  readonly clusterName?: string;
}

/** Script and style are elements of the page, which its Content-Security-Policy names by their hashes. */
export function renderPage(view: PageView): string {
  const headline = sayHeadline(view);
  const html = h(
    "html",
    { lang: "en" },
    h(
      "head",
      {},
      h("meta", { charSet: "utf-8" }),
      h("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }),
      h("title", {}, [headline, view.clusterName, "Zonewise"].filter(Boolean).join(" – ")),
      h("link", { rel: "icon", href: "data:," }),
      h("style", { dangerouslySetInnerHTML: { __html: STYLE } }),
    ),
    h(
      "body",
      {},
      showHeader(view, headline),
      h("main", {}, ...showSections(view)),
      h("script", { dangerouslySetInnerHTML: { __html: SCRIPT } }),
    ),
  );
  return `<!doctype html>${showUnseen(renderToString(html))}`;
}

function showHeader({ records, clusterName = "" }: PageView, headline: string): ComponentChild {
  return h(
    "header",
    {},
    h("h1", {}, "Zonewise", clusterName !== "" && h("span", { class: "faint" }, ` on ${clusterName}`)),
    h("p", { id: "headline", role: "status" }, headline),
    h("button", { id: "pause", type: "button", hidden: true, "aria-pressed": "false" }, "Pause updates"),
    h("noscript", {}, h("p", {}, "Without JavaScript this page stays as it is: reload it.")),
    h("p", { id: "connection", class: "problem", role: "alert", hidden: true }),
    h("div", { id: "reconciler" }, showReconciler(records.reconciler, records.readAt)),
    h("div", { id: "problems" }, ...showProblems(records)),
  );
}

const groupsOf = ({ records, focus }: PageView): readonly PageGroup[] =>
  listPart(records.groups).filter((group) => focus === undefined || keyOf(group) === focus);

/**
 * The first line of the page and the title of its window: whether ticks are missing, and how many groups are in each
 * phase.
 */
function sayHeadline(view: PageView): string {
  const { records, focus } = view;
  const doubt = sayDoubt(records.reconciler);
  if (isUnread(records, focus)) return [doubt, "Rollout groups could not be read"].filter(Boolean).join(" ");
  const phases = countPhases(groupsOf(view));
  return doubt === undefined ? phases : `${doubt} As recorded: ${phases}`;
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
const showProblems = ({ reconciler, problems }: PageRecords): ComponentChild[] => [
  showNoTick(reconciler),
  ...problems.map((problem) => h("p", { class: "problem" }, problem)),
];

/** Groups, budgets and decisions, below headings of the second level. */
function showSections(view: PageView): ComponentChild[] {
  const { records, focus } = view;
  const groups = groupsOf(view);
  const { zones, budgets, decisions, readAt: now } = records;
  const busy = groups.filter((group) => focus !== undefined || !isQuiet(group));
  const quiet = groups.filter((group) => !busy.includes(group));
  return [
    focus !== undefined && h("p", { id: "back" }, h("a", { href: "?" }, "All groups")),
    h("h2", {}, "Groups"),
    groups.length === 0 && h("p", { id: "none" }, whyNone(records, focus)),
    ...busy.map((group) =>
      showGroup({ group, live: zones.get(keyOf(group)), now, isOld: sayDoubt(records.reconciler) !== undefined }),
    ),
    quiet.length > 0 && h("div", { id: "quiet" }, showQuietGroups(quiet, now)),
    h("h2", {}, "Disruption budgets"),
    h(
      "div",
      { id: "budgets" },
      sayOr(focus === undefined ? budgets : ownBudgets(budgets, groups), "There is none.", (all) =>
        showBudgets(all, now),
      ),
    ),
    h("h2", {}, "Last decisions"),
    h(
      "div",
      { id: "decisions" },
      sayOr(decisions, "None is recorded.", (all) => showDecisions(all, now)),
    ),
  ];
}

/** The budgets of these groups' zones. */
function ownBudgets(budgets: Part<BudgetRecord>, groups: readonly PageGroup[]): Part<BudgetRecord> {
  if (budgets === UNREAD || budgets === undefined) return budgets;
  const zones = new Set(
    groups.flatMap(({ namespace, status }) => (status.zones ?? []).map(({ name }) => `${namespace}/${name}`)),
  );
  return budgets.filter(({ namespace, protection }) =>
    (protection.zones ?? []).some(({ name }) => zones.has(`${namespace}/${name}`)),
  );
}

function whyNone(records: PageRecords, focus: Focus): string {
  if (isUnread(records, focus)) return NOT_READ;
  if (!records.groups)
    return "The cluster knows no RolloutGroup: install the definitions (kubectl apply -k infra/manifests/crds).";
  return focus === undefined ? "No rollout groups." : `No rollout group ${focus}.`;
}

const NOT_READ = "Could not be read.";

/** Shows a part; or says that there is nothing in it, or that it has not been read. */
function sayOr<T>(all: Part<T>, none: string, show: (all: readonly T[]) => ComponentChild): ComponentChild {
  const known = listPart(all);
  return known.length > 0 ? show(known) : h("p", {}, all === UNREAD ? NOT_READ : none);
}

/** Invisible characters, and characters that change the order in which others are read: any user can write messages. */
const UNSEEN = /[\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF]/g;

/** The same text, with each of them as its code: `\u202e`. */
const showUnseen = (text: string): string =>
  text.replaceAll(UNSEEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
