/**
 * The reconciler's tick as a function: over HTTP (any POST), or as the target of CloudEvents (a PingSource, an ApiServerSource on
 * StatefulSets). One invocation is one tick under the Lease; what was invoked meanwhile waits and shares the next one.
 */
import type { CloudEventFunction, HttpFunction } from "@google-cloud/functions-framework";
import { systemClock } from "../infra/clock.ts";
import { hasCode } from "../infra/errors.ts";
import { compose, type Composition } from "../reconciler/compose.ts";
import type { Outcome } from "../reconciler/report/outcome.ts";
import { run, type RunInput, type RunResult } from "../reconciler/run.ts";

/** An instance lives from call to call. */
const memory: NonNullable<RunInput["memory"]> = new Map();
let composition: Promise<Composition> | undefined;
let running: Promise<unknown> = Promise.resolve();
let next: Promise<RunResult> | undefined;

/** One tick that begins after now; invocations that wait for the same one share it. */
function tickOnce(): Promise<RunResult> {
  next ??= running.then(() => {
    next = undefined;
    const result = runOnce();
    running = result.catch(() => {});
    return result;
  });
  return next;
}

async function runOnce(): Promise<RunResult> {
  composition ??= compose(process.env, systemClock);
  const { push, run: input } = await composition.catch((error: unknown) => {
    // Told to each caller, and tried again: the environment does not change, the files that it names may.
    composition = undefined;
    throw error;
  });
  const result = await run({ ...input, memory, once: true, stop: AbortSignal.timeout(input.budgetMs) });
  if (result.last) await push();
  return result;
}

/** What a caller is told of a group. */
function show(outcome: Outcome): object {
  const { namespace, group, state } = outcome;
  const waits = outcome.waits.map(({ reason, message }) => ({ reason, message }));
  const common = { namespace, group, state, ...(waits.length > 0 && { waits }) };
  if (outcome.state === "held") return { ...common, reason: outcome.hold.reason, message: outcome.hold.message };
  if (outcome.state === "acted") return { ...common, message: outcome.decision.message };
  return common;
}

/** `functions-framework --target=reconcile`: 200 with the outcome of each group, 503 if the Lease or the cluster was out of reach, 500 if the configuration is wrong. */
export const reconcile: HttpFunction = async (request, response) => {
  if (request.method !== "POST") {
    response.status(405).set("allow", "POST").json({ error: "POST to run one tick" });
    return;
  }
  try {
    const { exitCode, last } = await tickOnce();
    if (!last) response.status(503).set("retry-after", "5").json({ error: "the lease or the cluster was out of reach" });
    else response.status(200).json({ failed: exitCode !== 0, groups: last.outcomes.map(show) });
  } catch (error) {
    const told = hasCode(error, "BadConfiguration") ? error.message : "the tick could not run; the log says why";
    response.status(500).json({ error: told });
  }
};

/** `functions-framework --target=reconcileEvent --signature-type=cloudevent`: any event is a hint; a tick that could not run rejects, so that it is delivered again. */
export const reconcileEvent: CloudEventFunction = async () => {
  const { last } = await tickOnce();
  if (!last) throw new Error("the lease or the cluster was out of reach");
};
