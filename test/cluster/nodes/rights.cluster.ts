/**
 * Campaigns under exactly the rights of the manifests, tick by tick in this process. The nodes are made by the test
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
import type { Node } from "../../../infra/kubernetes/resources.ts";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { createPrometheusClient } from "../../../infra/prometheus/act/client.ts";
import { createChecker } from "../../../reconciler/checks/act/ask-prometheus.ts";
import { createNodeUpdates } from "../../../reconciler/nodes/act/update-nodes.ts";
import { createRecorder } from "../../../reconciler/report/act/reporter.ts";
import type { ShadowSpec, ShadowStatus } from "../../../reconciler/nodes/shadow.ts";
import { playAgent } from "../../emulator/controllers/agent-step.ts";
import { reportNode } from "../../emulator/controllers/report-node.ts";
import { RESERVED } from "../../emulator/controllers/schedule.ts";
import { applyRbac, buildKubeconfig, untilAllowed } from "../stage/access.ts";
import { type Admin, connectAdmin, remove } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";
import { make } from "../../builders.ts";

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
  readonly spec: ShadowSpec;
  readonly status?: ShadowStatus;
}

let printed = "";
const log = createLog({
  level: "warn",
  format: "json",
  write: (line) => {
    printed += line;
    process.stderr.write(line);
  },
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
  await applyNodeRbac("rbac-reconciler.yaml");
  const reconciler = { namespace, account: "zonewise-reconciler" };
  const listed = [
    ["zonewise.dev", "nodeupdatepolicies"],
    ["brupop.bottlerocket.aws", "bottlerocketshadows"],
  ];
  for (const [group = "", resource = ""] of listed)
    await untilAllowed(admin, reconciler, { verbs: ["list"], apiGroups: [group], resources: [resource] });
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

/** The rules of a manifest, under names of this test. */
async function applyNodeRbac(file: string): Promise<void> {
  const text = readFileSync(new URL(file, FOLDER), "utf8");
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
}

const policy = (spec: object, name = `p-${id}`) => make("NodeUpdatePolicy", name, { spec });

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
    const { pass, recorder } = openUpdates();
    const order: string[] = [];
    for (let round = 0; round < 60 && order.length < 3; round++) {
      await pass();
      for (const { name } of nodes) await stepAgent(name, order);
    }
    await pass();
    await recorder.flush();
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

/** A reconciler's node updates, under the rights of its ServiceAccount. */
function openUpdates() {
  const cluster = connectCluster(connection, { timeoutMs: 60_000, observer: metrics.observer });
  const checker = createChecker({
    cluster,
    clock: systemClock,
    prometheus: createPrometheusClient({ timeoutMs: 1000, allowedHosts: [] }),
  });
  const update = createNodeUpdates({
    clock: systemClock,
    log,
    metrics,
    namespace,
    checker,
    secretsNamespace: namespace,
    ownNode: undefined,
    intervalMs: 5000,
    defaultSpec: {},
  });
  const context = {
    cluster,
    fence: { write: () => ({}) },
    stop: new AbortController().signal,
  };
  const recorder = createRecorder({ cluster, clock: systemClock, log, instance: "test" });
  const tools = { recorder, annotations: new Map<string, string>() };
  return { recorder, pass: () => update(context, tools) };
}

/** Ready, as its kubelet says; conditions of others stay. */
async function setNode(name: string, bootId: string): Promise<void> {
  const path = `/api/v1/nodes/${name}`;
  const status = reportNode(await admin.call<Node>("GET", path), { ready: "True", bootId, now: Date.now() });
  await admin.call("PATCH", `${path}/status`, { status });
}

/** What an agent does next, without a host: one state of an update that goes well. */
async function stepAgent(name: string, order: string[]): Promise<void> {
  const path = `${shadowsOf("v2")}/brs-${name}`;
  const { spec, status } = await admin.call<Shadow>("GET", path);
  const bootId = status?.boot_id ?? "boot-1";
  const host = { version: status?.current_version ?? "1.0.0", bootId };
  const after = playAgent({ spec, status, host, target: "1.1.0", cordoned: false }, Date.now(), `boot-${spec.version}`);
  if (after.host.bootId !== bootId) await setNode(name, after.host.bootId);
  if (spec.state === "Idle" && status && status.current_state !== "Idle") order.push(name);
  await admin.call("PATCH", `${path}/status`, { status: after.status });
}
