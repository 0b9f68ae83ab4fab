/** Drains: one round a request, and never a 200 while a pod is left. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { dig, type KubeObject, listOf } from "../../emulator/objects.ts";
import type { Store } from "../../emulator/store.ts";
import {
  type Agent,
  createShadow,
  FROZEN,
  type NodeAnswer,
  type NodeStage,
  playAgent,
  POLICY,
  setNodeStage,
  SHADOWS,
} from "./stage.ts";
import { add } from "../../builders.ts";

const BASE = "/bottlerocket-node-resource";
const drainOnce = ({ call }: NodeStage, agent: Agent): Promise<NodeAnswer> =>
  call(agent, `POST ${BASE}/cordon-and-drain`);

function createPod(
  { emulator: { store } }: NodeStage,
  name: string,
  more: { readonly node?: string; readonly labels?: object } = {},
): KubeObject {
  const { node = "node-1", labels = {} } = more;
  return add(store, "Pod", name, {
    labels: { ...labels },
    spec: { nodeName: node, containers: [] },
    status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
  });
}

/** Nobody has taken the pod away, or begun to. */
function isKept(store: Store, name: string): boolean {
  const pod = store.get("pods", "default", name);
  return pod !== undefined && pod.metadata.deletionTimestamp === undefined;
}

/** The kubelet ends what was evicted. */
function endPods({ emulator: { store } }: NodeStage): void {
  for (const { metadata } of store.list("pods", "default"))
    if (metadata.deletionTimestamp) store.remove("pods", "default", metadata.name, { gracePeriodSeconds: 0 });
}

async function start(t: Parameters<typeof setNodeStage>[0], options?: Parameters<typeof setNodeStage>[1]) {
  const stage = await setNodeStage(t, options);
  createShadow(stage, "node-1");
  return { stage, agent: await playAgent(stage, "node-1") };
}

const progress = (stage: NodeStage): unknown => dig(stage.shadow("node-1"), "status", "drain");

describe("a drain", () => {
  it("does not obey the shadow of an earlier node of that name, which Kubernetes has not collected yet", async (t) => {
    const { stage, agent } = await start(t);
    createPod(stage, "a-0");
    const shadow = stage.shadow("node-1");
    const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "node-1", uid: "an earlier node" }];
    if (shadow) stage.emulator.store.update(SHADOWS, { ...shadow, metadata: { ...shadow.metadata, ownerReferences } });
    const { status, body } = await drainOnce(stage, agent);
    assert.equal(status, 404, JSON.stringify(body));
    assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), undefined);
    assert.ok(isKept(stage.emulator.store, "a-0"));
  });

  it("cordons, evicts, and answers 200 only once no pod is left; what remains is in the answers and in the shadow", async (t) => {
    const { stage, agent } = await start(t);
    createPod(stage, "a-0");
    createPod(stage, "b-0");
    createPod(stage, "elsewhere", { node: "node-2" });
    const first = await drainOnce(stage, agent);
    assert.deepEqual([first.status, first.body], [503, { remaining: 2, blocked: [] }]);
    assert.equal(first.headers["retry-after"], "2");
    assert.partialDeepStrictEqual(stage.node("node-1"), {
      metadata: { annotations: { "zonewise.dev/cordoned-by": stage.shadow("node-1")?.metadata.uid } },
      spec: { unschedulable: true },
    });

    const second = await drainOnce(stage, agent);
    assert.equal(second.status, 503);
    assert.deepEqual(
      listOf(dig(second.body, "blocked")).map((pod) => [dig(pod, "name"), dig(pod, "reason")]),
      [
        ["a-0", "Terminating"],
        ["b-0", "Terminating"],
      ],
    );
    assert.equal(dig(progress(stage), "remaining"), 2);

    endPods(stage);
    const third = await drainOnce(stage, agent);
    assert.deepEqual([third.status, third.body], [200, { remaining: 0, blocked: [] }]);
    assert.equal(dig(progress(stage), "remaining"), 0);
    assert.ok(stage.emulator.store.get("pods", "default", "elsewhere"));
  });

  it("of an empty node needs two rounds: a scheduler may not have seen the cordon yet", async (t) => {
    const { stage, agent } = await start(t);
    assert.equal((await drainOnce(stage, agent)).status, 503);
    assert.equal((await drainOnce(stage, agent)).status, 200);
  });

  it("is held by a budget, and says so, with the pod", async (t) => {
    const { stage, agent } = await start(t);
    createPod(stage, "kept-0", { labels: { app: "kept" } });
    const budget = {
      spec: { selector: { matchLabels: { app: "kept" } }, minAvailable: 1 },
      status: { observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1 },
    };
    const metadata = { name: "kept", namespace: "default", generation: 1 };
    stage.emulator.store.create("poddisruptionbudgets.policy", {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata,
      ...budget,
    });
    for (let round = 0; round < 3; round++) {
      const { status, body } = await drainOnce(stage, agent);
      assert.equal(status, 503);
      assert.partialDeepStrictEqual(body, {
        remaining: 1,
        blocked: [{ namespace: "default", name: "kept-0", reason: "DisruptionBudget" }],
      });
    }
    assert.ok(isKept(stage.emulator.store, "kept-0"));
  });

  it("tells the API server's own 429 from a budget's", async (t) => {
    const { stage, agent } = await start(t);
    createPod(stage, "a-0");
    stage.emulator.faults.inject({
      resource: "pods",
      subresource: "eviction",
      effect: { kind: "tooMany", retryAfterSeconds: 60 },
    });
    assert.partialDeepStrictEqual((await drainOnce(stage, agent)).body, {
      remaining: 1,
      blocked: [{ reason: "Throttled" }],
    });
  });

  it("evicts only the pod that was listed, not one of its name that took its place", async (t) => {
    const { stage, agent } = await start(t);
    createPod(stage, "a-0");
    const { store, faults } = stage.emulator;
    faults.inject({ resource: "pods", subresource: "eviction", effect: { kind: "latency", ms: 200 } });
    const round = drainOnce(stage, agent);
    const isAsked = (): boolean => faults.struck() > 0;
    while (!isAsked()) await new Promise((resolve) => setTimeout(resolve, 5));
    store.remove("pods", "default", "a-0", { gracePeriodSeconds: 0 });
    createPod(stage, "a-0", { node: "node-2" });
    assert.deepEqual((await round).body, { remaining: 1, blocked: [] });
    assert.ok(isKept(store, "a-0"));
  });

  it("keeps the time of its first round, for its timeout", async (t) => {
    const { stage, agent } = await start(t);
    createPod(stage, "a-0");
    await drainOnce(stage, agent);
    const first = dig(progress(stage), "started_at");
    await drainOnce(stage, agent);
    assert.equal(dig(progress(stage), "started_at"), first);
  });

  it("that the policy gives up answers 200 with the pods that stay, and says so in the shadow", async (t) => {
    const { stage, agent } = await start(t, {
      policy: { ...POLICY, drain: { timeoutSeconds: 0, onTimeout: "Reboot" } },
    });
    createPod(stage, "a-0");
    await drainOnce(stage, agent);
    const { status, body } = await drainOnce(stage, agent);
    assert.equal(status, 200);
    assert.partialDeepStrictEqual(body, { remaining: 1 });
    assert.equal(dig(progress(stage), "forced"), true);
  });

  const NO_REBOOT = [
    { name: "while the policy is frozen", policy: FROZEN, error: /^policy default is frozen, .*node-2 is lost$/ },
    { name: "once its policy was deleted, frozen or not", policy: "none", error: /no NodeUpdatePolicy has the node/ },
  ] as const;
  for (const { name, policy, error } of NO_REBOOT)
    it(`answers no 200 ${name}: the node does not reboot, even if it announced that before`, async (t) => {
      const { stage, agent } = await start(t, { policy });
      await drainOnce(stage, agent);
      const { status, body } = await drainOnce(stage, agent);
      assert.deepEqual([status, dig(body, "code")], [503, "Unavailable"]);
      assert.match(String(dig(body, "error")), error);
    });

  const UNWANTED = [
    { name: "while nothing is wanted", spec: { state: "Idle" }, status: {} },
    {
      name: "while the update is being staged",
      spec: { state: "StagedAndPerformedUpdate" },
      status: { current_state: "Idle" },
    },
    { name: "after the reboot", spec: {}, status: { current_state: "RebootedIntoUpdate" } },
    { name: "in ErrorReset", spec: {}, status: { current_state: "ErrorReset" } },
  ] as const;
  for (const { name, spec, status } of UNWANTED)
    it(`is refused ${name}, and the node is not cordoned`, async (t) => {
      const stage = await setNodeStage(t);
      createShadow(stage, "node-1", { spec, status });
      const agent = await playAgent(stage, "node-1");
      assert.equal((await drainOnce(stage, agent)).status, 409);
      assert.equal((await stage.call(agent, `POST ${BASE}/exclude-from-lb`)).status, 409);
      assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), undefined);
    });
});
