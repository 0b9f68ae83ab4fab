/**
 * Two zones of a group with 3 pods each, as values: the reconciler is to shrink zone a to 2 replicas, or to roll it out
 * once it was deployed; a user shrinks zone b through the webhook prepare-downscale. Each list of StatefulSets, each
 * call about the downscale Lease and each stored write is a step of the play.
 */
import assert from "node:assert/strict";
import type { Answer } from "../../../functions/http/webhook.ts";
import type { Clock } from "../../../infra/clock.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Lease, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { Outcome } from "../../../reconciler/model/outcome.ts";
import { createPodNotifier } from "../../../reconciler/scaling/act/pod-notifier.ts";
import { tick } from "../../../reconciler/run/tick.ts";
import { keepingLog, reviewOf, startPrepareDownscale } from "../../functions/stage.ts";
import { podObjects, selects, statefulSetObject, type ZoneTraits } from "../builders.ts";
import { MIRROR, NO_WRITE_BACK } from "../scaling/mirror-stage.ts";
import { noChecks, noMaintenance, noPhases, noPods, scalingOf } from "../stage.ts";
import type { Stepper } from "./stepper.ts";

export const A = "ingester-zone-a";
export const B = "ingester-zone-b";
const START = Date.parse("2026-01-01T00:00:00Z");
/** Milliseconds of a call without a deadline, of a request of a webhook, and of a user's request. */
const CALL_MS = 10_000;
const WEBHOOK_MS = 10_000;
const REQUEST_MS = 60_000;
const TYPE = { apiVersion: "apps/v1", kind: "StatefulSet" };
const JUDGED = { "grafana.com/prepare-downscale": "true" };
const ANNOTATIONS = {
  "grafana.com/prepare-downscale-http-path": "prepare",
  "grafana.com/prepare-downscale-http-port": "80",
};

export interface ShrinkOptions {
  readonly stepper: Stepper;
  /** Whether zone a carries the label prepare-downscale as well. */
  readonly labelled?: boolean;
  /** Whether zone a keeps its replicas: the reconciler rolls it out after `deployA`. */
  readonly keepsReplicas?: boolean;
  /** False for a cluster whose webhook does not judge the reconciler's writes. */
  readonly judgesReconciler?: boolean;
  /** False for an API server that ignores the versions of Leases. */
  readonly checksVersions?: boolean;
}

interface Change {
  readonly name: string;
  readonly replicas: number;
  readonly version?: string | undefined;
  /** Milliseconds until the request is given up. */
  readonly withinMs: number;
}

export function createShrinkWorld(options: ShrinkOptions) {
  const { stepper, labelled = false, keepsReplicas = false, judgesReconciler = true, checksVersions = true } = options;
  let now = START;
  let version = 1;
  let lease: Lease | undefined;
  const traits = (name: string, labels: Record<string, string>, more: object): ZoneTraits => ({
    name,
    labels,
    annotations: { ...ANNOTATIONS, ...more },
  });
  const traitsOfA = traits(A, labelled ? JUDGED : {}, keepsReplicas ? {} : { ...MIRROR, ...NO_WRITE_BACK });
  const zones = new Map<string, StatefulSet>(
    [traitsOfA, traits(B, JUDGED, {})].map((one) => [one.name ?? "", { ...TYPE, ...statefulSetObject(one) }]),
  );
  const shrunk: string[] = [];
  const deleted = new Set<string>();
  // The pause after a lost race is over at once; the wait for a deadline never ends.
  const sleep = (ms: number): Promise<void> => (ms < 1000 ? Promise.resolve() : new Promise(() => {}));
  const clock: Clock = { now: () => now, monotonic: () => now, sleep };
  const { log } = keepingLog();

  async function call<T>(label: string, effect: () => T, deadlineMs = CALL_MS): Promise<T> {
    const begunAt = now;
    await stepper.step(label, "process");
    if (now - begunAt >= deadlineMs) throw new RolloutError("Timeout", label);
    return structuredClone(effect());
  }

  function writeLease(body: Lease): Lease {
    if (checksVersions && lease?.metadata?.resourceVersion !== body.metadata?.resourceVersion)
      throw new RolloutError("Conflict", "lease");
    lease = { ...structuredClone(body), metadata: { ...body.metadata, resourceVersion: String(++version) } };
    return lease;
  }

  const podsOf = (name: string) => podObjects({ name }).filter(({ metadata }) => !deleted.has(metadata?.name ?? ""));

  function confirm(name: string, { metadata }: { readonly metadata: { readonly resourceVersion: string } }): string {
    if (metadata.resourceVersion !== zoneNamed(name).metadata?.resourceVersion)
      throw new RolloutError("Conflict", name);
    return metadata.resourceVersion;
  }

  function remove(pod: string): string {
    deleted.add(pod);
    changeA({}, { readyReplicas: 2 });
    return String(version);
  }

  function changeA(metadata: object, status: object): void {
    const found = zoneNamed(A);
    const next = { ...found.metadata, ...metadata, resourceVersion: String(++version) };
    zones.set(A, {
      ...found,
      metadata: next,
      status: { ...found.status, ...status } as NonNullable<StatefulSet["status"]>,
    });
  }

  function get(plural: string): Lease {
    if (plural !== "leases" || !lease) throw new RolloutError("NotFound", plural);
    return lease;
  }

  function connect(isReconciler: boolean): Cluster {
    return {
      async *list({ plural }, { labelSelector = "" }) {
        const resourceVersion = String(version);
        if (plural !== "statefulsets")
          yield { items: [...zones.keys()].flatMap(podsOf).filter(selects(labelSelector)) as never[], resourceVersion };
        else yield { items: (await call("list", () => [...zones.values()])) as never[], resourceVersion };
      },
      get: async ({ plural }, _ref, options) => {
        if (plural === "replicatemplates") return { spec: { replicas: 2 }, status: { replicas: 2 } } as never;
        if (plural === "configmaps") throw new RolloutError("NotFound", "no tracker");
        return (await call("get lease", () => get(plural), options?.deadlineMs)) as never;
      },
      create: async (_, { body }, options) =>
        (await call("create lease", () => writeLease(body as Lease), options?.deadlineMs)) as never,
      replace: async (_, { body }, options) =>
        (await call("replace lease", () => writeLease(body as Lease), options?.deadlineMs)) as never,
      change: async (_, { name, body }, options) => {
        const { metadata, spec } = body as { metadata: { resourceVersion: string }; spec: { replicas: number } };
        const isJudged = labelled && (judgesReconciler || !isReconciler);
        const change = {
          name,
          replicas: spec.replicas,
          version: metadata.resourceVersion,
          withinMs: options?.deadlineMs ?? CALL_MS,
        };
        return (await request(change, isJudged)).stored as never;
      },
      patch: (_, { name, body }, options) =>
        call(
          `check ${name}`,
          () => confirm(name, body as { metadata: { resourceVersion: string } }),
          options?.deadlineMs,
        ),
      remove: (_, { name }, options) => call(`delete ${name}`, () => remove(name), options?.deadlineMs),
      discover: () => Promise.resolve([{ group: "g", version: "v1", plural: "replicatemplates" }]),
      watch: () => Promise.reject(new RolloutError("Expired", "no watches here")),
    };
  }

  const webhook = startPrepareDownscale({ cluster: connect(false), clock });

  const zoneNamed = (name: string): StatefulSet => zones.get(name) ?? assert.fail(name);

  /**
   * What the API server does with a change of replicas: it asks the webhook if there is one, and stores the change in
   * time.
   */
  async function request({ name, replicas, version: expected, withinMs }: Change, isJudged: boolean) {
    const begunAt = now;
    const old = zoneNamed(name);
    const answer = isJudged ? await judge(old, replicas) : undefined;
    if (answer?.allowed === false) throw new RolloutError("Forbidden", answer.message ?? "");
    await stepper.step(`store ${name}`, "apiserver");
    if (now - begunAt >= withinMs) throw new RolloutError("Timeout", name);
    const { metadata = {}, spec } = zoneNamed(name);
    if (metadata.resourceVersion !== (expected ?? old.metadata?.resourceVersion))
      throw new RolloutError("Conflict", name);
    const next = { ...metadata, resourceVersion: String(++version), generation: (metadata.generation ?? 0) + 1 };
    const stored = { ...zoneNamed(name), metadata: next, spec: { ...spec, replicas } } as StatefulSet;
    zones.set(name, stored);
    shrunk.push(name);
    return { stored, answer };
  }

  async function judge(zone: StatefulSet, to: number): Promise<Answer> {
    const begunAt = now;
    const review = reviewOf(zone, to, { namespace: "test", uid: `${zone.metadata?.name} at ${now}` });
    const context = { path: "", signal: new AbortController().signal, deadlineAt: now + WEBHOOK_MS, log };
    const answer = await webhook.handle(review, context);
    return now - begunAt < WEBHOOK_MS ? answer : { allowed: false, message: "the webhook did not answer in time" };
  }

  return {
    /** The zones that were scaled down, in order. */
    shrunk,
    /** The pods that were deleted. */
    deleted,
    /** A user gives zone a another template, which the StatefulSet controller observes at once. */
    async deployA(): Promise<void> {
      await stepper.step("deploy", "user");
      changeA({ generation: 2 }, { observedGeneration: 2, updatedReplicas: 0, updateRevision: "next" });
    },
    /** A user scales zone b down; resolves with the message of a refusal. */
    shrinkB: async (): Promise<string | undefined> =>
      await request({ name: B, replicas: 2, withinMs: REQUEST_MS }, true).then(
        () => undefined,
        (error: RolloutError) => error.message,
      ),
    /** One tick of the reconciler. */
    reconcile: async (): Promise<Outcome | undefined> => {
      const cluster = connect(true);
      const signal = new AbortController().signal;
      const result = await tick({
        context: {
          cluster,
          fence: { write: () => ({ deadlineMs: CALL_MS }) },
          clock,
          stop: signal,
        },
        namespaces: ["test"],
        takeResync: () => false,
        scaling: {
          ...scalingOf(cluster),
          notifier: createPodNotifier({ http: noPods, clock, onNote: () => {}, signal }),
        },
        budgets: { mayDisrupt: async () => undefined, maintenance: noMaintenance },
        report: { emitEvents: () => {}, timesSuperseded: () => 0, onOutcome: () => {} },
        checking: noChecks,
        phased: noPhases,
      }).catch(() => undefined);
      return result?.outcomes[0];
    },
    elapse: (ms: number): void => void (now += ms),
  };
}
