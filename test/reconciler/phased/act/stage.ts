/**
 * Phased rollouts on the embedded cluster: a StatefulSet `db`, its PhasedRollout `guard`, and a Prometheus that answers
 * as the test says.
 */
import { type StatefulSet, statefulSets } from "../../../../infra/kubernetes/resources.ts";
import type { QueryAnswer } from "../../../../infra/prometheus/answer.ts";
import type { PrometheusQuery } from "../../../../infra/prometheus/act/client.ts";
import { createChecker } from "../../../../reconciler/checks/act/ask-prometheus.ts";
import {
  createPhasedTick,
  type PhasedInput,
  type PhasedResult,
  type PhasedTools,
} from "../../../../reconciler/phased/act/phased-tick.ts";
import type { PhasedStatus } from "../adapter.ts";
import type { Draft as EventDraft } from "../../../../reconciler/report/events.ts";
import { define } from "../../../demo/definitions.ts";
import type { Pod } from "../../../emulator/controllers/objects.ts";
import type { KubeObject } from "../../../emulator/objects.ts";
import { imageOf } from "../../small-cluster.ts";
import { setStage, type Stage } from "../../stage.ts";
import { add, make } from "../../../builders/objects.ts";

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
  answer: QueryAnswer | (() => Promise<QueryAnswer>);
  /** One tick of a process that remembers the earlier ones. */
  tick(more?: Partial<PhasedInput> & Partial<PhasedTools>): Promise<PhasedResult>;
  /** Ticks every 5 s of the cluster's time, or sooner if the tick says so. */
  tickFor(seconds: number): Promise<void>;
  set(name?: string): StoredSet;
  rollout(name?: string): StoredRollout;
  /** `<pod>@<image>` in order. */
  pods(): string[];
}

interface StoredSet extends KubeObject {
  readonly spec: {
    readonly replicas: number;
    readonly updateStrategy: { readonly rollingUpdate?: { readonly partition?: number } };
  };
}
interface StoredRollout extends KubeObject {
  readonly status: PhasedStatus;
}

export async function setPhasedStage({ isDefined = true } = {}): Promise<PhasedStage> {
  const stage = await setStage();
  if (isDefined) await define(stage.emulator.store, ["phasedrollouts"]);
  await stage.time.advance(1000);
  return attach(stage);
}

/** A PhasedRollout of a StatefulSet of three pods that are up, from its first tick on. */
export async function play(
  choices: SetChoices,
  run: (stage: PhasedStage) => Promise<void>,
  options?: object,
): Promise<void> {
  const stage = await setPhasedStage();
  try {
    await applySet(stage, "x:1", choices);
    await stage.time.advance(10_000);
    createRollout(stage, options);
    await run(stage);
  } finally {
    await stage.close();
  }
}

/** The index of the lowest pod that is released; the replicas if none is. */
export function partitionOf(stage: PhasedStage): number {
  const { replicas, updateStrategy } = stage.set().spec;
  return Math.min(updateStrategy.rollingUpdate?.partition ?? 0, replicas);
}

export const reasons = ({ events }: PhasedStage): string[] => events.map(({ reason }) => reason);

function attach(stage: Stage): PhasedStage {
  const { store } = stage.emulator;
  const { cluster, calls } = stage.connect();
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
  const read = (resource: string, name: string): KubeObject => {
    const found = store.get(resource, "default", name);
    if (!found) throw new Error(`there is no ${resource} ${name}`);
    return found;
  };
  const self: PhasedStage = {
    ...stage,
    calls,
    events,
    logged,
    asked,
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
    set: (name = "db") => read(SETS, name) as StoredSet,
    rollout: (name = "guard") => read(PHASED, name) as StoredRollout,
    pods: () =>
      (store.list("pods", "default") as Pod[]).map((pod) => `${pod.metadata.name}@${imageOf(pod)}`).toSorted(),
  };
  return self;
}

interface SetChoices {
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
  const earlier = stage.emulator.store.get(SETS, "default", name) as StoredSet | undefined;
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
