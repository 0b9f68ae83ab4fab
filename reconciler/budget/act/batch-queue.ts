/**
 * One queue a budget: requests that arrive while a batch is decided form the next batch. Queues of different budgets do
 * not wait for each other. Requests whose budget is unknown wait in a queue of their namespace, until one list of its
 * budgets sends each of them on.
 */
import { type Deadline, startDeadline } from "../../../infra/deadline.ts";
import { visitEach } from "../../../infra/slots.ts";
import { groupBy } from "../../model/order.ts";
import { budgetKey, statefulSetKey } from "./budget-memory.ts";
import { callWithin, decideBatch, readBudgets } from "./decide-batch.ts";
import { type DisruptionResult, undecided } from "../verdict.ts";
import { type ReserverTools, remaining, type TimedDisruptionRequest } from "./disruption-request.ts";
import { type BatchContext, chooseBudget } from "./find-budget.ts";
import type { ListedBudget } from "./gather-budget.ts";

/** A request and the functions that settle it: with a result, or with the error of the API server. */
interface Waiting extends Pick<PromiseWithResolvers<DisruptionResult>, "resolve" | "reject"> {
  readonly request: TimedDisruptionRequest;
}

interface QueueKey {
  readonly namespace: string;
  /** "" while the budget is unknown. */
  readonly budget: string;
}

type Budgets = readonly ListedBudget[];

/** Reads in flight for the pods of one StatefulSet that no budget selects. */
const READS_AT_ONCE = 32;
/** Milliseconds: a batch lasts no longer, however late the deadlines of its requests are. */
const MAX_BATCH_MS = 60_000;

/** Resolves with the result that one batch found for the request; never rejects. */
type DecideInBatch = (request: TimedDisruptionRequest) => Promise<DisruptionResult>;

export function createBatchQueue(tools: ReserverTools): DecideInBatch {
  const { clock } = tools;
  const queues = new Map<string, Waiting[]>();

  function enqueue(key: QueueKey, waiting: readonly Waiting[], budgets?: Budgets): void {
    const queue = queues.get(budgetKey(key.namespace, key.budget));
    if (queue) queue.push(...waiting);
    else void processQueue(key, [...waiting], budgets);
  }

  async function processQueue(key: QueueKey, queue: Waiting[], known: Budgets | undefined): Promise<void> {
    const name = budgetKey(key.namespace, key.budget);
    queues.set(name, queue);
    let budgets = known;
    // Requests of the same moment share the first batch.
    await Promise.resolve();
    while (queue.length > 0) {
      const batch = queue.splice(0);
      const startedAt = clock.monotonic();
      await processBatch(key, batch, budgets);
      budgets = undefined;
      if (batch.length > 1) await clock.sleep(pauseAfter(clock.monotonic() - startedAt));
    }
    queues.delete(name);
  }

  /** Ends with the latest deadline of its requests, so that one with little time left does not fail the others. */
  async function processBatch(key: QueueKey, batch: readonly Waiting[], budgets: Budgets | undefined): Promise<void> {
    const longest = Math.max(...batch.map(({ request }) => remaining(request, clock)));
    using deadline = startDeadline(Math.min(longest, MAX_BATCH_MS), undefined, clock);
    try {
      if (key.budget === "") return await sendOn(key.namespace, batch, deadline);
      const results = await decideBatch(
        { ...key, requests: batch.map(({ request }) => request), budgets },
        tools,
        deadline,
      );
      for (const { request, resolve } of batch) resolve(results.get(request) ?? undecided());
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  /**
   * Sends each request on to the queue of its pod's budget. One pod of each StatefulSet under a budget is read: the
   * budget is then noted for its other pods.
   */
  async function sendOn(namespace: string, batch: readonly Waiting[], deadline: Deadline): Promise<void> {
    const budgets = await readBudgets(namespace, tools, deadline);
    const context = { budgets, tools, call: callWithin(deadline) };
    const names = new Map<Waiting, string | undefined>();
    const ofOneSet = groupBy(batch, ({ request }) => statefulSetKey(request) ?? request.name).values();
    await Promise.all(
      ofOneSet.map(async ([first, ...others]) => {
        if (first) names.set(first, await nameBudget(first, context));
        await visitEach(others, { atOnce: READS_AT_ONCE }, async (waiting) => {
          names.set(waiting, await nameBudget(waiting, context));
        });
      }),
    );
    const known = batch.filter((waiting) => names.get(waiting) !== undefined);
    for (const [budget, waiting] of groupBy(known, (one) => names.get(one) ?? ""))
      enqueue({ namespace, budget }, waiting, budgets);
  }

  /** The name of the budget, or undefined once the request is settled without one. */
  async function nameBudget({ request, resolve, reject }: Waiting, context: BatchContext): Promise<string | undefined> {
    try {
      const found = await chooseBudget(request, context);
      if (!("outcome" in found)) return found.ref.name;
      resolve(found);
    } catch (error) {
      reject(error);
    }
    return undefined;
  }

  return (request) => {
    const budget = request.downscale?.budget ?? tools.memory.budgetOf(request) ?? "";
    const { promise, resolve, reject } = Promise.withResolvers<DisruptionResult>();
    enqueue({ namespace: request.namespace, budget }, [{ request, resolve, reject }]);
    return promise.catch(undecided);
  };
}

const MIN_PAUSE_MS = 2;
const MAX_PAUSE_MS = 25;

/**
 * Clients that were answered together send their next requests together: without a pause the first of these would be a
 * batch of its own, and the rest would wait for two batches.
 */
function pauseAfter(batchMs: number): number {
  return Math.min(Math.max(MIN_PAUSE_MS, batchMs / 10), MAX_PAUSE_MS);
}
