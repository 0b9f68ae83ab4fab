/**
 * A campaign under exactly the rights of the manifests, tick by tick in this process. The nodes are made by the test
 * and have no pods.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import { systemClock } from "../../../infra/clock.ts";
import { connectCluster } from "../../../infra/kubernetes/connect-cluster.ts";
import { type Connection, loadConnection } from "../../../infra/kubernetes/connection.ts";
import { createFreshness } from "../../../infra/kubernetes/freshness.ts";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { createPrometheusClient } from "../../../infra/prometheus/act/client.ts";
import { readExpression } from "../../../reconciler/checks/expression.ts";
import { createChecker } from "../../../reconciler/checks/act/ask-prometheus.ts";
import { createNodeUpdates } from "../../../reconciler/nodes/act/update-nodes.ts";
import { createRecorder } from "../../../reconciler/report/act/recorder.ts";
import { RESERVED } from "../../plane/kubelet/pick-node.ts";
import { applyRbac, buildKubeconfig, untilAllowed } from "../stage/access.ts";
import { type Admin, connectAdmin, remove } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";

const id = randomBytes(3).toString("hex");
const namespace = `zw-nodes-${id}`;
const FOLDER = new URL("../../../infra/manifests/node-updates/", import.meta.url);
const POLICIES = "/apis/zonewise.dev/v1/nodeupdatepolicies";
const shadowsOf = (version: string): string =>
  `/apis/brupop.bottlerocket.aws/${version}/namespaces/${namespace}/bottlerocketshadows`;
const nodes = ["a", "b", "c"].map((zone) => ({ name: `zw-${id}-${zone}`, zone }));
const selector = { [`zonewise.test/${id}`]: "true" };

interface Shadow {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly state: string; readonly version?: string | null };
  readonly status?: Readonly<Record<string, unknown>>;
}

const log = createLog({
  level: "warn",
  format: "json",
  write: (line) => process.stderr.write(line),
  now: () => new Date(),
});
const metrics = createMetrics();
let admin: Admin;
let connection: Connection;
let folder = "";

before(async () => {
  admin = await connectAdmin(process.env["KUBECONFIG"]);
  await define(admin, "bottlerocketshadows", "nodeupdatepolicies");
  // A reconciler without any policy makes it; it selects all nodes, these too.
  await remove(admin, `${POLICIES}/default`);
  await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  await applyRbac(admin, namespace);
  await applyNodeRbac();
  folder = await mkdtemp(join(tmpdir(), "nodes-"));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, JSON.stringify(await buildKubeconfig(admin, namespace)));
  connection = await loadConnection({ kubeconfig });
});

after(async () => {
  for (const { name } of nodes) await remove(admin, `/api/v1/nodes/${name}`);
  await remove(admin, `${POLICIES}/p-${id}`);
  for (const kind of ["clusterroles", "clusterrolebindings"])
    await remove(admin, `/apis/rbac.authorization.k8s.io/v1/${kind}/zonewise-node-updates-${id}`);
  await remove(admin, `/api/v1/namespaces/${namespace}`);
  connection?.close();
  admin.close();
  await rm(folder, { recursive: true, force: true });
});

/** The rules of the manifests, under names of this test. */
async function applyNodeRbac(): Promise<void> {
  const text = readFileSync(new URL("rbac-reconciler.yaml", FOLDER), "utf8");
  for (const document of parseAllDocuments(text)) {
    const { kind, metadata, ...rest } = document.toJS() as {
      kind: string;
      metadata: { name: string; namespace?: string };
    };
    const isClusterWide = metadata.namespace === undefined;
    const body = JSON.parse(
      JSON.stringify(rest).replaceAll('"namespace":"zonewise"', `"namespace":"${namespace}"`),
    ) as {
      roleRef?: { name: string };
    };
    if (isClusterWide && body.roleRef) body.roleRef.name += `-${id}`;
    const path = isClusterWide
      ? `/apis/rbac.authorization.k8s.io/v1/${kind.toLowerCase()}s`
      : `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/${kind.toLowerCase()}s`;
    await admin.call("POST", path, {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind,
      metadata: { name: isClusterWide ? `${metadata.name}-${id}` : metadata.name },
      ...body,
    });
  }
  const reconciler = { namespace, account: "zonewise-reconciler" };
  await untilAllowed(admin, reconciler, {
    verbs: ["list"],
    apiGroups: ["zonewise.dev"],
    resources: ["nodeupdatepolicies"],
  });
  await untilAllowed(admin, reconciler, {
    verbs: ["list"],
    apiGroups: ["brupop.bottlerocket.aws"],
    resources: ["bottlerocketshadows"],
  });
}

const policy = (spec: object, name = `p-${id}`) => ({
  apiVersion: "zonewise.dev/v1",
  kind: "NodeUpdatePolicy",
  metadata: { name },
  spec,
});

describe("a campaign under the rights of the manifests", () => {
  it("updates three nodes, zone after zone, and leaves no trace on them", async () => {
    for (const { name, zone } of nodes) {
      const labels = {
        ...selector,
        [RESERVED]: "true",
        "bottlerocket.aws/updater-interface-version": "2.0.0",
        "topology.kubernetes.io/zone": zone,
      };
      await admin.call("POST", "/api/v1/nodes", {
        metadata: { name, labels },
        spec: { taints: [{ key: "test", effect: "NoSchedule" }] },
      });
      await setNode(name, "boot-1");
    }
    await admin.call(
      "POST",
      POLICIES,
      policy({ nodeSelector: selector, health: { minReadySeconds: 0 }, features: { protectFromScaleDown: true } }),
    );
    const cluster = connectCluster(connection, { timeoutMs: 60_000, observer: metrics.observer });
    const checker = createChecker({
      cluster,
      clock: systemClock,
      prometheus: createPrometheusClient({ timeoutMs: 1000, allowedHosts: [] }),
    });
    const options = {
      clock: systemClock,
      log,
      metrics,
      namespace,
      checker,
      loadReader: async () => readExpression,
      secretsNamespace: namespace,
      ownNode: undefined,
      intervalMs: 5000,
      defaultSpec: {},
    };
    const update = createNodeUpdates(options);
    const context = {
      cluster,
      fence: { write: () => ({}) },
      freshness: createFreshness(systemClock, log),
      stop: new AbortController().signal,
    };
    const tools = {
      recorder: createRecorder({ cluster, clock: systemClock, log, instance: "test" }),
      annotations: new Map<string, string>(),
    };
    const order: string[] = [];
    for (let round = 0; round < 60 && order.length < 3; round++) {
      await update(context, tools);
      for (const { name } of nodes) await stepAgent(name, order);
    }
    await update(context, tools);
    await tools.recorder.flush();
    assert.deepEqual(
      order,
      nodes.map(({ name }) => name),
    );
    const { status } = await admin.call<{ status: { nodes: object; transitions: readonly { count: number }[] } }>(
      "GET",
      `${POLICIES}/p-${id}`,
    );
    assert.deepEqual(status.nodes, { total: 3, upToDate: 3, waiting: 0, active: 0, failed: 0 });
    for (const { name } of nodes) {
      const { metadata } = await admin.call<{ metadata: { annotations?: object } }>("GET", `/api/v1/nodes/${name}`);
      assert.ok(!JSON.stringify(metadata.annotations ?? {}).includes("zonewise"), JSON.stringify(metadata.annotations));
    }
    const { items } = await admin.call<{ items: readonly { reason: string; involvedObject: { name: string } }[] }>(
      "GET",
      "/api/v1/namespaces/default/events",
    );
    const reasons = new Set(
      items.filter(({ involvedObject }) => involvedObject.name === nodes[0]?.name).map(({ reason }) => reason),
    );
    assert.ok(reasons.has("UpdateStarted") && reasons.has("NodeUpdated"), [...reasons].join());
  });
});

async function setNode(name: string, bootID: string): Promise<void> {
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, "");
  const status = {
    conditions: [
      {
        type: "Ready",
        status: "True",
        lastTransitionTime,
        lastHeartbeatTime: lastTransitionTime,
        reason: "Test",
        message: "",
      },
    ],
    nodeInfo: { bootID },
  };
  await admin.call("PATCH", `/api/v1/nodes/${name}/status`, { status });
}

/** What an agent does next, without a host. */
async function stepAgent(name: string, order: string[]): Promise<void> {
  const path = `${shadowsOf("v2")}/brs-${name}`;
  const { spec, status } = await admin.call<Shadow>("GET", path);
  const report = (change: object) => admin.call("PATCH", `${path}/status`, { status: { ...status, ...change } });
  if (!status)
    return void (await report({
      current_version: "1.0.0",
      target_version: "1.1.0",
      current_state: "Idle",
      crash_count: 0,
    }));
  if (spec.state === status["current_state"]) return;
  const boots = spec.state === "RebootedIntoUpdate";
  if (boots) await setNode(name, "boot-2");
  if (spec.state === "Idle") order.push(name);
  await report({
    current_state: spec.state,
    ...(boots && {
      current_version: spec.version,
      boot_id: "boot-2",
      boot_reported_at: new Date(Date.now() - 1000).toISOString(),
    }),
  });
}
