/**
 * Disruption budgets on the embedded cluster: with the shipped CRD, or with the original's CRD, which has no status.
 */
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { createLog } from "../../infra/log.ts";
import { createMetrics, type Metrics } from "../../infra/metrics/metrics.ts";
import { composeBudgets } from "../../reconciler/budget/act/compose.ts";
import type { Reserver } from "../../reconciler/budget/act/reserve.ts";
import type { ReservationHandle } from "../../reconciler/budget/reservation.ts";
import type { DisruptionResult } from "../../reconciler/budget/verdict.ts";
import { amend } from "../builders/objects.ts";
import type { Draft } from "../emulator/objects.ts";
import { deploy, setStage, type Stage } from "./stage.ts";

export const BUDGETS = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
const CRD = new URL("../../infra/manifests/crds/zoneawarepoddisruptionbudgets.yaml", import.meta.url);

interface Definition {
  spec: { versions: { schema: { openAPIV3Schema: { properties: Record<string, unknown> } } }[] };
}

/** The definition; without a status in its schema if `withStatus` is false. */
export function budgetDefinition(withStatus = true): Draft {
  const definition = parse(readFileSync(CRD, "utf8")) as Draft & Definition;
  if (!withStatus)
    for (const { schema } of definition.spec.versions) delete schema.openAPIV3Schema.properties["status"];
  return definition;
}

/** Three zones of three pods, all ready, that a budget may select by `rollout-group`. */
export async function setBudgetStage({
  crd = "ours",
}: { readonly crd?: "ours" | "upstream" | "none" } = {}): Promise<Stage> {
  const stage = await setStage();
  if (crd !== "none") {
    stage.emulator.store.create("customresourcedefinitions.apiextensions.k8s.io", budgetDefinition(crd === "ours"));
    await stage.time.advance(1000);
  }
  deploy(stage, "x:1", { podLabels: { "rollout-group": "ingester" } });
  await stage.time.advance(2000);
  return stage;
}

/** Writes a budget, or another spec into it. */
export function writeBudget(stage: Stage, spec: object = {}, name = "ingester"): void {
  const { store } = stage.emulator;
  const whole = { selector: { matchLabels: { "rollout-group": "ingester" } }, ...spec };
  const earlier = store.get(BUDGETS, "default", name);
  if (earlier) store.update(BUDGETS, { ...earlier, spec: whole });
  else
    store.create(BUDGETS, {
      apiVersion: "rollout-operator.grafana.com/v1",
      kind: "ZoneAwarePodDisruptionBudget",
      metadata: { name, namespace: "default" },
      spec: whole,
      // Something was reserved before: otherwise its Lease is read as well.
      ...(keepsStatus(stage) && { status: { disruptedPods: {} } }),
    });
}

function keepsStatus({ emulator: { store } }: Stage): boolean {
  const found = store.get("customresourcedefinitions.apiextensions.k8s.io", undefined, BUDGETS) as
    | Definition
    | undefined;
  return found?.spec.versions.some(({ schema }) => "status" in schema.openAPIV3Schema.properties) ?? false;
}

/** The reservations in the budget's status, by pod. */
export function reserved(
  stage: Stage,
  name = "ingester",
  namespace = "default",
): Record<string, { uid: string; time: string; by: string }> {
  const status = stage.emulator.store.get(BUDGETS, namespace, name)?.["status"] as
    | { disruptedPods?: object }
    | undefined;
  return { ...status?.disruptedPods };
}

/** Reserves a pod like an eviction that another process has allowed; undefined ends all reservations. */
export function reserve({ emulator: { store }, time }: Stage, pod?: string): void {
  const uid = pod === undefined ? undefined : store.get("pods", "default", pod)?.metadata.uid;
  const at = new Date(time.now()).toISOString();
  const reservation = { kind: "eviction", uid: uid ?? "", pinned: true, time: at, by: "elsewhere" };
  amend(store, "ZoneAwarePodDisruptionBudget", "ingester", {
    status: { disruptedPods: pod === undefined ? {} : { [pod]: reservation } },
  });
}

/** The reservations that may be released. */
export const handlesOf = (result: DisruptionResult): readonly ReservationHandle[] =>
  result.outcome === "allowed" ? result.handles : [];

interface DisruptionOptions {
  /** `default` unless given. */
  readonly namespace?: string;
  readonly dryRun?: boolean;
  readonly rollout?: { readonly maxUnavailable: number };
  readonly deadlineMs?: number;
  readonly uid?: string;
  readonly unpinned?: boolean;
}

interface Process {
  readonly reserver: Reserver;
  readonly calls: string[];
  /** The number of times that it waited for the cluster. */
  readonly roundTrips: () => number;
  readonly lines: string[];
  readonly metrics: Metrics;
  /**
   * Requests the disruption of a pod of the group; resolves with the verdict's reason, or with its message if the
   * budget is spent.
   */
  requestDisruption(pod: string, more?: DisruptionOptions): Promise<string>;
}

/** A process that requests disruptions. Its pauses take no time, but move its clock. */
export function startProcess(stage: Stage, by = "one"): Process {
  const { cluster, calls } = stage.connect();
  const lines: string[] = [];
  const metrics = createMetrics();
  let slept = 0;
  const clock = {
    now: stage.clock.now,
    monotonic: () => stage.clock.monotonic() + slept,
    sleep: async (ms: number) => void (slept += Math.max(1, ms)),
  };
  const log = createLog({ level: "info", write: (line) => void lines.push(line), now: () => new Date(clock.now()) });
  const counted = countRoundTrips(cluster);
  const { reserver } = composeBudgets({ cluster: counted.cluster, clock, log, identity: by });
  return {
    reserver,
    calls,
    roundTrips: counted.roundTrips,
    lines,
    metrics,
    async requestDisruption(pod, { deadlineMs = 5000, dryRun = false, ...more } = {}) {
      const deadlineAt = clock.monotonic() + deadlineMs;
      const request = { namespace: "default", name: `ingester-${pod}`, dryRun, deadlineAt, ...more };
      const { verdict } = await reserver.reserve(request);
      return verdict.reason === "BudgetSpent" ? verdict.message : verdict.reason;
    },
  };
}

/** Calls that overlap are one round trip. */
function countRoundTrips(cluster: Cluster): { cluster: Cluster; roundTrips: () => number } {
  let [inFlight, trips] = [0, 0];
  const begin = (): void => void (inFlight++ === 0 && trips++);
  const end = (): void => void inFlight--;
  const counted: Cluster = {
    ...cluster,
    async *list(...args) {
      begin();
      yield* cluster.list(...args);
      end();
    },
    get: (...args) => (begin(), cluster.get(...args).finally(end)),
    replace: (...args) => (begin(), cluster.replace(...args).finally(end)),
  };
  return { cluster: counted, roundTrips: () => trips };
}
