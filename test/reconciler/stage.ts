/** The reconciler's shell on the embedded cluster, under a clock that only the test advances. */
import type { TickResult } from "../../reconciler/model/outcome.ts";
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { createLog } from "../../infra/log.ts";
import { createMetrics } from "../../infra/metrics/metrics.ts";
import type { PodHttp } from "../../infra/pod-http.ts";
import { createReferences } from "../../reconciler/scaling/act/gather-scaling.ts";
import { createPodNotifier, type PodNotifier } from "../../reconciler/scaling/act/pod-notifier.ts";
import type { RunInput } from "../../reconciler/run/session.ts";
import { createSteps, tick, type TickInput } from "../../reconciler/run/tick.ts";
import { manualClock, type ManualClock } from "../emulator/clock.ts";
import { amend, statefulSet } from "../builders/objects.ts";
import { startEmulator, type ApiOptions, type Emulator } from "../emulator/index.ts";

export interface Stage {
  readonly emulator: Emulator;
  readonly time: ManualClock;
  /** The same time for the port and the reconciler. */
  readonly clock: Clock;
  /** A new connection, and the methods and paths of the calls made through it. */
  connect(): { readonly cluster: Cluster; readonly calls: string[] };
  close(): Promise<void>;
}

/** `post` sends reviews to webhooks; over TLS by default. */
export async function setStage({ post }: Pick<ApiOptions, "post"> = {}): Promise<Stage> {
  const time = manualClock();
  const emulator = await startEmulator({ clock: time, ...(post && { post }) });
  const connection = emulator.connection();
  return {
    emulator,
    time,
    clock: clockOf(time),
    connect: () => {
      const calls: string[] = [];
      const observer = {
        answered: ({ method, path }: { method: string; path: string }) => void calls.push(`${method} ${path}`),
        rateLimited: () => {},
      };
      return { cluster: connectCluster(connection, { timeoutMs: 5000, observer }), calls };
    },
    close: () => emulator.stop(),
  };
}

/** The same time as the port and the reconciler see it. */
export function clockOf(time: ManualClock): Clock {
  return {
    now: () => time.now(),
    monotonic: () => time.now(),
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const cancel = time.after(ms, done);
        signal?.addEventListener("abort", done, { once: true });
        function done(): void {
          cancel();
          resolve();
        }
      }),
  };
}

/** Creates the zones of a group, or changes their image; `isBound`: their selectors have the label of the group, too. */
export function deploy(
  stage: Stage,
  image: string,
  {
    group = "ingester",
    zones = ["a", "b", "c"],
    replicas = 3,
    annotations = {},
    labels = {},
    podLabels = {},
    podAnnotations = {},
    isBound = false,
  } = {},
): void {
  const { store } = stage.emulator;
  for (const zone of zones) {
    const name = `${group}-zone-${zone}`;
    const selected = { name, ...(isBound && { "rollout-group": group }) };
    const { spec, ...set } = statefulSet(name, replicas, {
      labels: { "rollout-group": group, ...labels },
      annotations,
      spec: {
        serviceName: group,
        revisionHistoryLimit: 10,
        selector: { matchLabels: selected },
        template: {
          metadata: { labels: { ...podLabels, ...selected }, annotations: podAnnotations },
          spec: { terminationGracePeriodSeconds: 30, containers: [{ name: "c", image }] },
        },
      },
    });
    const earlier = store.get("statefulsets.apps", "default", name);
    if (earlier) store.update("statefulsets.apps", { ...earlier, spec });
    else store.create("statefulsets.apps", { ...set, spec });
  }
}

/** What the kubelet reports of the pod from now on. */
export function setReady({ emulator }: Pick<Stage, "emulator">, pod: string, isReady: boolean): void {
  amend(emulator.store, "Pod", pod, { annotations: { "sim/ready": String(isReady) } });
}

/** Pods that must not be called. */
const noPods: PodHttp = { send: (method, url) => Promise.reject(new Error(`unexpected ${method} ${url}`)) };

/** The other inputs of scaling. */
function scalingOf(cluster: Cluster) {
  return {
    references: createReferences(cluster),
    podHttp: noPods,
    clusterDomain: "cluster.local.",
    zoneTracker: "rollout-operator-zone-tracker",
    mayDownscale: async () => undefined,
  };
}

export function notifierOf({ clock }: Pick<Stage, "clock">, http: PodHttp): PodNotifier {
  return createPodNotifier({ http, clock, onNote: () => {}, signal: new AbortController().signal });
}

/** The inputs that a test of a tick may set. */
type TickChoices = Partial<
  Pick<TickInput["context"], "fence" | "stop"> &
    Pick<TickInput, "namespaces" | "steps" | "takeResync" | "mayDisrupt"> &
    TickInput["context"]["clock"] &
    TickInput["scaling"] &
    TickInput["checking"] &
    TickInput["report"]
>;

/** One tick through this connection, without memory. */
export function tickOnce(
  { clock }: Pick<Stage, "clock">,
  cluster: Cluster,
  more: TickChoices = {},
): Promise<TickResult> {
  const stop = more.stop ?? new AbortController().signal;
  const all = {
    ...clock,
    steps: createSteps({ clock, stop }, { onOwed: () => {}, isPatient: true }),
    fence: { write: () => ({}) },
    namespaces: ["default"],
    stop,
    mayDisrupt: async () => undefined,
    ...noChecks,
    takeResync: () => false,
    emitEvents: () => {},
    timesSuperseded: () => 0,
    onOutcome: () => {},
    ...scalingOf(cluster),
    notifier: notifierOf({ clock }, more.podHttp ?? noPods),
    ...more,
  };
  return tick({
    ...all,
    phased: noPhases,
    context: { ...all, cluster, clock: all },
    scaling: all,
    checking: all,
    report: all,
  });
}

/** No PhasedRollouts. */
const noPhases: TickInput["phased"] = async () => ({ acted: false, failed: false });

/** No gates, and a Prometheus that nobody asks. */
export const noChecks: TickInput["checking"] = {
  checker: { begin: () => ({ ask: async () => undefined, [Symbol.dispose]: () => {} }) },
  gates: {
    begin: async () => ({
      of: () => ({ verdicts: undefined, follow: () => {}, readAgain: async () => undefined }),
      bypassesOf: () => [],
      endGroup: async () => ({ progressed: false, nextAt: undefined }),
      end: async () => {},
    }),
  },
};

/** The input of a run of the process `identity`, which logs nothing, requests no disruption and injects nothing. */
export function runInputOf({ clock }: Stage, cluster: Cluster, identity: string): RunInput {
  return {
    cluster,
    clock,
    log: createLog({ level: "error", write: () => {}, now: () => new Date(0) }),
    metrics: createMetrics(),
    namespaces: ["default"],
    intervalMs: 5000,
    budgetMs: 55_000,
    lease: { namespace: "default", name: "zonewise-reconciler", identity, durationMs: 15_000 },
    scaling: scalingOf(cluster),
    mayDisrupt: async () => undefined,
    keepBudgets: async () => {},
    checking: noChecks,
    phased: noPhases,
    concludeDownscales: async () => false,
    caInjection: { once: async () => {}, follow: async () => {} },
    stop: new AbortController().signal,
  };
}
