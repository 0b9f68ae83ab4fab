/** Controllers, node API, agents and hosts together, with what people and faults may do to them. */
import { readFileSync } from "node:fs";
import type { TestContext } from "node:test";
import { parse } from "yaml";
import { systemClock } from "../../../../infra/clock.ts";
import { createFreshness } from "../../../../infra/kubernetes/freshness.ts";
import { createMetrics } from "../../../../infra/metrics/metrics.ts";
import { createHostApi } from "../../../../reconciler/nodes/agent/host-api.ts";
import { runAgent } from "../../../../reconciler/nodes/agent/loop.ts";
import type { CallNodeApi } from "../../../../reconciler/nodes/agent/call-node-api.ts";
import { readExpression } from "../../../../reconciler/checks/expression.ts";
import { findEvictable } from "../../../../reconciler/nodes/node-pod.ts";
import { ROUTES } from "../../../../reconciler/nodes/routes.ts";
import { MANAGED_LABEL, MANAGED_VALUE } from "../../../../reconciler/nodes/shadow.ts";
import { createNodeUpdates } from "../../../../reconciler/nodes/act/update-nodes.ts";
import { dig, type KubeObject } from "../../../emulator/objects.ts";
import { type Agent, NAMESPACE, type NodeStage, playAgent, SHADOWS } from "../../../functions/nodes/stage.ts";
import { keepingLog } from "../../../functions/stage.ts";
import { type Host, startHost } from "../../../host/host-server.ts";
import { noChecks } from "../../stage.ts";

export const NODES = ["node-1", "node-2", "node-3"];
export const POLICIES = "nodeupdatepolicies.zonewise.dev";
const CRD = new URL("../../../../infra/manifests/node-updates/crds/nodeupdatepolicies.yaml", import.meta.url);
export const TARGET = "1.1.0";
const SPEC = { maxConcurrent: 1, zonesInOrder: false, health: { minReadySeconds: 0 }, maxFailed: 1 };

export class Play {
  readonly stage: NodeStage;
  readonly violations: string[] = [];
  readonly hosts = new Map<string, Host>();
  readonly #agents = new Map<string, { kill: () => Promise<unknown> }>();
  readonly #tokens = new Map<string, Agent>();
  readonly #down = new Set<string>();
  /** Milliseconds by which the controllers' clock is ahead. */
  ahead = 0;
  /** A person has let a node go: it counts no longer. */
  released = false;
  #rounds = 0;
  readonly #log = keepingLog();

  constructor(stage: NodeStage) {
    this.stage = stage;
  }

  get store() {
    return this.stage.emulator.store;
  }

  async open(t: TestContext): Promise<void> {
    this.store.create("customresourcedefinitions.apiextensions.k8s.io", parse(readFileSync(CRD, "utf8")) as KubeObject);
    this.createPolicy();
    for (const name of NODES) {
      this.label(name, MANAGED_VALUE);
      const host = await startHost({
        offers: TARGET,
        actionMs: { prepare: 10 },
        rebootMs: 30,
        onReboot: (phase, { facts }) => this.#onReboot(name, phase, facts().bootId),
      });
      this.hosts.set(name, host);
      this.#setNode(name, true, host.facts().bootId);
      this.#tokens.set(name, await playAgent(this.stage, name));
      this.startAgent(name);
      t.after(() => host.stop());
    }
    const kubelet = setInterval(() => this.#endPods(), 10);
    t.after(() => clearInterval(kubelet));
    t.after(() => Promise.all([...this.#agents.values()].map(({ kill }) => kill())));
  }

  #onReboot(name: string, phase: "down" | "up", bootId: string): void {
    this.#setNode(name, phase === "up", bootId);
    if (phase === "up") {
      this.#down.delete(name);
      return void this.restartAgent(name);
    }
    const here = this.store.list("pods").filter((pod) => dig(pod, "spec", "nodeName") === name);
    for (const { metadata } of findEvictable(here as never))
      this.violations.push(`${name} went down with ${metadata?.name}`);
    this.#down.add(name);
    if (this.#down.size > 1 && !this.released) this.violations.push(`${[...this.#down].join(" and ")} are down`);
  }

  startAgent(name: string): void {
    const host = this.hosts.get(name);
    const agent = this.#tokens.get(name);
    if (!host || !agent) return;
    const stop = new AbortController();
    const callApi: CallNodeApi = async (route, { status, ifMatch } = {}) => {
      const { method, path } = ROUTES[route];
      const headers = ifMatch === undefined ? {} : { "if-match": `"${ifMatch}"` };
      const answer = await this.stage.call(agent, `${method} ${path}`, { ...(status && { body: status }), headers });
      return { status: answer.status, text: JSON.stringify(answer.body), retryAfterMs: 10 };
    };
    const ended = runAgent(
      {
        cluster: this.stage.cluster,
        callApi,
        clock: systemClock,
        log: this.#log.log,
        namespace: NAMESPACE,
        nodeName: name,
        host: createHostApi(host.socketPath),
        readBootId: async () => host.facts().bootId,
        pollMs: 5,
        actionMs: 2000,
        refreshMs: 100,
        rebootMs: 300,
        exclusionMs: 0,
        memory: {},
        stop: stop.signal,
      },
      { pauseMs: 20, idleMs: 50 },
    );
    this.#agents.set(name, { kill: () => (stop.abort(), ended) });
  }

  async restartAgent(name: string): Promise<void> {
    await Promise.race([this.#agents.get(name)?.kill(), systemClock.sleep(200)]);
    this.startAgent(name);
  }

  #setNode(name: string, ready: boolean, bootID: string): void {
    const node = this.stage.node(name);
    const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, "");
    const conditions = [{ type: "Ready", status: ready ? "True" : "Unknown", lastTransitionTime }];
    this.store.update("nodes", { ...node, status: { conditions, nodeInfo: { bootID } } });
  }

  /** What the kubelets and the garbage collector do, the latter later. */
  #endPods(): void {
    if (++this.#rounds % 20 === 0)
      for (const { metadata } of this.store.list(SHADOWS))
        if (NODES.every((name) => this.stage.node(name).metadata.uid !== metadata.ownerReferences?.[0]?.uid))
          this.store.remove(SHADOWS, NAMESPACE, metadata.name);
    for (const { metadata } of this.store.list("pods", "default"))
      if (metadata.deletionTimestamp) this.store.remove("pods", "default", metadata.name, { gracePeriodSeconds: 0 });
  }

  label(name: string, value: string | null): void {
    const node = this.stage.node(name);
    const { [MANAGED_LABEL]: _, ...rest } = node.metadata.labels ?? {};
    const labels = value === null ? rest : { ...rest, [MANAGED_LABEL]: value };
    this.store.update("nodes", { ...node, metadata: { ...node.metadata, labels } });
  }

  createPolicy(name = "default"): void {
    if (!this.store.get(POLICIES, undefined, name))
      this.store.create(POLICIES, {
        apiVersion: "zonewise.dev/v1",
        kind: "NodeUpdatePolicy",
        metadata: { name },
        spec: SPEC,
      });
  }

  changePolicy(change: object): void {
    const policy = this.store.get(POLICIES, undefined, "default");
    if (policy) this.store.update(POLICIES, { ...policy, spec: { ...(policy["spec"] as object), ...change } });
  }

  removePolicy(name = "default"): void {
    if (this.store.get(POLICIES, undefined, name)) this.store.remove(POLICIES, undefined, name);
  }

  /** The Node is deleted, and the kubelet of the same host registers it again. */
  async replaceNode(name: string): Promise<void> {
    this.store.remove("nodes", undefined, name);
    for (const { metadata, ...pod } of this.store.list("pods"))
      if (dig(pod, "spec", "nodeName") === name)
        this.store.remove("pods", metadata.namespace, metadata.name, { gracePeriodSeconds: 0 });
    const labels = { [MANAGED_LABEL]: MANAGED_VALUE };
    this.store.create("nodes", { apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec: {}, status: {} });
    const facts = this.hosts.get(name)?.facts();
    this.#setNode(name, facts?.isUp === true, facts?.bootId ?? "");
    this.#tokens.set(name, await playAgent(this.stage, name));
    await this.restartAgent(name);
  }

  createPod(node: string, name: string): void {
    if (dig(this.stage.node(node), "spec", "unschedulable") === true) return;
    const metadata = { name, namespace: "default" };
    this.store.create("pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata,
      spec: { nodeName: node, containers: [] },
      status: { phase: "Running" },
    });
  }

  unfreeze(): void {
    const id = dig(this.store.get(POLICIES, undefined, "default"), "status", "frozen", "id");
    if (id === undefined) return;
    this.released = true;
    this.changePolicy({ unfreeze: id });
  }

  /** A process of the controller. */
  controller() {
    const { cluster } = this.stage;
    const clock = { now: () => systemClock.now() + this.ahead, monotonic: () => systemClock.monotonic() };
    const update = createNodeUpdates({
      cluster,
      clock,
      log: this.#log.log,
      metrics: createMetrics(),
      checker: noChecks.checker,
      namespace: NAMESPACE,
      loadReader: async () => readExpression,
      secretsNamespace: "zonewise",
      ownNode: undefined,
      defaultSpec: SPEC,
    });
    const actor = {
      fence: { write: () => ({}) },
      freshness: createFreshness(systemClock, { warn: () => {} }),
      recorder: { emitEvents: () => {}, flush: async () => {} },
      annotations: new Map([["zonewise/node-update-policy-seen", "true"]]),
    };
    return () => update({ ...actor, signal: new AbortController().signal });
  }

  check(): void {
    if (this.released) return;
    const out = NODES.filter(
      (name) => this.stage.node(name).metadata.annotations?.["zonewise.dev/cordoned-by"] !== undefined,
    );
    if (out.length > 1) this.violations.push(`${out.join(" and ")} are cordoned by us`);
  }

  facts(): unknown[] {
    return NODES.map((name) => {
      const { metadata, ...node } = this.stage.node(name);
      const shadow = this.stage.shadow(name);
      const state = [
        dig(shadow, "spec", "state"),
        dig(shadow, "status", "current_state"),
        this.hosts.get(name)?.facts().version,
      ];
      return [
        name,
        dig(node, "spec", "unschedulable") ?? false,
        Object.keys(metadata.annotations ?? {}).length,
        ...state,
      ];
    });
  }

  shown(): string {
    return JSON.stringify(
      [this.facts(), this.store.list(POLICIES).map((one) => [one["spec"], one["status"]]), this.store.list(SHADOWS)],
      undefined,
      1,
    );
  }
}
