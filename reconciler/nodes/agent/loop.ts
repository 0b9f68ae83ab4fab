/** Runs rounds until the host reboots or the process is asked to stop. */
import { messageOf } from "../../../infra/errors.ts";
import { bottlerocketShadows } from "../../../infra/kubernetes/custom-resources.ts";
import { startChangeWatch } from "../../snapshot/change-watch.ts";
import { shadowName } from "../shadow.ts";
import { type AgentTools, type RoundResult, runRound } from "./round.ts";

interface LoopOptions {
  /** Milliseconds after a round that failed. */
  readonly pauseMs: number;
  /** Milliseconds without a hint of a change until the next round. */
  readonly idleMs: number;
}

/** Milliseconds after a round that changed something. */
const CHANGED_MS = 200;

/** Never rejects: a round that fails is logged, and the next one starts from the facts. */
export async function runAgent(tools: AgentTools, { pauseMs, idleMs }: LoopOptions): Promise<void> {
  const { clock, log, stop, namespace, nodeName } = tools;
  const query = { namespace, fieldSelector: `metadata.name=${shadowName(nodeName)}` };
  const watch = startChangeWatch({
    ...tools,
    signal: stop,
    target: () => ({ resource: bottlerocketShadows, query }),
    pauseMs: idleMs,
  });
  let complaint = "";
  while (!stop.aborted) {
    let result: RoundResult;
    try {
      // Without a version a watch begins with the existing object: that hint costs one more round.
      watch.watchFrom(new Map([["shadow", "0"]]));
      result = await runRound(tools);
      complaint = "";
    } catch (error) {
      const problem = messageOf(error);
      if (problem !== complaint) log.warn("the round failed; the next one tries again", { error });
      complaint = problem;
      result = pauseMs;
    }
    if (result === "rebooting") {
      // If the process ended, it would be restarted.
      await clock.sleep(tools.rebootMs, stop);
      return;
    }
    if (typeof result === "number") await clock.sleep(result, stop);
    else await (result === "idle" ? watch.wait(idleMs) : clock.sleep(CHANGED_MS, stop));
  }
}
