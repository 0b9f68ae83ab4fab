/**
 * Phased rollouts on the real control plane: a StatefulSet `db`, its PhasedRollout `db`, and a scripted Prometheus.
 */
import { createServer, type Server } from "node:http";
import { listen } from "../../loopback.ts";
import { define } from "../stage/definitions.ts";
import { type OpenStage, scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { buildTemplate } from "../stage/zones.ts";

/** The scripted Prometheus. */
interface ScriptedQuery {
  /** The query returns data. */
  isFiring: boolean;
}

interface PhasedStage extends Stage {
  readonly prometheus: ScriptedQuery;
  /** Makes `db` and waits for its pods to be ready. */
  readonly createSet: () => Promise<void>;
  /** Gives `db` another template. */
  readonly roll: (image: string) => Promise<void>;
  /** Makes its PhasedRollout. */
  readonly createRollout: () => Promise<void>;
  /** Resolves once the PhasedRollout is so. */
  readonly until: (what: string, isSo: (rollout: Rollout) => boolean) => Promise<void>;
  /** The images of the pods by their names, in order. */
  readonly images: () => Promise<string[]>;
}

interface Rollout {
  readonly metadata: { readonly generation: number };
  readonly status?: {
    readonly phase?: string;
    readonly observedGeneration?: number;
    readonly rollingPodStatus?: { readonly status: string; readonly partition: number };
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** Reconcilers that tick often; a killed one frees its Lease soon. */
export const FAST = { RECONCILE_INTERVAL: "500ms", LEASE_DURATION: "5s" };

/** Registers a test. Its PhasedRollouts lose their finalizers at the end, as nobody would release them any more. */
export function phasedScenario(name: string, run: (stage: PhasedStage) => Promise<void>): void {
  scenario(name, async (stage) => {
    await define(stage.admin, "phasedrollouts");
    const prometheus = { isFiring: false };
    const server = createServer((_request, response) => {
      const result = prometheus.isFiring ? [{ metric: {}, value: [1, "1"] }] : [];
      response
        .setHeader("content-type", "application/json")
        .end(JSON.stringify({ status: "success", data: { resultType: "vector", result } }));
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

const REPLICAS = 3;

function attach(stage: Stage, { prometheus, port }: { prometheus: ScriptedQuery; port: number }): PhasedStage {
  const { call, namespace, timeline } = stage;
  const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const rollouts = `/apis/sts.plus/v1alpha1/namespaces/${namespace}/phasedrollouts`;
  const template = (image: string) => buildTemplate({ group: "", name: "db", image });
  return {
    ...stage,
    prometheus,
    async createSet() {
      const spec = {
        replicas: REPLICAS,
        serviceName: "db",
        selector: { matchLabels: { zone: "db" } },
        template: template("app:1"),
        updateStrategy: { type: "RollingUpdate" },
      };
      await call("POST", sets, { metadata: { name: "db" }, spec });
      await timeline.until("all pods ready", () => timeline.statefulSets.get("db")?.status?.readyReplicas === REPLICAS);
    },
    roll: (image) => stage.patchZone("db", { spec: { template: template(image) } }),
    async createRollout() {
      const query = { expr: "up == 0", url: `127.0.0.1:${port}`, successWhen: "NoData" };
      const check = { initialDelaySeconds: 0, periodSeconds: 0, successThreshold: 2, query };
      await call("POST", rollouts, {
        apiVersion: "sts.plus/v1alpha1",
        kind: "PhasedRollout",
        metadata: { name: "db" },
        spec: { targetRef: "db", check },
      });
    },
    async until(what, isSo) {
      let rollout: Rollout | undefined;
      const isReached = async (): Promise<boolean> => isSo((rollout = await call<Rollout>("GET", `${rollouts}/db`)));
      await until(() => `${what}: ${JSON.stringify(rollout?.status)}`, isReached);
    },
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
