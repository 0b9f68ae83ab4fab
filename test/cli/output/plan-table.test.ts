import assert from "node:assert/strict";
import { it } from "node:test";
import { renderSteps } from "../../../cli/output/plan-table.ts";
import { plain } from "../../../cli/output/text.ts";
import type { PlannedAction } from "../../../reconciler/plan/plan-group.ts";

const replace = (zone: string, ordinals: readonly number[], more: Partial<PlannedAction> = {}): PlannedAction => ({
  action: "ReplacePods",
  zone,
  pods: ordinals.map((n) => `${zone}-${n}`),
  message: "",
  waits: ["MaxUnavailableReached"],
  waitMs: 45_000,
  at: 0,
  ...more,
});
const finish = (zone: string): PlannedAction => ({
  ...replace(zone, [], { waits: ["ZoneNotReady"] }),
  action: "FinishZone",
});
const FIRST = { waits: [], waitMs: 0 };

const show = (steps: readonly PlannedAction[]): string[] =>
  renderSteps(steps, { style: plain })
    .split("\n")
    .slice(1, -1)
    .map((line) => line.replaceAll(/ {2,}/g, " | "));

const CASES: readonly { readonly name: string; readonly steps: readonly PlannedAction[]; readonly lines: string[] }[] =
  [
    {
      name: "pods that follow one another alike are one line, the first after a wait of its own",
      steps: [replace("a", [2], FIRST), replace("a", [1]), replace("a", [0]), finish("a"), replace("b", [0], FIRST)],
      lines: [
        "1-3 | ReplacePods | a | 3 pods, 1 at a time, 45s apart (MaxUnavailableReached): a-2, a-1, a-0",
        "4 | 45s | ZoneNotReady | FinishZone | a | all pods are updated and ready",
        "5 | ReplacePods | b | b-0",
      ],
    },
    {
      name: "many are not named one by one; the last step may be smaller",
      steps: [replace("a", [4, 3], FIRST), replace("a", [2, 1]), replace("a", [0])],
      lines: ["1-3 | ReplacePods | a | 5 pods, 2 at a time, 45s apart (MaxUnavailableReached): a-4 … a-0"],
    },
    {
      name: "pods that start at once are not 0s apart",
      steps: [replace("a", [1], FIRST), replace("a", [0], { waitMs: 900 })],
      lines: ["1-2 | ReplacePods | a | 2 pods, 1 at a time, less than 1s apart (MaxUnavailableReached): a-1, a-0"],
    },
    {
      name: "another wait, or another zone, begins a line",
      steps: [
        replace("a", [2], FIRST),
        replace("a", [1]),
        replace("a", [0], { waits: ["BudgetSpent"] }),
        replace("b", [1], FIRST),
      ],
      lines: [
        "1-2 | ReplacePods | a | 2 pods, 1 at a time, 45s apart (MaxUnavailableReached): a-2, a-1",
        "3 | 45s | BudgetSpent | ReplacePods | a | a-0",
        "4 | ReplacePods | b | b-1",
      ],
    },
    {
      name: "replicas are a line each",
      steps: [3, 2].map((replicas) => ({
        ...replace("a", []),
        pods: undefined,
        action: "ScaleZone",
        replicas,
      })) as unknown as PlannedAction[],
      lines: [
        "1 | 45s | MaxUnavailableReached | ScaleZone | a | to 3 replicas",
        "2 | 45s | MaxUnavailableReached | ScaleZone | a | to 2 replicas",
      ],
    },
  ];
for (const { name, steps, lines } of CASES) it(name, () => assert.deepEqual(show(steps), lines));
