/**
 * Node updates on a real API server: its rules about policies, conversion between v1 and v2 through our function, and a campaign under exactly the rights
 * of the manifests. The nodes are made by the test and have no pods.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { serveConversion } from "../../../functions/nodes/crd-convert.ts";
import { generateCertificates } from "../../../infra/certs/generate.ts";
import { systemClock } from "../../../infra/clock.ts";
import { connectCluster } from "../../../infra/kubernetes/connect-cluster.ts";
import { type Connection, loadConnection } from "../../../infra/kubernetes/connection.ts";
import { createFreshness } from "../../../infra/kubernetes/freshness.ts";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { createPrometheusClient } from "../../../infra/prometheus/client.ts";
import { readExpression } from "../../../reconciler/checks/expression.ts";
import { createChecker } from "../../../reconciler/checking/ask-prometheus.ts";
import { createNodeUpdates } from "../../../reconciler/node-updates/update-nodes.ts";
import { createRecorder } from "../../../reconciler/report/recorder.ts";
import { listen } from "../../loopback.ts";
import { applyRbac, buildKubeconfig } from "../stage/access.ts";
import { type Admin, connectAdmin } from "../stage/client.ts";

const id = randomBytes(3).toString("hex");
const namespace = `zw-nodes-${id}`;
const FOLDER = new URL("../../../infra/manifests/node-updates/", import.meta.url);
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const POLICIES = "/apis/zonewise.dev/v1/nodeupdatepolicies";
const shadowsOf = (version: string): string => `/apis/brupop.bottlerocket.aws/${version}/namespaces/${namespace}/bottlerocketshadows`;
const nodes = ["a", "b", "c"].map((zone) => ({ name: `zw-${id}-${zone}`, zone }));
const selector = { [`zonewise.test/${id}`]: "true" };

interface Shadow {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly state: string; readonly version?: string | null };
  readonly status?: Readonly<Record<string, unknown>>;
}

const log = createLog({ level: "warn", format: "json", write: (line) => process.stderr.write(line), now: () => new Date() });
const metrics = createMetrics();
let admin: Admin;
let connection: Connection;
let folder: string;
const handler = serveConversion({ clock: systemClock, log, metrics: metrics.webhooks, requestTimeoutMs: 10_000 });
let server: ReturnType<typeof createServer>;

const read = (file: string) =>
  parse(readFileSync(new URL(file, FOLDER), "utf8")) as { metadata: { name: string }; spec: Record<string, unknown> };

before(async () => {
  admin = await connectAdmin(process.env["KUBECONFIG"]);
  const { caPem, certPem, keyPem } = await generateCertificates({
    dnsNames: ["localhost"],
    ipAddresses: ["127.0.0.1"],
    organization: "test",
    validityDays: 1,
    now: new Date(),
  });
  server = createServer({ key: keyPem, cert: certPem }, (request, response) => void handler(request, response));
  const port = await listen(server, "127.0.0.1");
  const shadows = read("crds/bottlerocketshadows.yaml");
  const clientConfig = { service: null, url: `https://127.0.0.1:${port}/crdconvert`, caBundle: Buffer.from(caPem).toString("base64") };
  shadows.spec["conversion"] = { strategy: "Webhook", webhook: { conversionReviewVersions: ["v1"], clientConfig } };
  for (const definition of [shadows, read("crds/nodeupdatepolicies.yaml")]) await putDefinition(definition);
  await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  await until(async () => {
    await admin.call("GET", shadowsOf("v2"));
    await admin.call("GET", POLICIES);
  });
  await applyRbac(admin, namespace);
  await applyNodeRbac();
  folder = await mkdtemp(join(tmpdir(), "nodes-"));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, JSON.stringify(await buildKubeconfig(admin, namespace)));
  connection = await loadConnection({ kubeconfig });
});

/** Other tests may have left the definition. */
async function putDefinition(definition: ReturnType<typeof read>): Promise<void> {
  await admin.call("POST", CRDS, definition).catch(async (error: Error) => {
    if (error.cause !== 409) throw error;
    await admin.call("PATCH", `${CRDS}/${definition.metadata.name}`, { spec: definition.spec });
  });
}

after(async () => {
  for (const { name } of nodes) await admin.call("DELETE", `/api/v1/nodes/${name}`).catch(() => {});
  await admin.call("DELETE", `${POLICIES}/p-${id}`).catch(() => {});
  for (const plural of ["bottlerocketshadows.brupop.bottlerocket.aws", "nodeupdatepolicies.zonewise.dev"])
    await admin.call("DELETE", `${CRDS}/${plural}`);
  for (const kind of ["clusterroles", "clusterrolebindings"])
    await admin.call("DELETE", `/apis/rbac.authorization.k8s.io/v1/${kind}/zonewise-node-updates-${id}`);
  await admin.call("DELETE", `/api/v1/namespaces/${namespace}`);
  connection.close();
  admin.close();
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true });
});

/** The rules of the manifests, under names of this test. */
async function applyNodeRbac(): Promise<void> {
  const text = readFileSync(new URL("rbac-reconciler.yaml", FOLDER), "utf8");
  for (const document of parseAllDocuments(text)) {
    const { kind, metadata, ...rest } = document.toJS() as { kind: string; metadata: { name: string; namespace?: string } };
    const isClusterWide = metadata.namespace === undefined;
    const body = JSON.parse(JSON.stringify(rest).replaceAll('"namespace":"zonewise"', `"namespace":"${namespace}"`)) as {
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

async function until(check: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await check();
    } catch (error) {
      if (attempt === 50) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

const policy = (spec: object, name = `p-${id}`) => ({ apiVersion: "zonewise.dev/v1", kind: "NodeUpdatePolicy", metadata: { name }, spec });

describe("the rules of the NodeUpdatePolicy", () => {
  for (const [spec, allowed] of [
    [{}, true],
    [{ maxConcurrent: 0 }, true],
    [{ maxConcurrent: "25%" }, true],
    [{ maxConcurrent: "Unlimited" }, true],
    [{ maxConcurrent: -1 }, false],
    [{ maxConcurrent: "101%" }, false],
    [{ maxConcurrent: "many" }, false],
    [{ window: { cron: "* * 2-4 * * Mon-Fri", timeZone: "Europe/Berlin" } }, true],
    [{ window: { cron: "@daily" } }, true],
    [{ window: { cron: "0 2 * * *" } }, false],
    [{ window: { cron: "* * * * * *", lastStartSeconds: 60, durationSeconds: 60 } }, false],
    [{ maxFailed: 0 }, false],
    [{ drain: { onTimeout: "Force" } }, false],
    [{ health: { minReadySeconds: -1 } }, false],
  ] as const)
    it(`${allowed ? "allow" : "refuse"} ${JSON.stringify(spec)}`, async () => {
      const created = admin.call("POST", `${POLICIES}?dryRun=All`, policy(spec));
      if (allowed) await created;
      else await assert.rejects(created, /422|Invalid|invalid/);
    });
});

describe("conversion", () => {
  const v1 = (name: string, state: string) => ({
    apiVersion: "brupop.bottlerocket.aws/v1",
    kind: "BottlerocketShadow",
    metadata: { name, labels: { team: "x" } },
    spec: { state },
  });

  it("stores what a v1 client writes, and loses nothing that a v2 client has written (W20, W21, W22)", async () => {
    await admin.call("POST", shadowsOf("v1"), v1("brs-one", "PerformedUpdate"));
    const stored = await admin.call<Shadow>("GET", `${shadowsOf("v2")}/brs-one`);
    assert.equal(stored.spec.state, "StagedAndPerformedUpdate");
    const status = {
      current_version: "1.0.0",
      target_version: "1.1.0",
      current_state: "ErrorReset",
      crash_count: 3,
      state_transition_failure_timestamp: "2026-01-01T00:00:00Z",
      boot_id: "b",
    };
    await admin.call("PATCH", `${shadowsOf("v2")}/brs-one/status`, { status });
    const old = await admin.call<Shadow>("GET", `${shadowsOf("v1")}/brs-one`);
    assert.deepEqual(
      [old.spec.state, old.status],
      ["PerformedUpdate", { current_version: "1.0.0", target_version: "1.1.0", current_state: "MonitoringUpdate" }],
    );
    await admin.call("PATCH", `${shadowsOf("v1")}/brs-one`, { spec: { version: "1.1.0" } });
    const again = await admin.call<Shadow>("GET", `${shadowsOf("v2")}/brs-one`);
    assert.deepEqual([again.spec.version, again.status], ["1.1.0", status]);
  });

  it("converts lists", async () => {
    for (let i = 0; i < 20; i++)
      await admin.call("POST", shadowsOf("v2"), { ...v1(`brs-list-${i}`, "Idle"), apiVersion: "brupop.bottlerocket.aws/v2" });
    const { items } = await admin.call<{ items: readonly Shadow[] }>("GET", shadowsOf("v1"));
    assert.equal(items.length, 21);
  });

  after(async () => void (await admin.call("DELETE", shadowsOf("v2"))));
});

describe("a campaign under the rights of the manifests", () => {
  it("updates three nodes, zone after zone, and leaves no trace on them", async () => {
    for (const { name, zone } of nodes) {
      const labels = { ...selector, "bottlerocket.aws/updater-interface-version": "2.0.0", "topology.kubernetes.io/zone": zone };
      await admin.call("POST", "/api/v1/nodes", { metadata: { name, labels }, spec: { taints: [{ key: "test", effect: "NoSchedule" }] } });
      await setNode(name, "boot-1");
    }
    await admin.call(
      "POST",
      POLICIES,
      policy({ nodeSelector: selector, health: { minReadySeconds: 0 }, features: { protectFromScaleDown: true } }),
    );
    const cluster = connectCluster(connection, { timeoutMs: 10_000, observer: metrics.observer });
    const checker = createChecker({
      cluster,
      clock: systemClock,
      prometheus: createPrometheusClient({ timeoutMs: 1000, allowedHosts: [] }),
    });
    const options = {
      cluster,
      clock: systemClock,
      log,
      metrics: metrics.nodeUpdates,
      namespace,
      checker,
      loadReader: async () => readExpression,
      secretsNamespace: namespace,
      ownNode: undefined,
      defaultSpec: {},
    };
    const update = createNodeUpdates(options);
    const actor = {
      fence: { write: () => ({}) },
      freshness: createFreshness(systemClock, log),
      recorder: createRecorder({ cluster, clock: systemClock, log, instance: "test" }),
      signal: new AbortController().signal,
      annotations: new Map<string, string>(),
    };
    const order: string[] = [];
    for (let round = 0; round < 60 && order.length < 3; round++) {
      await update(actor);
      for (const { name } of nodes) await stepAgent(name, order);
    }
    await update(actor);
    await actor.recorder.flush();
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
    const reasons = new Set(items.filter(({ involvedObject }) => involvedObject.name === nodes[0]?.name).map(({ reason }) => reason));
    assert.ok(reasons.has("UpdateStarted") && reasons.has("NodeUpdated"), [...reasons].join());
  });
});

async function setNode(name: string, bootID: string): Promise<void> {
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, "");
  const status = {
    conditions: [{ type: "Ready", status: "True", lastTransitionTime, lastHeartbeatTime: lastTransitionTime, reason: "Test", message: "" }],
    nodeInfo: { bootID },
  };
  await admin.call("PATCH", `/api/v1/nodes/${name}/status`, { status });
}

/** What an agent does next, without a host. */
async function stepAgent(name: string, order: string[]): Promise<void> {
  const path = `${shadowsOf("v2")}/brs-${name}`;
  const { spec, status } = await admin.call<Shadow>("GET", path);
  const report = (change: object) => admin.call("PATCH", `${path}/status`, { status: { ...status, ...change } });
  if (!status) return void (await report({ current_version: "1.0.0", target_version: "1.1.0", current_state: "Idle", crash_count: 0 }));
  if (spec.state === status["current_state"]) return;
  const boots = spec.state === "RebootedIntoUpdate";
  if (boots) await setNode(name, "boot-2");
  if (spec.state === "Idle") order.push(name);
  await report({
    current_state: spec.state,
    ...(boots && { current_version: spec.version, boot_id: "boot-2", boot_reported_at: new Date(Date.now() - 1000).toISOString() }),
  });
}
