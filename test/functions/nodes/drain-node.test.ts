/**
 * A node is taken out of service by drains, one round a request and never a 200 while a pod is left, and given back: our
 * own marks alone are undone, and never after a reboot was announced.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { dig, type KubeObject, listOf } from "../../emulator/objects.ts";
import type { Store } from "../../emulator/store.ts";
import { type Agent, createShadow, FROZEN, type NodeAnswer, type NodeStage, playAgent, setNodeStage } from "./stage.ts";
import { add } from "../../builders/objects.ts";

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

async function start(
  t: Parameters<typeof setNodeStage>[0],
  {
    status,
    ...options
  }: Parameters<typeof setNodeStage>[1] & Pick<Parameters<typeof createShadow>[2] & {}, "status"> = {},
) {
  const stage = await setNodeStage(t, options);
  createShadow(stage, "node-1", status ? { status } : {});
  return { stage, agent: await playAgent(stage, "node-1") };
}

const progress = (stage: NodeStage): unknown => dig(stage.shadow("node-1"), "status", "drain");

describe("a drain", () => {
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

  it("that the policy gives up, a while after its first round, answers 200 with the pods that stay", async (t) => {
    const at = "2026-01-01T00:00:00Z";
    const { stage, agent } = await start(t, {
      policy: { drain: { timeoutSeconds: 60, onTimeout: "Reboot" } },
      status: { drain: { started_at: at, round_at: at, remaining: 1, blocked: [] } },
    });
    createPod(stage, "a-0");
    await drainOnce(stage, agent);
    const { status, body } = await drainOnce(stage, agent);
    assert.equal(status, 200);
    assert.partialDeepStrictEqual(body, { remaining: 1 });
    assert.deepEqual([dig(progress(stage), "forced"), dig(progress(stage), "started_at")], [true, at]);
  });

  const NO_REBOOT = [
    { name: "while the policy is frozen", policy: FROZEN, error: /^the policy is frozen, .*node-2 is lost$/ },
    {
      name: "once its policy was deleted, frozen or not",
      policy: "none",
      error: /the NodeUpdatePolicy has the node in no slot/,
    },
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

describe("giving a node back", () => {
  it("undoes the cordon, the exclusion and the progress together", async (t) => {
    const { stage, agent } = await start(t);
    const before = stage.node("node-1");
    assert.equal((await stage.call(agent, `POST ${BASE}/exclude-from-lb`)).status, 200);
    const label = "node.kubernetes.io/exclude-from-external-load-balancers";
    assert.partialDeepStrictEqual(stage.node("node-1"), {
      metadata: { labels: { [label]: "True" } },
      spec: { unschedulable: true },
    });
    await drainOnce(stage, agent);
    assert.equal((await stage.call(agent, `POST ${BASE}/uncordon`)).status, 200);
    const { labels, annotations } = stage.node("node-1").metadata;
    assert.deepEqual(
      [labels, annotations ?? {}, stage.node("node-1")["spec"]],
      [before.metadata.labels, {}, before["spec"]],
    );
    assert.equal(progress(stage), undefined);
  });

  it("of the exclusion alone leaves the cordon", async (t) => {
    const { stage, agent } = await start(t);
    const before = stage.node("node-1");
    await stage.call(agent, `POST ${BASE}/exclude-from-lb`);
    assert.equal((await stage.call(agent, `POST ${BASE}/remove-exclusion-from-lb`)).status, 200);
    assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), true);
    assert.deepEqual(stage.node("node-1").metadata.labels, before.metadata.labels);
  });

  it("is refused while the node is not Ready, and not for long", async (t) => {
    const { stage, agent } = await start(t);
    const setReady = (status: string): void => {
      const conditions = [{ type: "Ready", status }];
      stage.emulator.store.update("nodes", {
        ...stage.node("node-1"),
        status: { ...(stage.node("node-1")["status"] as object), conditions },
      });
    };
    await stage.call(agent, `POST ${BASE}/exclude-from-lb`);
    for (const status of ["False", "Unknown"]) {
      setReady(status);
      for (const route of ["uncordon", "remove-exclusion-from-lb"]) {
        const answer = await stage.call(agent, `POST ${BASE}/${route}`);
        assert.equal(answer.status, 409);
        assert.match(JSON.stringify(answer.body), /node-1 is not Ready: it stays cordoned until it is/);
      }
      assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), true);
    }
    setReady("True");
    assert.equal((await stage.call(agent, `POST ${BASE}/uncordon`)).status, 200);
    assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), undefined);
    setReady("False");
    assert.equal((await stage.call(agent, `POST ${BASE}/uncordon`)).status, 200, "there is nothing to give back");
  });

  it("is refused once a reboot is announced", async (t) => {
    const stage = await setNodeStage(t);
    createShadow(stage, "node-1", { status: { rebooting: { boot_id: "b-1", at: "2026-01-01T00:00:00Z" } } });
    const agent = await playAgent(stage, "node-1");
    for (const route of ["uncordon", "remove-exclusion-from-lb"])
      assert.equal((await stage.call(agent, `POST ${BASE}/${route}`)).status, 409);
  });

  it("is repeated if the node changes meanwhile", async (t) => {
    const { stage, agent } = await start(t);
    await drainOnce(stage, agent);
    stage.emulator.faults.inject({ verb: "patch", resource: "nodes", effect: { kind: "conflict" }, times: 2 });
    assert.equal((await stage.call(agent, `POST ${BASE}/uncordon`)).status, 200);
    assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), undefined);
  });
});
