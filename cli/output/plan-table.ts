/** The table of `zonewise plan`. */
import { shortDuration } from "../../infra/duration.ts";
import type { PlannedAction } from "../../reconciler/plan/plan-group.ts";
import type { Display } from "./text.ts";
import { formatTable, type Cell, type Column } from "./table.ts";

const COLUMNS: readonly Column[] = [
  { heading: "STEP" },
  { heading: "WAIT", rank: 2 },
  { heading: "FOR", rank: 3 },
  { heading: "ACTION" },
  { heading: "ZONE", rank: 4 },
  { heading: "WHAT", rank: 1 },
];
/** Upper bound of the pods that a line names one by one. */
const MAX_NAMED = 4;

/** Equal consecutive steps; the first has its own wait. */
type Run = readonly [first: PlannedAction, ...more: PlannedAction[]];

/** One line per step. One line for pods of a zone that are replaced one after the other, each after the same wait. */
export function renderSteps(steps: readonly PlannedAction[], display: Display): string {
  let step = 1;
  const rows = foldSteps(steps).map((run): Cell[] => {
    const [{ waitMs, waits, action, zone }] = run;
    const number = run.length === 1 ? String(step) : `${step}-${step + run.length - 1}`;
    step += run.length;
    return [number, waitMs > 0 ? shortDuration(waitMs) : "", waits.join(", "), action, zone, describe(run)];
  });
  return formatTable(COLUMNS, rows, display);
}

function foldSteps(steps: readonly PlannedAction[]): Run[] {
  const runs: [PlannedAction, ...PlannedAction[]][] = [];
  for (const step of steps) {
    const run = runs.at(-1);
    if (run && isAlike(run, step)) run.push(step);
    else runs.push([step]);
  }
  return runs;
}

/** The second step shows what a run waits for: the first step has waited for something else. */
function isAlike(run: Run, { action, zone, pods = [], waitMs, waits }: PlannedAction): boolean {
  const [first, second] = run;
  if (action !== "ReplacePods" || first.action !== action || first.zone !== zone) return false;
  // The last step of a zone may have fewer pods.
  if (pods.length > (run.at(-1)?.pods ?? []).length) return false;
  return !second || (second.waitMs === waitMs && second.waits.join() === waits.join());
}

function describe([first, second, ...more]: Run): string {
  const { action, replicas, pods = [] } = first;
  if (action === "FinishZone") return "all pods are updated and ready";
  if (replicas !== undefined) return `to ${replicas} replicas`;
  if (!second) return pods.join(", ");
  const names = [first, second, ...more].flatMap((step) => step.pods ?? []);
  const listed = names.length > MAX_NAMED ? `${names[0]} … ${names.at(-1)}` : names.join(", ");
  const why = second.waits.length > 0 ? ` (${second.waits.join(", ")})` : "";
  const apart = second.waitMs < 1000 ? "less than 1s" : shortDuration(second.waitMs);
  return `${names.length} pods, ${pods.length} at a time, ${apart} apart${why}: ${listed}`;
}
