/** NodeUpdatePolicies: their nodes, the nodes under update, and the blocks. Pure. */
import { h, type ComponentChild } from "preact";
import { listOf, showTable } from "../../../functions/status/view/show-tables.ts";
import { showTime } from "../../../functions/status/view/time.ts";
import { isInvalid, type InvalidPolicy, type Policy } from "../../../reconciler/nodes/policy.ts";

export function showPolicies(policies: readonly (Policy | InvalidPolicy)[], now: number): ComponentChild {
  return showTable({
    label: "Node update policies",
    columns: ["Policy", "Up to date", "What it says", "Nodes being updated", "Nodes that wait", "Failed"],
    rows: policies.map((policy) => {
      if (isInvalid(policy)) return [policy.name, "", h("span", { class: "bad" }, policy.unreadable), "", "", ""];
      const { nodes, frozen, message, active, skipped, failed } = policy.status;
      return [
        policy.name,
        `${nodes.upToDate}/${nodes.total}`,
        [
          policy.problem !== undefined && h("p", { class: "bad" }, policy.problem),
          frozen && h("p", { class: "bad" }, `frozen: ${frozen.message} `, showTime(frozen.at, now)),
          message,
        ],
        listOf(
          active.map(({ node, phase, since, waitsFor }) =>
            h("li", {}, `${node} ${phase} `, showTime(since, now), waitsFor === undefined ? "" : ` ${waitsFor}`),
          ),
        ),
        listOf(Object.entries(skipped).map(([reason, count]) => h("li", {}, `${count} ${reason}`))),
        listOf(
          failed.map(({ node, reason, message, at }) =>
            h("li", {}, `${node} ${reason}: ${message} `, showTime(at, now)),
          ),
        ),
      ];
    }),
  });
}
