/** The tables of the status page: groups that are done, budgets, last decisions. Pure. */
import { h, type ComponentChild, type ComponentChildren } from "preact";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import type { Reservation } from "../../../reconciler/budget/reservation.ts";
import { addressOf, showPhase } from "./show-group.ts";
import {
  keyOf,
  UNREAD,
  type BudgetRecord,
  type DecisionRecord,
  type PageGroup,
  type PageRecords,
  type ReconcilerRecord,
} from "./records.ts";
import { showRemedy } from "./remedy.ts";
import { showTime } from "./time.ts";

interface Table {
  readonly label: string;
  readonly columns: readonly string[];
  /** The first cell of each names its row. */
  readonly rows: readonly (readonly ComponentChildren[])[];
}

/** A table that scrolls by itself; on a phone, the cells of a row stand one below the other. */
function showTable({ label, columns, rows }: Table): ComponentChild {
  const head = columns.map((name) => h("th", { scope: "col" }, name));
  const body = rows.map(([first, ...rest]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, first),
      ...rest.map((cell, i) => h("td", { "data-label": columns[i + 1] }, cell)),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabIndex: 0, role: "region", "aria-label": label },
    h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)),
  );
}

export function showQuietGroups(groups: readonly PageGroup[], now: number): ComponentChild {
  return showTable({
    label: "Groups with nothing to do",
    columns: ["Group", "Phase", "Zones", "Updated", "Ready", "Last rollout"],
    rows: groups.map((group) => {
      const { summary, progress } = group.status;
      const link = h("a", { href: addressOf(group), id: `link-${keyOf(group)}` }, keyOf(group));
      return [
        link,
        showPhase(group),
        summary?.zones,
        summary?.updated,
        summary?.ready,
        showTime(progress?.completionTime, now),
      ];
    }),
  });
}

export function showBudgets(budgets: readonly BudgetRecord[], now: number): ComponentChild {
  return showTable({
    label: "Disruption budgets",
    columns: ["Budget", "Protecting", "Zones: healthy of expected", "Reservations"],
    rows: budgets.map((budget) => {
      const { protection, reservations } = budget;
      const [condition] = protection.conditions ?? [];
      const state =
        condition?.status === "True" ? "True" : `${condition?.status ?? "Unknown"} ${condition?.reason ?? ""}`;
      const zones = (protection.zones ?? []).map(({ name, healthy, expected, orphaned }) =>
        h("li", {}, `${name}: ${healthy} of ${expected}${orphaned ? ", orphaned" : ""}`),
      );
      const reserved = Object.entries(reservations).map(([key, one]) =>
        h("li", {}, `${describe(key, one)} by ${one.by} `, showTime(one.time, now)),
      );
      return [keyOf(budget), [state, h("p", { class: "faint" }, condition?.message)], listOf(zones), listOf(reserved)];
    }),
  });
}

const describe = (key: string, { kind, from }: Reservation): string =>
  `${key}: ${kind}${from === undefined ? "" : `, pods from ordinal ${from} on`}`;

/** The items as a list, or that there is none. */
const listOf = (items: readonly ComponentChild[]): ComponentChildren =>
  items.length > 0 ? h("ul", {}, ...items) : "none";

export function showDecisions(decisions: readonly DecisionRecord[], now: number): ComponentChild {
  return showTable({
    label: "Last decisions",
    columns: ["Time", "Object", "Reason", "Message", "Count"],
    rows: fold(decisions).map(({ time, object, type, reason, message, count }) => [
      showTime(time, now),
      object,
      h("span", { class: type === "Warning" ? "busy" : "" }, type === "Warning" ? `${reason} (warning)` : reason),
      message,
      count,
    ]),
  });
}

/** Events of one object with one reason in a row, as the newest of them with the count of all. */
function fold(decisions: readonly DecisionRecord[]): readonly DecisionRecord[] {
  const folded: DecisionRecord[] = [];
  for (const one of decisions) {
    const last = folded.at(-1);
    const isSame = last?.object === one.object && last.reason === one.reason;
    if (isSame) folded[folded.length - 1] = { ...last, count: last.count + one.count };
    else folded.push(one);
  }
  return folded;
}

/** The read error, which may call for anything, is shown below it. */
const LEASE_UNREAD = {
  state: "unknown",
  message: "it is unknown whether the reconciler runs",
  remedy: undefined,
} as const;

/** The warning that no tick comes, or that this is unknown: without ticks, groups are shown as they were last recorded. */
export function showNoTick(reconciler: PageRecords["reconciler"]): ComponentChild {
  const noTick = reconciler === UNREAD ? LEASE_UNREAD : reconciler.noTick;
  if (!noTick) return undefined;
  const { state, message, remedy } = noTick;
  const consequence =
    state === "stopped"
      ? "Nothing is rolled out or scaled, and groups are shown as last recorded."
      : "The records may be old.";
  return h(
    "div",
    { id: "no-tick", class: `problem ${state}` },
    h("p", {}, h("strong", {}, "Warning: "), `${message}. ${consequence}`),
    remedy !== undefined && showRemedy(remedy),
  );
}

/** The doubt about all that is recorded, for the headline. */
export function sayDoubt(reconciler: PageRecords["reconciler"]): string | undefined {
  if (reconciler === UNREAD) return "It is unknown whether the reconciler runs.";
  return reconciler.noTick?.state === "stopped" ? "The reconciler does not run." : undefined;
}

/** Age of the last tick, holder of the Lease, certificate. */
export function showReconciler(reconciler: PageRecords["reconciler"], now: number): ComponentChild {
  const facts = reconciler === UNREAD ? ([["Reconciler", "could not be read"]] as const) : factsOf(reconciler, now);
  return h("dl", {}, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function factsOf(
  { lastTick, holder, certificateExpiry }: ReconcilerRecord,
  now: number,
): readonly (readonly [string, ComponentChildren])[] {
  return [
    ["Last tick", lastTick === undefined ? "not recorded" : showTime(lastTick, now)],
    ["Reconciler", holder?.replace(/_[^_]*$/, "") ?? "not running now"],
    [
      "Certificate expires",
      certificateExpiry === undefined ? "not recorded" : showTime(formatTimestamp(certificateExpiry), now),
    ],
  ];
}
