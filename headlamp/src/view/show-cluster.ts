/**
 * One cluster on the plugin's page: the content of the status page, and gates, PhasedRollouts and node updates. Pure.
 */
import { h, type ComponentChild } from "preact";
import type { Focus } from "../../../functions/status/gather.ts";
import {
  isUnread,
  keyOf,
  listPart,
  type PageGroup,
  type Part,
  UNREAD,
} from "../../../functions/status/view/records.ts";
import { sayHeadline, sayOr, showProblems, showSections } from "../../../functions/status/view/sections.ts";
import { type AddressOf, showGroup } from "../../../functions/status/view/show-group.ts";
import { isStopped, showReconciler } from "../../../functions/status/view/show-tables.ts";
import type { Gate } from "../../../reconciler/gates/gate.ts";
import type { ClusterRecords } from "../records.ts";
import { CLUSTER_ID, nameCluster } from "./name-cluster.ts";
import { showGates } from "./show-gates.ts";
import { showPolicies } from "./show-nodes.ts";
import { showPhased } from "./show-phased.ts";

export interface ClusterView {
  /** Its name in Headlamp. */
  readonly name: string;
  readonly records: ClusterRecords;
  /** The key of the group that is shown alone. */
  readonly focus: Focus;
  readonly addressOf: AddressOf;
}

/** Missing ticks and read errors come first. */
export function showCluster({ name, records, focus, addressOf }: ClusterView): ComponentChild {
  const { page, gates, phased, policies } = records;
  const { reconciler, readAt: now } = page;
  const shown = gatesOf(gates, focus, listPart(page.groups));
  const body = [
    ...showSections({ records: page, focus, addressOf }),
    h("h2", {}, "Gates"),
    sayOr(shown, sayNone(gates, "RolloutGate", "There is none."), (all) => showGates(all, now)),
    focus === undefined && [
      h("h2", {}, "PhasedRollouts"),
      sayOr(phased, sayNone(phased, "PhasedRollout", "There is none."), (all) => showPhased(all, now)),
      h("h2", {}, "Node updates"),
      sayOr(policies, sayNone(policies, "NodeUpdatePolicy", "There is no policy."), (all) => showPolicies(all, now)),
    ],
  ];
  return h(
    "div",
    { class: "page" },
    h(
      "div",
      { class: "head" },
      h("h2", { id: CLUSTER_ID }, `Cluster ${name}`),
      h("div", { id: "problems" }, ...showProblems(page)),
      h("p", { id: "headline", role: "status" }, sayHeadline({ records: page, focus })),
      h("div", { id: "reconciler" }, showReconciler(reconciler, now)),
    ),
    h("div", { class: "body" }, nameCluster(body, name)),
  );
}

export interface GroupView extends Omit<ClusterView, "focus"> {
  readonly namespace: string;
  /** The value of `rollout-group`. */
  readonly group: string;
}

/** One group, for the page of a StatefulSet or of its RolloutGroup. */
export function showOneGroup({ namespace, group: name, records: { page }, addressOf }: GroupView): ComponentChild {
  const { reconciler, groups, zones, readAt: now } = page;
  const group = listPart(groups).find((one) => one.namespace === namespace && labelOf(one) === name);
  const none = isUnread(page, keyOf({ namespace, name }))
    ? "Not read yet."
    : `No RolloutGroup is recorded for the group ${namespace}/${name}.`;
  return h(
    "div",
    { class: "page" },
    h("div", { class: "head" }, h("div", { id: "problems" }, ...showProblems(page))),
    h(
      "div",
      { class: "body" },
      group
        ? showGroup({ group, live: zones.get(keyOf(group)), now, isStopped: isStopped(reconciler), addressOf })
        : h("p", {}, none),
    ),
  );
}

const labelOf = ({ name, status }: PageGroup): string => status.group ?? name;

function sayNone(part: Part<unknown>, kind: string, none: string): string {
  return part === undefined ? `The cluster knows no ${kind}.` : none;
}

/** The gates; only those of the group if one is shown alone. */
function gatesOf(gates: Part<Gate>, focus: Focus, groups: readonly PageGroup[]): Part<Gate> {
  const group = groups.find((one) => keyOf(one) === focus);
  if (!group || gates === UNREAD) return gates;
  return gates?.filter(({ ref, group: name }) => ref.namespace === group.namespace && name === labelOf(group));
}
