/**
 * Asks Prometheus for the checks that are due, beside the groups: one round per tick for all capabilities, with a bound on what is in flight and on the
 * time of the whole round. Checks that the round does not reach remain due, and the next tick asks for them.
 */
import { firstOfSignals, type Clock } from "../../infra/clock.ts";
import { hasCode, messageOf } from "../../infra/errors.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { secrets } from "../../infra/kubernetes/resources.ts";
import { queryError, type QueryAnswer } from "../../infra/prometheus/answer.ts";
import type { PrometheusClient } from "../../infra/prometheus/client.ts";
import { readCredentials, type QueryCredentials } from "../../infra/prometheus/credentials.ts";
import { createSlots, type Slots } from "../../infra/slots.ts";
import type { CheckAnswer, CheckQuery } from "../checks/check.ts";

/** A query, and the namespace of its object: its Secret is read there. */
export interface Question {
  readonly namespace: string;
  readonly query: CheckQuery;
}

export interface Round extends Disposable {
  /** Resolves with the answer, or with undefined if the round ended before: the check remains due. Never rejects. */
  ask(question: Question): Promise<CheckAnswer | undefined>;
}

export interface Checker {
  /** Begins the round of a tick; dispose of it at its end. `stop` ends it early. */
  begin(stop: AbortSignal): Round;
}

export interface CheckerTools {
  readonly cluster: Cluster;
  readonly prometheus: PrometheusClient;
  readonly clock: Pick<Clock, "now" | "sleep">;
}

const IN_FLIGHT = 16;
/** Dead endpoints must not take the time of a run: a tick waits no longer for its checks. */
const ROUND_MS = 10_000;

export function createChecker(tools: CheckerTools): Checker {
  return {
    begin(stop) {
      const over = new AbortController();
      void tools.clock.sleep(ROUND_MS, over.signal).then(() => over.abort());
      const signal = firstOfSignals(stop, over.signal);
      const slots = createSlots(IN_FLIGHT);
      return {
        ask: (question) => askInTurn(question, { ...tools, slots, signal }).catch(() => undefined),
        [Symbol.dispose]: () => over.abort(),
      };
    },
  };
}

interface RoundTools extends CheckerTools {
  readonly slots: Slots;
  readonly signal: AbortSignal;
}

/** Rejects with `Cancelled` if its turn does not come. */
async function askInTurn(question: Question, { slots, ...tools }: RoundTools): Promise<CheckAnswer | undefined> {
  using _slot = await slots.take(tools.signal);
  const answer = await ask(question, tools);
  // A query that the end of the round has cut off says nothing of Prometheus.
  return tools.signal.aborted ? undefined : { ...answer, at: tools.clock.now() };
}

async function ask({ namespace, query }: Question, { cluster, prometheus, signal }: Omit<RoundTools, "slots">): Promise<QueryAnswer> {
  const { secretRef, ...target } = query;
  if (secretRef === undefined) return prometheus.query(target, signal);
  const credentials = await readSecret({ namespace, name: secretRef }, cluster, { signal });
  if ("kind" in credentials) return credentials;
  return prometheus.query({ ...target, credentials }, signal);
}

/** The credentials in a Secret, or the error that says why there are none. */
async function readSecret(
  ref: { readonly namespace: string; readonly name: string },
  cluster: Cluster,
  call: Call,
): Promise<QueryCredentials | QueryAnswer> {
  try {
    const { data } = await cluster.get(secrets, ref, call);
    const credentials = readCredentials(data);
    return credentials.problem === undefined ? credentials : queryError("SecretUnusable", `Secret ${ref.name} ${credentials.problem}`);
  } catch (error) {
    if (hasCode(error, "NotFound")) return queryError("SecretUnusable", `Secret ${ref.name} does not exist`);
    if (hasCode(error, "Forbidden"))
      return queryError("SecretUnusable", `Secret ${ref.name} may not be read: the reconciler has no right to it`);
    return queryError("SecretUnusable", `Secret ${ref.name} could not be read: ${messageOf(error)}`);
  }
}
