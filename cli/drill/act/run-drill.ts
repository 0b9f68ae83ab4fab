/**
 * A drill from its first object to its last: watched all the time, every stage within its time.
 *
 *   make -> start -> refusals -> storm -> drains -> rollout -> kept -> downscale -> remove
 *             after a stage that fails or is not over in time comes the next one, but after a failed start none
 */
import { firstOfSignals } from "../../../infra/clock.ts";
import { messageOf } from "../../../infra/errors.ts";
import { STAGES, type StageName } from "../plan.ts";
import type { Drill } from "./context.ts";
import { followPods } from "./follow-pods.ts";
import { killPods, type Killed } from "./installation.ts";
import { explainStart, ORDER, PLAYS } from "./stages.ts";

interface Choices {
  /** The pods to kill; undefined for none. */
  readonly kill: Killed | undefined;
  /** Receives a line for each step. */
  readonly tell: (text: string) => void;
}

/** The stages during which pods of the installation are killed. */
const KILLED_IN: ReadonlySet<StageName> = new Set(["storm", "drains", "rollout"]);

/** Resolves once all stages are over, or the signal has fired. Rejects if the objects cannot be made. */
export async function runDrill(drill: Drill, choices: Choices): Promise<void> {
  const watched = new AbortController();
  const following = followPods({ ...drill, signal: firstOfSignals(drill.signal, watched.signal) });
  try {
    for (const stage of ORDER) {
      if (drill.signal.aborted) return;
      const isOver = await runStage(drill, stage, choices);
      if (stage === "start" && !isOver) return;
    }
  } finally {
    watched.abort();
    await following;
  }
}

async function runStage(drill: Drill, stage: StageName, { kill, tell }: Choices): Promise<boolean> {
  const { clock, history } = drill;
  const { says, limitMs } = STAGES[stage];
  const over = new AbortController();
  const signal = firstOfSignals(drill.signal, over.signal);
  void clock.sleep(limitMs, signal).then(() => over.abort());
  history.add({ what: "stage", stage, state: "begins" });
  tell(`${stage}: ${says}`);
  const killing = kill && KILLED_IN.has(stage) ? killPods({ ...drill, signal }, kill, tell) : undefined;
  const isOver = await PLAYS[stage]({ ...drill, signal }).catch((error: unknown) => {
    if (stage === "start") throw error;
    tell(`${stage}: ${messageOf(error)}`);
    return false;
  });
  over.abort();
  await killing;
  if (stage === "start" && !isOver && !drill.signal.aborted) tell(`start: ${await explainStart(drill)}`);
  history.add({ what: "stage", stage, state: isOver ? "ends" : "overdue" });
  return isOver;
}
