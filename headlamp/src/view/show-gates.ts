/** RolloutGates, by their status. Pure. */
import { h, type ComponentChild, type ComponentChildren } from "preact";
import { keyOf } from "../../../functions/status/view/records.ts";
import { listOf, showTable } from "../../../functions/status/view/show-tables.ts";
import { showTime } from "../../../functions/status/view/time.ts";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import type { NamedResult } from "../../../reconciler/checks/result.ts";
import type { Gate } from "../../../reconciler/gates/gate.ts";

export function showGates(gates: readonly Gate[], now: number): ComponentChild {
  return showTable({
    label: "Gates",
    columns: ["Gate", "Group", "Open", "What it says", "Checks of the last stage"],
    rows: gates.map((gate) => showRow(gate, now)),
  });
}

function showRow({ ref, group, mode, conditions, record }: Gate, now: number): ComponentChildren[] {
  const [open, valid] = ["Open", "Valid"].map((type) => conditions.find((one) => one.type === type));
  const stage = record?.stages.at(-1);
  return [
    keyOf({ namespace: ref.namespace ?? "", name: ref.name }),
    mode === "Observe" ? `${group} (observed only)` : group,
    open ? `${open.status} ${open.reason}` : "Unknown: not seen yet",
    [
      open?.message,
      stage && [" since ", showTime(formatTimestamp(stage.since), now)],
      h("p", { class: "busy" }, valid?.message),
    ],
    listOf((stage?.checks ?? []).map(describeCheck)),
  ];
}

/** `errors: Failure, 0.3`: the last answer, its sample, and why it is an error. */
function describeCheck({ name, lastVerdict, sample, message }: NamedResult): ComponentChild {
  const details = [sample, message].filter((one) => one !== undefined && one !== "");
  return h("li", {}, [`${name}: ${lastVerdict}`, ...details].join(", "));
}
