/**
 * Asks Prometheus for the checks that are due, beside the groups: one round per tick for all capabilities, with bounds
 * on the queries in flight and on the time of the whole round. Checks that the round does not reach remain due, and
 * the next tick asks for them.
 *
 *   0 s --turns are given--> 5.5 s --questions in flight continue--> 10 s: a check without an answer is an error, and is asked again later and later
 */
import { firstOfSignals, type Clock } from "../../../infra/clock.ts";
import { hasCode, messageOf } from "../../../infra/errors.ts";
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { secrets } from "../../../infra/kubernetes/resources.ts";
import { queryError, type QueryAnswer } from "../../../infra/prometheus/answer.ts";
import type { PrometheusClient } from "../../../infra/prometheus/act/client.ts";
import { readCredentials, type QueryCredentials } from "../../../infra/credentials.ts";
import { type Baseline, compareAnswers } from "../baseline.ts";
import type { CheckAnswer, CheckQuery, Urgency } from "../check.ts";
import { fillPlaceholders, type PlaceholderValues } from "../placeholders.ts";
import type { Answers, PlannedCheck } from "../result.ts";
import { createTurns, type Turns } from "./turns.ts";

/** The inputs for an object's checks. */
interface CheckScope {
  /** The object's namespace: Secrets are read there. */
  readonly namespace: string;
  /** The values of placeholders; absent if there are none. */
  readonly values?: PlaceholderValues;
  /** When the rollout was first seen, milliseconds since the epoch: a baseline may be queried at that time. */
  readonly startedAt?: number;
}

interface Question extends Urgency, CheckScope {
  readonly query: CheckQuery;
  readonly baseline?: Baseline | undefined;
}

export interface Round extends Disposable {
  /** Resolves with the answer, or with undefined if the round ended before: the check remains due. Never rejects. */
  ask(question: Question): Promise<CheckAnswer | undefined>;
}

/** Asks all these checks of one object. Resolves with the answers that came in time. */
export async function askChecks(
  due: readonly PlannedCheck[],
  scope: CheckScope,
  { ask }: Pick<Round, "ask">,
): Promise<Answers> {
  const answers = await Promise.all(due.map(async (check) => [check.name, await ask({ ...scope, ...check })] as const));
  return new Map(answers.flatMap(([name, answer]) => (answer ? [[name, answer] as const] : [])));
}

export interface Checker {
  /** Begins the round of a tick; dispose of it at its end. `stop` ends it early. */
  begin(stop: AbortSignal): Round;
}

interface CheckerTools {
  readonly cluster: Cluster;
  readonly prometheus: PrometheusClient;
  readonly clock: Pick<Clock, "now" | "sleep">;
}

/** Dead endpoints must not take the time of a run: a tick waits no longer for its checks. */
const ROUND_MS = 10_000;
/** No question is asked later: one that the round's end cuts off after 4.5 s counts as an error of its endpoint. */
const LAST_TURN_MS = 5500;

export function createChecker(tools: CheckerTools): Checker {
  /** A signal that fires with `abandoned`, or after so many milliseconds. */
  const fireAfter = (ms: number, abandoned: AbortSignal): AbortSignal => {
    const late = new AbortController();
    void tools.clock.sleep(ms, abandoned).then(() => late.abort());
    return firstOfSignals(abandoned, late.signal);
  };
  const turns = createTurns();
  return {
    begin(stop) {
      const ended = new AbortController();
      const abandoned = firstOfSignals(stop, ended.signal);
      const signals = { abandoned, late: fireAfter(LAST_TURN_MS, abandoned), signal: fireAfter(ROUND_MS, abandoned) };
      return {
        ask: (question) => askInTurn(question, { ...tools, ...signals, turns }).catch(() => undefined),
        [Symbol.dispose]: () => ended.abort("the round has ended"),
      };
    },
  };
}

interface RoundTools extends CheckerTools {
  readonly turns: Turns;
  /** Nobody waits for answers any more. */
  readonly abandoned: AbortSignal;
  /** No further turn begins. */
  readonly late: AbortSignal;
  /** Ends queries. */
  readonly signal: AbortSignal;
}

/** Rejects with `Cancelled` if its turn does not come. */
async function askInTurn(
  question: Question,
  { turns, abandoned, late, ...tools }: RoundTools,
): Promise<CheckAnswer | undefined> {
  using _turn = await turns.take(question, late);
  const answer = await ask(question, tools);
  // A query that nobody waits for says nothing about Prometheus.
  if (abandoned.aborted) return undefined;
  const isCutOff = tools.signal.aborted && answer.kind === "Error";
  return { ...(isCutOff ? CUT_OFF : answer), at: tools.clock.now() };
}

const CUT_OFF = queryError("Unreachable", `no answer in the ${ROUND_MS / 1000} s that a tick takes for its checks`);

type Asking = Pick<RoundTools, "cluster" | "prometheus" | "signal">;

/** The answer to a query, or to it and its baseline, which is asked of the same server. */
async function ask(question: Question, asking: Asking): Promise<QueryAnswer> {
  const { query, baseline, startedAt } = question;
  if (baseline === undefined) return await askOne(question, asking);
  const before = { ...question, query: { ...query, expr: baseline.expr } };
  const time = baseline.at === "BeforeRollout" ? startedAt : undefined;
  const [candidate, base] = await Promise.all([askOne(question, asking), askOne(before, asking, time)]);
  return compareAnswers(candidate, base, baseline);
}

async function askOne(
  { namespace, query, values }: Question,
  { cluster, prometheus, signal }: Asking,
  time?: number,
): Promise<QueryAnswer> {
  const filled = fillPlaceholders(query.expr, values);
  if (filled.expr === undefined) return queryError("BadQuery", filled.problem);
  const { secretRef, ...rest } = query;
  const target = { ...rest, expr: filled.expr, ...(time !== undefined && { time }) };
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
    return credentials.problem === undefined
      ? credentials
      : queryError("SecretUnusable", `Secret ${ref.name} ${credentials.problem}`);
  } catch (error) {
    if (hasCode(error, "NotFound")) return queryError("SecretUnusable", `Secret ${ref.name} does not exist`);
    if (hasCode(error, "Forbidden"))
      return queryError("SecretUnusable", `Secret ${ref.name} may not be read: the reconciler has no right to it`);
    return queryError("SecretUnusable", `Secret ${ref.name} could not be read: ${messageOf(error)}`);
  }
}
