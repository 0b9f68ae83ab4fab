/**
 * Phased rollouts on the embedded cluster: a StatefulSet `db`, its PhasedRollout `guard`, and a Prometheus that answers
 * as the test says.
 */
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { type StatefulSet, statefulSets } from "../../../../infra/kubernetes/resources.ts";
import { createMetrics, type Metrics } from "../../../../infra/metrics/metrics.ts";
import type { QueryAnswer } from "../../../../infra/prometheus/answer.ts";
import type { PrometheusQuery } from "../../../../infra/prometheus/act/client.ts";
import { createChecker } from "../../../../reconciler/checks/act/ask-prometheus.ts";
import {
  createPhasedTick,
  type PhasedInput,
  type PhasedResult,
  type PhasedTools,
} from "../../../../reconciler/phased/act/phased-tick.ts";
import type { Draft as EventDraft } from "../../../../reconciler/report/events.ts";
import type { Draft, KubeObject } from "../../../emulator/objects.ts";
import { setStage, type Stage } from "../../stage.ts";
import { add, make } from "../../../builders.ts";

const CRD = new URL("../../../../infra/manifests/crds/phasedrollouts.yaml", import.meta.url);
export const PHASED = "phasedrollouts.sts.plus";
export const SETS = "statefulsets.apps";

export const QUIET: QueryAnswer = { kind: "Vector", samples: 0, warnings: [] };
export const FIRING: QueryAnswer = { kind: "Vector", samples: 1, sample: "up 0", warnings: [] };

export interface PhasedStage extends Stage {
  /** The calls through the tick's connection. */
  readonly calls: string[];
  readonly events: EventDraft[];
  readonly logged: string[];
  readonly asked: PrometheusQuery[];
  readonly metrics: Metrics;
  answer: QueryAnswer | (() => Promise<QueryAnswer>);
  /** One tick of a process that remembers the earlier ones. */
  tick(more?: Partial<PhasedInput> & Partial<PhasedTools>): Promise<PhasedResult>;
  /** Ticks every 5 s of the cluster's time, or sooner if the tick says so. */
  tickFor(seconds: number): Promise<void>;
  set(name?: string): KubeObject & Whole;
  rollout(name?: string): KubeObject & Whole;
  /** `<pod>@<image>` in order. */
  pods(): string[];
}

interface Whole {
  readonly spec: {
    readonly replicas: number;
    readonly updateStrategy: { readonly rollingUpdate?: { readonly partition?: number } };
  };
  readonly status: {
    readonly phase?: string;
    readonly rollingPodStatus?: { readonly status: string; readonly partition: number };
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly message: string;
      readonly observedGeneration: number;
    }[];
  };
}

export function definition(): Draft {
  return parse(readFileSync(CRD, "utf8")) as Draft;
}

export async function setPhasedStage(given: { readonly crd?: Draft | undefined } = {}): Promise<PhasedStage> {
  const stage = await setStage();
  const crd = "crd" in given ? given.crd : definition();
  if (crd) {
    stage.emulator.store.create("customresourcedefinitions.apiextensions.k8s.io", crd);
    await stage.time.advance(1000);
  }
  return attach(stage);
}

function attach(stage: Stage): PhasedStage {
  const { store } = stage.emulator;
  const { cluster, calls } = stage.connect();
  const metrics = createMetrics();
  const events: EventDraft[] = [];
  const logged: string[] = [];
  const asked: PrometheusQuery[] = [];
  const note = (level: string) => (text: string, fields?: object) =>
    void logged.push(`${level} ${text}${fields && "error" in fields ? ` ${String(fields.error)}` : ""}`);
  const log = {
    debug: note("debug"),
    info: note("info"),
    warn: note("warn"),
    error: note("error"),
  } as PhasedTools["log"];
  const mayDisrupt: PhasedTools["mayDisrupt"] = async () => undefined;
  const tools: PhasedTools = { clock: stage.clock, log, successWhen: "NoData", mayDisrupt };
  let run = createPhasedTick(tools);
  const read = (resource: string, name: string): KubeObject & Whole => {
    const found = store.get(resource, "default", name);
    if (!found) throw new Error(`there is no ${resource} ${name}`);
    return found as KubeObject & Whole;
  };
  const self: PhasedStage = {
    ...stage,
    calls,
    events,
    logged,
    asked,
    metrics,
    answer: QUIET,
    async tick(more = {}) {
      if ("mayDisrupt" in more || "successWhen" in more) run = createPhasedTick({ ...tools, ...more });
      const prometheus = {
        query: async (query: PrometheusQuery) => {
          asked.push(query);
          return typeof self.answer === "function" ? self.answer() : self.answer;
        },
      };
      const stop = new AbortController().signal;
      using round = createChecker({ cluster, prometheus, clock: stage.clock }).begin(stop);
      const emitEvents = (drafts: readonly EventDraft[]): void => void events.push(...drafts);
      return await run({
        cluster,
        clock: stage.clock,
        fence: { write: () => ({}) },
        namespaces: ["default"],
        round,
        emitEvents,
        stop,
        ...more,
      });
    },
    async tickFor(seconds) {
      const end = stage.clock.now() + seconds * 1000;
      while (stage.clock.now() < end) {
        const { acted, dueAt = Infinity } = await self.tick();
        await stage.time.advance(acted ? 500 : Math.max(500, Math.min(5000, dueAt - stage.clock.now())));
      }
    },
    set: (name = "db") => read(SETS, name),
    rollout: (name = "guard") => read(PHASED, name),
    pods: () =>
      store
        .list("pods", "default")
        .map(
          (pod) =>
            `${pod.metadata.name}@${(pod as unknown as { spec: { containers: { image: string }[] } }).spec.containers[0]?.image}`,
        )
        .toSorted(),
  };
  return self;
}

export interface SetChoices {
  readonly name?: string;
  readonly replicas?: number;
  readonly policy?: "OrderedReady" | "Parallel";
  readonly partition?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly template?: Readonly<Record<string, string>>;
}

/** Makes the StatefulSet, or gives it another template, through the API: it adds its defaults to both alike. */
export async function applySet(stage: Stage, image: string, { name = "db", ...more }: SetChoices = {}): Promise<void> {
  const { cluster } = stage.connect();
  const earlier = stage.emulator.store.get(SETS, "default", name) as (KubeObject & Whole) | undefined;
  const {
    replicas = earlier?.spec.replicas ?? 3,
    policy = "OrderedReady",
    partition,
    annotations = {},
    template,
  } = more;
  const pods = {
    metadata: { labels: { name, app: "cache" }, ...(template && { annotations: template }) },
    spec: { containers: [{ name: "c", image }] },
  };
  if (earlier) {
    const metadata = { labels: { name, app: "cache" }, annotations: template ?? null };
    await cluster.patch(statefulSets, {
      namespace: "default",
      name,
      type: "merge",
      body: { spec: { replicas, template: { ...pods, metadata } } },
    });
    return;
  }
  const spec = {
    serviceName: name,
    replicas,
    podManagementPolicy: policy,
    revisionHistoryLimit: 10,
    updateStrategy: { type: "RollingUpdate", ...(partition !== undefined && { rollingUpdate: { partition } }) },
    selector: { matchLabels: { name } },
    template: pods,
  };
  const body = make("StatefulSet", name, { annotations, spec }) as unknown as StatefulSet;
  await cluster.create(statefulSets, { namespace: "default", body });
}

/** Makes the PhasedRollout. Its checks take 10 s each, two in a row release a pod. */
export function createRollout(
  { emulator: { store } }: Stage,
  {
    name = "guard",
    spec = {},
    check = {},
    query = {},
  }: { name?: string; spec?: object; check?: object; query?: object } = {},
): void {
  const whole = {
    targetRef: "db",
    check: {
      initialDelaySeconds: 10,
      periodSeconds: 10,
      successThreshold: 2,
      query: { expr: "up == 0", url: "http://prom", ...query },
      ...check,
    },
    ...spec,
  };
  add(store, "PhasedRollout", name, { spec: whole });
}

/** Changes the stored object as a user does. */
export function edit(
  { emulator: { store } }: Stage,
  resource: string,
  name: string,
  change: (object: KubeObject) => KubeObject,
): void {
  const found = store.get(resource, "default", name);
  if (!found) throw new Error(`there is no ${resource} ${name}`);
  store.update(resource, change(structuredClone(found)));
}
