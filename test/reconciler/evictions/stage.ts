/** Evictions on the embedded cluster, with the kind as Kubernetes publishes it, and a reconciler that answers them. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { createFreshness } from "../../../infra/kubernetes/freshness.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { composeBudgets } from "../../../reconciler/budget/act/compose.ts";
import { evictionIdentity, responderIdentity } from "../../../reconciler/budget/reservation.ts";
import { createAnswerEvictions } from "../../../reconciler/evictions/act/answer-evictions.ts";
import { RESPONDER } from "../../../reconciler/evictions/eviction.ts";
import type { Draft as EventDraft } from "../../../reconciler/report/events.ts";
import type { Draft } from "../../emulator/objects.ts";
import { keepingLog } from "../../functions/stage.ts";
import { budgetDefinition, startProcess, writeBudget } from "../budget-stage.ts";
import { deploy, setStage, type Stage } from "../stage.ts";
import { type Entry, EVICTION_DEFINITION, EVICTIONS, type EvictionStatus, refusals } from "./definition.ts";
import { advanceEviction, evictionOf } from "./play.ts";

export const DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io";
/** The reconciler looks so often. */
export const EVERY_MS = 10_000;
/** A pod takes so long to become ready. */
export const START_MS = 30_000;

export interface Play {
  readonly stage: Stage;
  /** The pod's UID. */
  readonly uid: (pod: string) => string;
  /** Asks for the eviction of a pod. */
  readonly evict: (pod: string, responders?: readonly string[]) => void;
  readonly statusOf: (pod: string) => EvictionStatus;
  readonly own: (pod: string) => Entry;
  /** Passes of the controller over all Evictions. */
  readonly control: () => void;
  readonly change: (pod: string, change: (status: EvictionStatus) => EvictionStatus) => void;
}

/** Three zones of three ready pods under a budget. */
export async function play(t: TestContext, { withKind = true } = {}): Promise<Play> {
  const stage = await setStage();
  t.after(() => stage.close());
  const { store } = stage.emulator;
  store.create(DEFINITIONS, budgetDefinition());
  if (withKind) store.create(DEFINITIONS, EVICTION_DEFINITION);
  await stage.time.advance(1000);
  deploy(stage, "x:1", {
    podLabels: { "rollout-group": "ingester" },
    podAnnotations: { "sim/ready-after-ms": String(START_MS) },
  });
  writeBudget(stage);
  await stage.time.advance(START_MS + 5000);
  const uid = (pod: string): string => store.get("pods", "default", pod)?.metadata.uid ?? "";
  const find = (pod: string): Draft =>
    store.list(EVICTIONS).find(({ metadata }) => metadata.name?.startsWith(`${pod}-`)) ?? assert.fail(pod);
  const statusOf = (pod: string): EvictionStatus => find(pod)["status"] as EvictionStatus;
  const put = (object: Draft, status: EvictionStatus): void => {
    if (status !== object["status"]) store.update(EVICTIONS, { ...object, status });
  };
  return {
    stage,
    uid,
    evict: (name, responders) =>
      void store.create(EVICTIONS, evictionOf({ name, uid: uid(name) }, stage.clock.now(), responders)),
    statusOf,
    own: (pod) => statusOf(pod).responders?.find(({ name }) => name === RESPONDER) ?? assert.fail(pod),
    control: () => {
      for (const object of store.list(EVICTIONS)) {
        const { pod } = (object["spec"] as { target: { pod: { name: string; uid: string } } }).target;
        put(object, advanceEviction(object["status"] as EvictionStatus, stage.clock.now(), uid(pod.name) !== pod.uid));
      }
    },
    change: (pod, change) => put(find(pod), change(statusOf(pod))),
  };
}

/** A reconciler that answers; each write of it is held to the rules of the API. */
export function answerer(
  { stage }: Play,
  { by = "one", namespaces = ["default"], wrap = (cluster: Cluster): Cluster => cluster } = {},
) {
  const { cluster: direct, calls } = stage.connect();
  const { log, entries } = keepingLog();
  const { clock } = stage;
  const checked: Cluster = {
    ...direct,
    change: async (resource, patch, call) => {
      if (resource.plural !== "evictions") return await direct.change(resource, patch, call);
      const before = (await direct.get(resource, { namespace: "default", name: patch.name })) as Draft;
      const after = await direct.change(resource, patch, call);
      const [was, is] = [before, after as Draft].map((one) => one["status"] as EvictionStatus);
      assert.deepEqual(refusals(was ?? {}, is ?? {}, clock.now()), []);
      return after;
    },
  };
  const cluster = wrap(checked);
  const metrics = createMetrics();
  const events: EventDraft[] = [];
  const identity = responderIdentity(by);
  const { reserver } = composeBudgets({ cluster, clock, log, metrics: metrics.budgets, identity });
  const settings = { clusterDomain: "cluster.local.", zoneTracker: "tracker" };
  const visit = createAnswerEvictions({ clock, log, metrics, reserver, namespaces, settings });
  const context = {
    cluster,
    clock,
    fence: { write: () => ({}) },
    freshness: createFreshness(clock, log),
    stop: new AbortController().signal,
  };
  return {
    calls,
    entries,
    events,
    metrics,
    visit: () => visit(context, { emitEvents: (drafts) => void events.push(...drafts) }),
  };
}

/** As the default responder does, for which our webhook is asked: here by the function that it asks. */
export const isAllowedByWebhook = async (stage: Stage, pod: string, uid: string): Promise<string> =>
  await startProcess(stage, evictionIdentity("webhook")).requestDisruption(pod.replace("ingester-", ""), { uid });
