/** Phased rollouts on the real control plane: a StatefulSet `db`, its PhasedRollout `guard`, and a scripted Prometheus. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { parse } from "yaml";
import { listen } from "../../loopback.ts";
import type { Admin } from "../stage/client.ts";
import { runKubectl } from "../stage/kubectl.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { buildTemplate, type Sim } from "../stage/zones.ts";

const CRD = new URL("../../../infra/manifests/crds/phasedrollouts.yaml", import.meta.url);

export interface PhasedStage extends Stage {
  /** The scripted Prometheus: with `isFiring`, the query returns data. */
  readonly prometheus: { isFiring: boolean; asked: number };
  /** Makes `db` and waits for its pods. */
  readonly createSet: (traits?: SetTraits) => Promise<void>;
  /** Gives `db` another template. */
  readonly roll: (image: string, sim?: Sim) => Promise<void>;
  readonly createRollout: (name?: string, spec?: object) => Promise<void>;
  readonly readRollout: (name?: string) => Promise<Rollout>;
  /** Resolves once the PhasedRollout is so; rejects after a minute. */
  readonly until: (what: string, isSo: (rollout: Rollout) => boolean, name?: string) => Promise<void>;
  readonly remove: (path: string) => Promise<void>;
  readonly partition: () => number | undefined;
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
  readonly image?: string;
  readonly partition?: number;
  /** Dropped by the API server where the feature MaxUnavailableStatefulSet is off. */
  readonly maxUnavailable?: number;
}

/** Installs the definition; resolves once it is served. */
async function define({ call }: Pick<Admin, "call">): Promise<void> {
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const definition = parse(await readFile(CRD, "utf8")) as { readonly spec: object };
  await call("POST", definitions, definition).catch(async (error: unknown) => {
    assert.match(String(error), /AlreadyExists/);
    await call("PATCH", `${definitions}/phasedrollouts.sts.plus`, { spec: definition.spec });
  });
  const established = await runKubectl(["wait", "--for=condition=Established", "--timeout=30s", "crd/phasedrollouts.sts.plus"]);
  assert.equal(established.code, 0, established.text);
}

/** Reconcilers that tick often; a killed one frees its Lease soon. */
export const FAST = { RECONCILE_INTERVAL: "300ms", LEASE_DURATION: "1s" };

/** Registers a test. Its PhasedRollouts lose their finalizers at the end, as nobody would release them any more. */
export function phasedScenario(name: string, run: (stage: PhasedStage) => Promise<void>): void {
  scenario(name, async (stage) => {
    await define(stage);
    const prometheus = { isFiring: false, asked: 0 };
    const server = createServer((_request, response) => {
      prometheus.asked++;
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

async function close({ call, namespace }: Stage, server: Server): Promise<void> {
  const path = `/apis/sts.plus/v1alpha1/namespaces/${namespace}/phasedrollouts`;
  const { items } = await call<{ items: { metadata: { name: string } }[] }>("GET", path);
  for (const { metadata } of items) {
    await call("PATCH", `${path}/${metadata.name}`, { metadata: { finalizers: null } }).catch((error: Error) => {
      if (error.cause !== 404) throw error; // a reconciler released it since the list
    });
  }
  server.closeAllConnections();
  server.close();
}

function attach(stage: Stage, { prometheus, port }: { prometheus: PhasedStage["prometheus"]; port: number }): PhasedStage {
  const { call, namespace, timeline } = stage;
  const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const rollouts = `/apis/sts.plus/v1alpha1/namespaces/${namespace}/phasedrollouts`;
  const template = (image: string, sim: Sim = {}) => buildTemplate({ group: "", name: "db", image, sim });
  const readRollout = (name = "guard"): Promise<Rollout> => call<Rollout>("GET", `${rollouts}/${name}`);
  return {
    ...stage,
    prometheus,
    readRollout,
    async createSet({ replicas = 3, policy = "OrderedReady", image = "app:1", partition = 0, maxUnavailable = 1 } = {}) {
      const spec = {
        replicas,
        serviceName: "db",
        podManagementPolicy: policy,
        selector: { matchLabels: { zone: "db" } },
        template: template(image),
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition, maxUnavailable } },
      };
      await call("POST", sets, { metadata: { name: "db" }, spec });
      await timeline.until("all pods ready", () => timeline.statefulSets.get("db")?.status?.readyReplicas === replicas);
    },
    async roll(image, sim) {
      // Annotations of an earlier template must not stay.
      const whole = template(image, sim);
      const annotations = { "sim/crash": null, ...whole.metadata?.annotations };
      await stage.patchZone("db", { spec: { template: { ...whole, metadata: { ...whole.metadata, annotations } } } });
    },
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
      const last = Date.now() + 180_000;
      for (;;) {
        const rollout = await readRollout(name);
        if (isSo(rollout)) return;
        assert.ok(Date.now() < last, `not within 3 minutes: ${what}: ${JSON.stringify(rollout.status)}`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    },
    remove: async (path) => void (await call("DELETE", path)),
    partition: () => timeline.statefulSets.get("db")?.spec?.updateStrategy?.rollingUpdate?.partition,
    async images() {
      const { items } = await call<{ items: { metadata: { name: string }; spec: { containers: { image: string }[] } }[] }>(
        "GET",
        `/api/v1/namespaces/${namespace}/pods`,
      );
      return items.map(({ metadata, spec }) => `${metadata.name}@${spec.containers[0]?.image}`).toSorted();
    },
  };
}

/** Updated, and about the latest specs of both objects. */
export const isUpdated = ({ metadata, status }: Rollout): boolean =>
  status?.phase === "Updated" &&
  status.observedGeneration === metadata.generation &&
  status.conditions?.find(({ type }) => type === "Updated")?.status === "True";
