/**
 * Answers the Evictions that name us as a responder (§19), beside the ticks and every 10 s at most:
 *
 *   list Evictions with our label -> ours to answer? -> ask the budget, which reserves the pod of a yes
 *                                 -> decide-answer.ts -> a wait: estimate its end -> write our entry, bound to the version that was read
 *
 * All state is in the Eviction: another process goes on where this one died. After a lost race the next visit decides
 * anew. A reservation whose answer could not be written is released: otherwise each visit would reserve again, and the
 * pod would count for ever. If this process dies first, it ends after 2 minutes. A namespace whose Evictions cannot be
 * listed does not block the others.
 */
import { hasCode } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { declaredEvictions } from "../../../infra/kubernetes/custom-resources.ts";
import { createOptionalKind } from "../../../infra/kubernetes/optional-kind.ts";
import { pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { logUnwritten, writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Clock } from "../../../infra/clock.ts";
import type { Log } from "../../../infra/log.ts";
import { once } from "../../../infra/once.ts";
import { visitEach } from "../../../infra/slots.ts";
import { readBudgetPod } from "../../budget/budget-pod.ts";
import type { Reserver } from "../../budget/act/reserve.ts";
import type { ReservationHandle } from "../../budget/reservation.ts";
import { LABELS } from "../../model/annotations.ts";
import { estimateEviction } from "../../plan/estimate-eviction.ts";
import { gatherWorld, type WorldSettings } from "../../plan/act/gather-world.ts";
import type { World } from "../../plan/world.ts";
import type { Recorder } from "../../report/act/recorder.ts";
import { readAll } from "../../snapshot/gather.ts";
import { type Answer, answerVerdict, answerWithoutVerdict, isAsked, isDue, statusOf } from "../decide-answer.ts";
import { type Eviction, OURS, readEviction, RESPONDER } from "../eviction.ts";
import { draftAnswer, draftInterrupted } from "../eviction-events.ts";

export interface AnswerOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Decides as the eviction webhook does; its reservations are provisional (`responderIdentity`). */
  readonly reserver: Pick<Reserver, "reserve" | "release">;
  /** "" for all. */
  readonly namespaces: readonly string[];
  readonly settings: WorldSettings;
  readonly metrics: { readonly evictionAnswered: (answer: Answer["answer"]) => void };
}

/** Resolves once the visit that it begins has ended; at once while one is under way or none is due. Never rejects. */
export type AnswerEvictions = (context: Context, tools: Pick<Recorder, "emitEvents">) => Promise<void>;

const EVERY_MS = 10_000;
/** Milliseconds until a missing kind is looked for again. */
const ABSENT_MS = 60_000;
const AT_A_TIME = 4;
/** Milliseconds: the limit of a list and of a verdict; a visit begins no further Eviction after this time. */
const CALL_MS = 5000;
const BEGIN_FOR_MS = 8000;

interface Visit extends AnswerOptions, Pick<Recorder, "emitEvents"> {
  readonly context: Context;
  readonly worldOf: (ref: { readonly namespace: string; readonly group: string }) => Promise<World>;
}

export function createAnswerEvictions(options: AnswerOptions): AnswerEvictions {
  const { clock, log, namespaces } = options;
  const definition = "the kind Eviction of lifecycle.k8s.io/v1alpha1 (Kubernetes 1.37, an alpha feature)";
  const kind = createOptionalKind({ capability: "answers to Evictions", definition, againAfterMs: ABSENT_MS }, options);
  let visitedAt = -Infinity;
  let isUnderWay = false;

  async function list(context: Context): Promise<readonly Eviction[]> {
    const call = { deadlineMs: CALL_MS, signal: context.stop };
    const lists = await kind.read(async () => {
      const reading = namespaces.map((namespace) => {
        const query = { ...(namespace && { namespace }), labelSelector: OURS };
        return readAll({ resource: declaredEvictions, query, read: readEviction }, context, call);
      });
      const settled = await Promise.allSettled(reading);
      const failed = settled.flatMap((one, i) =>
        one.status === "rejected" ? [{ namespace: namespaces[i], error: one.reason as unknown }] : [],
      );
      // The kind is missing in all namespaces alike; and if no namespace can be listed, nothing shows that it exists.
      const [first] = failed;
      const missing = failed.find(({ error }) => hasCode(error, "NotFound"));
      if (missing) throw missing.error;
      if (first && failed.length === namespaces.length) throw first.error;
      for (const one of failed) logUnwritten(log, "the Evictions of a namespace could not be listed", one);
      return settled.flatMap((one) => (one.status === "fulfilled" ? one.value.items : []));
    });
    return (lists ?? []).filter((one) => one !== undefined);
  }

  async function visit(context: Context, emitEvents: Recorder["emitEvents"]): Promise<void> {
    const all = await list(context);
    emitEvents(all.flatMap(draftInterrupted));
    const startedAt = clock.monotonic();
    const worldOf = once(
      (ref: { readonly namespace: string; readonly group: string }) =>
        gatherWorld(ref, { ...context, clock }, () => Promise.resolve(options.settings)),
      ({ namespace, group }) => `${namespace}/${group}`,
    );
    // Those that have waited longest for an answer come first: a visit may not reach all.
    const asked = all.filter(isAsked).toSorted((a, b) => compare(a.own.heartbeatTime, b.own.heartbeatTime));
    await visitEach(asked, { atOnce: AT_A_TIME, signal: context.stop }, async (eviction) => {
      if (clock.monotonic() - startedAt >= BEGIN_FOR_MS) return;
      await answer(eviction, { ...options, context, emitEvents, worldOf }).catch((error: unknown) =>
        logUnwritten(log, "an Eviction could not be answered, and is tried again", { ...named(eviction), error }),
      );
    });
  }

  return async (context, { emitEvents }) => {
    if (isUnderWay || clock.monotonic() - visitedAt < EVERY_MS) return;
    isUnderWay = true;
    visitedAt = clock.monotonic();
    try {
      await visit(context, emitEvents);
    } catch (error) {
      logUnwritten(log, "the Evictions could not be listed", { error });
    } finally {
      isUnderWay = false;
    }
  };
}

/** Without a heartbeat first. Times of one format sort as text. */
const compare = (a = "", b = ""): number => (a < b ? -1 : a > b ? 1 : 0);

const named = ({ namespace, name, pod }: Eviction) => ({ namespace, eviction: name, pod: pod?.name });

async function answer(eviction: Eviction, visit: Visit): Promise<void> {
  const { clock, log, context, emitEvents, metrics } = visit;
  const { found, handles } = await decide(eviction, visit);
  if (!found || !isDue(eviction, found, clock.now())) return;
  const given = found.answer === "wait" ? { ...found, expectedAt: await estimate(eviction, visit) } : found;
  const own = statusOf(eviction, given, clock.now());
  const responders = eviction.responders.map((one) => (one.name === RESPONDER ? own : one));
  const change = { object: eviction, before: { responders: eviction.responders }, after: { responders } };
  try {
    await writeStatus<{ metadata: object }, object>(declaredEvictions, { ...change, by: "patch" }, context);
  } catch (error) {
    await release(handles, visit);
    throw error;
  }
  metrics.evictionAnswered(given.answer);
  emitEvents(draftAnswer(eviction, given));
  const { message } = given;
  log.info(given.answer === "wait" ? "an Eviction waits" : "an Eviction is handed on", { ...named(eviction), message });
}

interface Decided {
  /** Undefined without a verdict. */
  readonly found: Answer | undefined;
  /** The reservations for a yes. */
  readonly handles: readonly ReservationHandle[];
}

/**
 * The verdict of the eviction webhook, by the same function; a yes is reserved, so that it still holds when the
 * webhook asks.
 */
async function decide(eviction: Eviction, visit: Visit): Promise<Decided> {
  const { namespace, pod, name } = eviction;
  if (!pod) return { found: answerWithoutVerdict(eviction), handles: [] };
  const { clock, reserver, log, context } = visit;
  const bounds = context.fence.write();
  const result = await reserver.reserve({
    namespace,
    ...pod,
    dryRun: false,
    deadlineAt: clock.monotonic() + Math.min(CALL_MS, bounds.deadlineMs ?? CALL_MS),
    signal: context.stop,
  });
  const found = answerVerdict(result);
  if (!found && result.outcome === "undecided" && !hasCode(result.cause, "Cancelled"))
    log.warn("an Eviction has no verdict, and is asked about again", {
      namespace,
      eviction: name,
      pod: pod.name,
      error: result.cause,
    });
  return { found, handles: result.outcome === "allowed" ? result.handles : [] };
}

/**
 * Also after a write that may have taken effect: the webhook judges the eviction anew. Never rejects: a reservation
 * that cannot be released, as the Lease is lost, expires.
 */
async function release(handles: readonly ReservationHandle[], { context, reserver, log }: Visit): Promise<void> {
  try {
    const { deadlineMs = CALL_MS, ...bounds } = context.fence.write();
    const call = { ...bounds, deadlineMs: Math.min(CALL_MS, deadlineMs) };
    await Promise.all(handles.map((handle) => reserver.release(handle, call)));
  } catch (error) {
    logUnwritten(log, "a reservation could not be released, and expires", { error });
  }
}

/** Undefined without an honest estimate, or if its inputs cannot be read: the answer does not wait for it. */
async function estimate({ namespace, pod }: Eviction, visit: Visit): Promise<number | undefined> {
  const { context, log, worldOf } = visit;
  const { cluster, stop: signal } = context;
  if (!pod) return undefined;
  const call = { deadlineMs: CALL_MS, signal };
  try {
    const { controller } = readBudgetPod(await cluster.get(pods, { namespace, name: pod.name }, call));
    if (controller?.kind !== "StatefulSet") return undefined;
    const owner = await cluster.get(statefulSets, { namespace, name: controller.name }, call);
    const group = owner.metadata?.labels?.[LABELS.rolloutGroup];
    return group === undefined ? undefined : estimateEviction(await worldOf({ namespace, group }), pod);
  } catch (error) {
    logUnwritten(log, "when an Eviction may go on could not be estimated", { namespace, pod: pod.name, error });
    return undefined;
  }
}
