/** Shadows: their creation by agents, and the writes of their status. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { dig, put } from "../../emulator/objects.ts";
import { createShadow, FROZEN, playAgent, setNodeStage, SHADOWS } from "./stage.ts";

const BASE = "/bottlerocket-node-resource";
const IDLE = { current_version: "1.2.1", target_version: "1.3.0", current_state: "Idle", crash_count: 0 };

describe("POST", () => {
  it("creates one shadow for the node, which its Node owns, and answers with it; again too", async (t) => {
    const stage = await setNodeStage(t);
    const agent = await playAgent(stage, "node-1");
    const selector = { node_selector: { node_name: "node-2", node_uid: "ignored" } };
    const first = await stage.call(agent, `POST ${BASE}`, { body: selector });
    assert.equal(first.status, 200, JSON.stringify(first.body));
    assert.deepEqual(dig(first.body, "metadata", "ownerReferences"), [
      { apiVersion: "v1", kind: "Node", name: "node-1", uid: stage.node("node-1").metadata.uid },
    ]);
    assert.equal(dig(stage.shadow("node-1"), "spec", "state"), "Idle");
    const again = await stage.call(agent, `POST ${BASE}`);
    assert.deepEqual([again.status, again.body], [200, first.body]);
    assert.equal(stage.shadow("node-2"), undefined);
  });

  it("creates none for a node that has lost its label: its agent may outlive its shadow for a moment", async (t) => {
    const stage = await setNodeStage(t);
    const agent = await playAgent(stage, "node-1");
    stage.emulator.store.update("nodes", put(stage.node("node-1"), ["metadata", "labels"], {}));
    assert.equal((await stage.call(agent, `POST ${BASE}`)).status, 409);
    assert.equal(stage.shadow("node-1"), undefined);
  });
});

it("the shadow of an earlier node of the name, which Kubernetes has not collected yet, is not obeyed", async (t) => {
  const stage = await setNodeStage(t);
  const shadow = createShadow(stage, "node-1");
  const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "node-1", uid: "earlier" }];
  stage.emulator.store.update(SHADOWS, { ...shadow, metadata: { ...shadow.metadata, ownerReferences } });
  const agent = await playAgent(stage, "node-1");
  for (const [route, status] of [
    [`POST ${BASE}`, 409],
    [`PUT ${BASE}`, 404],
    [`POST ${BASE}/cordon-and-drain`, 404],
    [`POST ${BASE}/uncordon`, 404],
  ] as const)
    assert.equal((await stage.call(agent, route, { body: IDLE })).status, status, route);
  assert.equal(dig(stage.node("node-1"), "spec", "unschedulable"), undefined);
});

describe("PUT", () => {
  it("writes the status of the caller's node, and echoes it", async (t) => {
    const stage = await setNodeStage(t);
    createShadow(stage, "node-1", { status: null });
    const body = { ...IDLE, state_transition_failure_timestamp: null };
    const answer = await stage.call(await playAgent(stage, "node-1"), `PUT ${BASE}`, { body });
    assert.deepEqual([answer.status, answer.body], [200, body]);
    assert.deepEqual(stage.shadow("node-1")?.["status"], IDLE);
  });

  it("of an agent of the original keeps our fields, and nobody but the API writes the progress of a drain", async (t) => {
    const stage = await setNodeStage(t);
    const drain = { started_at: "2026-01-01T00:00:00Z", round_at: "2026-01-01T00:00:00Z", remaining: 2, blocked: [] };
    createShadow(stage, "node-1", { status: { boot_id: "b-1", drain } });
    const staged = { ...IDLE, current_state: "StagedAndPerformedUpdate" };
    const body = { ...staged, drain: { ...drain, remaining: 0 }, boot_reported_at: "1999-01-01T00:00:00Z" };
    await stage.call(await playAgent(stage, "node-1"), `PUT ${BASE}`, { body });
    assert.deepEqual(stage.shadow("node-1")?.["status"], { ...staged, boot_id: "b-1", drain });
  });

  it("of an attempt that is over forgets its drain, also if no agent has undone it: the next one has its whole time", async (t) => {
    const stage = await setNodeStage(t);
    const drain = { started_at: "2026-01-01T00:00:00Z", round_at: "2026-01-01T00:00:00Z", remaining: 0, blocked: [] };
    createShadow(stage, "node-1", { spec: { state: "Idle" }, status: { boot_id: "b-1", drain } });
    await stage.call(await playAgent(stage, "node-1"), `PUT ${BASE}`, { body: IDLE });
    assert.deepEqual(stage.shadow("node-1")?.["status"], { ...IDLE, boot_id: "b-1" });
  });

  it("records when a boot was first reported, again for each one", async (t) => {
    const stage = await setNodeStage(t);
    const earlier = "2026-01-01T00:00:00Z";
    createShadow(stage, "node-1", { status: { boot_id: "b-1", boot_reported_at: earlier } });
    const agent = await playAgent(stage, "node-1");
    const reportedAfter = async (status: object): Promise<unknown> => {
      await stage.call(agent, `PUT ${BASE}`, { body: { ...IDLE, ...status } });
      return dig(stage.shadow("node-1"), "status", "boot_reported_at");
    };
    assert.equal(await reportedAfter({ boot_id: "b-1" }), earlier);
    const reported = await reportedAfter({ boot_id: "b-2" });
    assert.ok(String(reported) > earlier, String(reported));
    assert.equal(await reportedAfter({ boot_id: "b-2", crash_count: 1 }), reported);
  });

  it("is refused if the shadow has changed since the version that the agent names", async (t) => {
    const stage = await setNodeStage(t);
    const { metadata } = createShadow(stage, "node-1");
    const agent = await playAgent(stage, "node-1");
    const headers = { "if-match": `"${metadata.resourceVersion}"` };
    assert.equal((await stage.call(agent, `PUT ${BASE}`, { body: IDLE, headers })).status, 200);
    assert.equal((await stage.call(agent, `PUT ${BASE}`, { body: { ...IDLE, crash_count: 1 }, headers })).status, 409);
    assert.equal(dig(stage.shadow("node-1"), "status", "crash_count"), 0);
  });

  it("without a version is decided again if another writer was faster", async (t) => {
    const stage = await setNodeStage(t);
    createShadow(stage, "node-1");
    stage.emulator.faults.inject({ verb: "patch", resource: SHADOWS, effect: { kind: "conflict" }, times: 2 });
    assert.equal((await stage.call(await playAgent(stage, "node-1"), `PUT ${BASE}`, { body: IDLE })).status, 200);
    assert.equal(dig(stage.shadow("node-1"), "status", "current_state"), "Idle");
  });

  const REFUSED: readonly (readonly [name: string, body: unknown, status: number])[] = [
    ["a key that is missing", { ...IDLE, crash_count: undefined }, 400],
    ["a state that does not exist", { ...IDLE, current_state: "Away" }, 400],
    ["no JSON object", "text", 400],
  ];
  for (const [name, body, status] of REFUSED)
    it(`answers ${status} to ${name}`, async (t) => {
      const stage = await setNodeStage(t);
      createShadow(stage, "node-1");
      assert.equal((await stage.call(await playAgent(stage, "node-1"), `PUT ${BASE}`, { body })).status, status);
    });

  it("answers 404 without a shadow", async (t) => {
    const stage = await setNodeStage(t);
    assert.equal((await stage.call(await playAgent(stage, "node-1"), `PUT ${BASE}`, { body: IDLE })).status, 404);
  });
});

describe("the announcement of a reboot", () => {
  const times = { started_at: "2026-01-01T00:00:00Z", round_at: "2026-01-01T00:00:00Z" };
  const body = {
    ...IDLE,
    current_state: "StagedAndPerformedUpdate",
    rebooting: { boot_id: "b-1", at: "2026-01-01T00:00:00Z" },
  };
  const CASES = [
    { name: "is stored once the node was found drained", drain: { ...times, remaining: 0, blocked: [] }, status: 200 },
    {
      name: "is stored if the policy forces it",
      drain: { ...times, remaining: 1, blocked: [], forced: true },
      status: 200,
    },
    { name: "is refused with pods on the node", drain: { ...times, remaining: 1, blocked: [] }, status: 409 },
    { name: "is refused without a drain", drain: null, status: 409 },
    {
      name: "is refused once it is no longer wanted",
      drain: { ...times, remaining: 0, blocked: [] },
      wanted: "Idle",
      status: 409,
    },
    {
      name: "waits while the policy is frozen",
      drain: { ...times, remaining: 0, blocked: [] },
      policy: FROZEN,
      status: 503,
    },
    {
      name: "waits once the policy was deleted, frozen or not",
      drain: { ...times, remaining: 0, blocked: [] },
      policy: "none",
      status: 503,
    },
  ] as const;
  for (const { name, drain, status, ...more } of CASES)
    it(name, async (t) => {
      const stage = await setNodeStage(t, "policy" in more ? { policy: more.policy } : {});
      const state = "wanted" in more ? more.wanted : "RebootedIntoUpdate";
      createShadow(stage, "node-1", {
        spec: { state },
        status: { boot_id: "b-1", ...(drain && { drain: { ...drain, blocked: [] } }) },
      });
      assert.equal((await stage.call(await playAgent(stage, "node-1"), `PUT ${BASE}`, { body })).status, status);
      assert.equal(dig(stage.shadow("node-1"), "status", "rebooting") !== undefined, status === 200);
    });
});
