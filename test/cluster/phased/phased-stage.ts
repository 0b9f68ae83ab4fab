/**
 * Phased rollouts on the real control plane: a StatefulSet `db`, its PhasedRollout `guard`, and a scripted Prometheus.
 */
import { createServer, type Server } from "node:http";
import { listen } from "../../loopback.ts";
import { define } from "../stage/definitions.ts";
import { type OpenStage, scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { buildTemplate } from "../stage/zones.ts";

/** The scripted Prometheus. */
export interface ScriptedQuery {
  /** The query returns data. */
  isFiring: boolean;
  /**
   * It does so, too, while `db` has this partition or a lower one: the rollout stops there, however late the test is.
   */
  firesFrom: number;
  asked: number;
}

export interface PhasedStage extends Stage {
  readonly prometheus: ScriptedQuery;
  /** Makes `db` and waits for its pods to be ready. */
  readonly createSet: (traits?: SetTraits) => Promise<void>;
  /** Gives `db` another template. */
  readonly roll: (image: string) => Promise<void>;
  readonly createRollout: (name?: string, spec?: object) => Promise<void>;
  readonly readRollout: (name?: string) => Promise<Rollout>;
  /** Resolves once the PhasedRollout is so. */
  readonly until: (what: string, isSo: (rollout: Rollout) => boolean, name?: string) => Promise<void>;
  readonly partition: () => Promise<number | undefined>;
  /** The images of the pods by their names, in order. */
  readonly images: () => Promise<string[]>;
}

export interface Rollout {
  readonly metadata: { readonly generation: number };
  readonly status?: {
    readonly phase?: string;
    readonly observedGeneration?: number;
    readonly targetObservedGeneration?: number;
    readonly updateRevision?: string;
    readonly rollingPodStatus?: { readonly status: string; readonly partition: number };
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message: string }[];
  };
}

export interface SetTraits {
  readonly replicas?: number;
  readonly policy?: "OrderedReady" | "Parallel";
}

/** Reconcilers that tick often; a killed one frees its Lease soon. */
export const FAST = { RECONCILE_INTERVAL: "500ms", LEASE_DURATION: "5s" };

/** Registers a test. Its PhasedRollouts lose their finalizers at the end, as nobody would release them any more. */
export function phasedScenario(name: string, run: (stage: PhasedStage) => Promise<void>): void {
  scenario(name, async (stage) => {
    await define(stage.admin, "phasedrollouts");
    const prometheus = { isFiring: false, firesFrom: -1, asked: 0 };
    const server = createServer((_request, response) => {
      prometheus.asked++;
      const answer = async (): Promise<void> => {
        const fires =
          prometheus.isFiring ||
          (prometheus.firesFrom >= 0 && ((await readPartition(stage)) ?? 0) <= prometheus.firesFrom);
        const result = fires ? [{ metric: {}, value: [1, "1"] }] : [];
        response
          .setHeader("content-type", "application/json")
          .end(JSON.stringify({ status: "success", data: { resultType: "vector", result } }));
      };
      void answer().catch(() => response.destroy());
    });
    try {
      await run(attach(stage, { prometheus, port: await listen(server) }));
    } finally {
      await close(stage, server);
    }
  });
}

async function close(
  { call, namespace, diagnostic, reconcilers }: Stage & Pick<OpenStage, "reconcilers">,
  server: Server,
): Promise<void> {
  await Promise.all(reconcilers.map((one) => one.kill()));
  const path = `/apis/sts.plus/v1alpha1/namespaces/${namespace}/phasedrollouts`;
  await until("no finalizer is left", async () => {
    const { items } = await call<{ items: { metadata: { name: string; finalizers?: string[] } }[] }>("GET", path);
    const held = items.filter(({ metadata }) => metadata.finalizers);
    for (const { metadata } of held)
      await call("PATCH", `${path}/${metadata.name}`, { metadata: { finalizers: null } });
    return held.length === 0;
  }).catch((error: unknown) => diagnostic(String(error)));
  server.closeAllConnections();
  server.close();
}

interface Partitioned {
  readonly spec: { readonly updateStrategy: { readonly rollingUpdate?: { readonly partition?: number } } };
}

const readPartition = async ({ call, namespace }: Stage): Promise<number | undefined> =>
  (await call<Partitioned>("GET", `/apis/apps/v1/namespaces/${namespace}/statefulsets/db`)).spec.updateStrategy
    .rollingUpdate?.partition;

function attach(stage: Stage, { prometheus, port }: { prometheus: ScriptedQuery; port: number }): PhasedStage {
  const { call, namespace, timeline } = stage;
  const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const rollouts = `/apis/sts.plus/v1alpha1/namespaces/${namespace}/phasedrollouts`;
  const template = (image: string) => buildTemplate({ group: "", name: "db", image });
  const readRollout = (name = "guard"): Promise<Rollout> => call<Rollout>("GET", `${rollouts}/${name}`);
  return {
    ...stage,
    prometheus,
    readRollout,
    async createSet({ replicas = 3, policy = "OrderedReady" } = {}) {
      const spec = {
        replicas,
        serviceName: "db",
        podManagementPolicy: policy,
        selector: { matchLabels: { zone: "db" } },
        template: template("app:1"),
        updateStrategy: { type: "RollingUpdate" },
      };
      await call("POST", sets, { metadata: { name: "db" }, spec });
      await timeline.until("all pods ready", () => timeline.statefulSets.get("db")?.status?.readyReplicas === replicas);
    },
    roll: (image) => stage.patchZone("db", { spec: { template: template(image) } }),
    async createRollout(name = "guard", spec = {}) {
      const query = { expr: "up == 0", url: `127.0.0.1:${port}`, successWhen: "NoData" };
      const check = { initialDelaySeconds: 0, periodSeconds: 0, successThreshold: 2, query };
      await call("POST", rollouts, {
        apiVersion: "sts.plus/v1alpha1",
        kind: "PhasedRollout",
        metadata: { name },
        spec: { targetRef: "db", check, ...spec },
      });
    },
    async until(what, isSo, name) {
      let rollout: Rollout | undefined;
      const isReached = async (): Promise<boolean> => isSo((rollout = await readRollout(name)));
      await until(() => `${what}: ${JSON.stringify(rollout?.status)}`, isReached);
    },
    partition: () => readPartition(stage),
    async images() {
      const { items } = await call<{
        items: { metadata: { name: string }; spec: { containers: { image: string }[] } }[];
      }>("GET", `/api/v1/namespaces/${namespace}/pods`);
      return items.map(({ metadata, spec }) => `${metadata.name}@${spec.containers[0]?.image}`).toSorted();
    },
  };
}

/** Updated, and about the latest specs of both objects. */
export const isUpdated = ({ metadata, status }: Rollout): boolean =>
  status?.phase === "Updated" &&
  status.observedGeneration === metadata.generation &&
  status.conditions?.find(({ type }) => type === "Updated")?.status === "True";
