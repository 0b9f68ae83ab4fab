/**
 * The reconciler's tick as a function: over HTTP (any POST), or as the target of CloudEvents (a PingSource, an
 * ApiServerSource on StatefulSets). One invocation is one tick under the Lease; invocations meanwhile wait and share
 * the next one.
 */
import type { CloudEventFunction, HttpFunction } from "@google-cloud/functions-framework";
import type { Clock } from "../infra/clock.ts";
import type { Environment } from "../infra/config/config.ts";
import { hasCode } from "../infra/errors.ts";
import { compose, type Composition } from "../reconciler/run/compose.ts";
import type { Outcome } from "../reconciler/model/outcome.ts";
import { run } from "../reconciler/run/run.ts";
import type { RunInput, RunResult } from "../reconciler/run/session.ts";

interface ReconcileTargets {
  /**
   * `functions-framework --target=reconcile`: 200 with the outcome of each group, 503 if the Lease or the cluster was
   * out of reach, 500 if the configuration is wrong.
   */
  readonly reconcile: HttpFunction;
  /**
   * `functions-framework --target=reconcileEvent --signature-type=cloudevent`: any event is a hint; a tick that could
   * not run rejects, so that it is delivered again.
   */
  readonly reconcileEvent: CloudEventFunction;
}

/**
 * The targets of one process, which share their ticks and what they remember from call to call. Nothing happens before
 * the first call, which composes the run.
 */
export function createReconcileTargets(
  env: Environment,
  clock: Clock,
  composeRun: typeof compose = compose,
): ReconcileTargets {
  const tickOnce = shareNext(createRunner(() => composeRun(env, clock)));
  return {
    async reconcile(request, response) {
      if (request.method !== "POST") {
        response.status(405).set("allow", "POST").json({ error: "POST to run one tick" });
        return;
      }
      try {
        const { exitCode, last } = await tickOnce();
        if (!last)
          response.status(503).set("retry-after", "5").json({ error: "the lease or the cluster was out of reach" });
        else response.status(200).json({ failed: exitCode !== 0, groups: last.outcomes.map(show) });
      } catch (error) {
        const message = hasCode(error, "BadConfiguration") ? error.message : "the tick could not run; the log says why";
        response.status(500).json({ error: message });
      }
    },
    async reconcileEvent() {
      const { last } = await tickOnce();
      if (!last) throw new Error("the lease or the cluster was out of reach");
    },
  };
}

/** One run at a time; calls that come meanwhile share the next one, which begins after them. */
function shareNext<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  return () => {
    next ??= running.then(() => {
      next = undefined;
      const result = work();
      running = result.catch(() => {});
      return result;
    });
    return next;
  };
}

/** Runs one tick, and pushes the metrics. */
function createRunner(composeRun: () => Promise<Composition>): () => Promise<RunResult> {
  const memory: NonNullable<RunInput["memory"]> = new Map();
  let composition: Promise<Composition> | undefined;
  return async () => {
    composition ??= composeRun();
    const { push, run: input } = await composition.catch((error: unknown) => {
      // Each caller gets the error, and the next call tries again: the environment does not change, but the files that
      // it names may.
      composition = undefined;
      throw error;
    });
    const result = await run({ ...input, memory, once: true, stop: AbortSignal.timeout(input.budgetMs) });
    if (result.last) await push();
    // A function may get no processor time between two calls. The answer does not wait for a collector.
    void input.tracer?.flush();
    return result;
  };
}

/** The part of a group's outcome that a caller gets. */
function show(outcome: Outcome): object {
  const { namespace, group, state } = outcome;
  const waits = outcome.scalingHolds.map(({ reason, message }) => ({ reason, message }));
  const common = { namespace, group, state, ...(waits.length > 0 && { waits }) };
  if (outcome.state === "held") return { ...common, reason: outcome.hold.reason, message: outcome.hold.message };
  if (outcome.state === "acted") return { ...common, message: outcome.decision.message };
  return common;
}
