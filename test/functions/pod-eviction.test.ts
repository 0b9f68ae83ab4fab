import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import type { AdmissionRequest, Answer } from "../../functions/handler.ts";
import { createPodEviction } from "../../functions/pod-eviction.ts";
import type { Metrics } from "../../infra/metrics.ts";
import { BUDGETS, reserved, setBudgetStage, startProcess, writeBudget } from "../reconciler/budget-stage.ts";
import type { Stage } from "../reconciler/stage.ts";

let stage: Stage;
afterEach(() => stage.close());

function review(more: Partial<AdmissionRequest> = {}): AdmissionRequest {
  return {
    uid: "u",
    operation: "CREATE",
    subResource: "eviction",
    namespace: "default",
    name: "ingester-zone-a-0",
    dryRun: false,
    kind: { group: "policy", version: "v1", kind: "Eviction" },
    resource: { group: "", version: "v1", resource: "pods" },
    ...more,
  };
}

/** Asks a new process. */
async function ask(more: Partial<AdmissionRequest> = {}): Promise<{ answer: Answer; metrics: Metrics }> {
  const { reserver, metrics } = startProcess(stage);
  const webhook = createPodEviction({ reserver, metrics: metrics.budgets });
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const answer = await webhook.handle(review(more), {
    signal: new AbortController().signal,
    deadlineAt: stage.clock.monotonic() + 2000,
    log,
  });
  return { answer, metrics };
}

const CASES: readonly [string, Partial<AdmissionRequest>, Partial<Answer>, string][] = [
  [
    "E01 an operation that is none",
    { operation: "DELETE" },
    { code: 400, message: "request operation is not create, got: DELETE" },
    "invalid-request",
  ],
  [
    "E02 a subresource that is none",
    { subResource: "foo" },
    { code: 400, message: "request SubResource is not eviction, got: foo" },
    "invalid-request",
  ],
  ["E03 no name", { name: "" }, { code: 400, message: "request did not include both a namespace and a name" }, "invalid-request"],
  ["E03 no namespace", { namespace: "" }, { code: 400, message: "request did not include both a namespace and a name" }, "invalid-request"],
  ["E04 no such pod", { name: "ingester-zone-a-9" }, { code: 400, message: 'pods "ingester-zone-a-9" not found' }, "pod-not-found"],
  ["a pod that may go", {}, { allowed: true, reason: "Allowed" }, "allowed"],
  ["E05 a pod that is on its way", { name: "ingester-zone-c-2" }, { allowed: true, warnings: ["pod is not ready"] }, "pod-not-ready"],
];

describe("/admission/pod-eviction", () => {
  for (const [name, more, expected, metric] of CASES) {
    it(`${name}: ${metric}`, async () => {
      stage = await setBudgetStage();
      if (metric === "pod-not-ready") stage.emulator.store.remove("pods", "default", "ingester-zone-c-2");
      else writeBudget(stage);
      const { answer, metrics } = await ask(more);
      for (const [key, value] of Object.entries(expected)) assert.deepEqual(answer[key as keyof Answer], value);
      assert.equal(answer.allowed, expected.code === undefined);
      const text = await metrics.render();
      assert.match(text, new RegExp(`zpdb_eviction_requests_total\\{reason="${metric}",status="${expected.code ?? 200}"\\} 1`));
      assert.match(text, /zpdb_inflight_eviction_requests 0/);
    });
  }

  // Upstream answers this with 403: a drainer gives up then.
  it("E08 a budget of 0 is a no for now; and so is one that is spent", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, { maxUnavailable: 0 });
    const zero = await ask();
    assert.deepEqual(
      [zero.answer.code, zero.answer.message, zero.answer.log?.["reason"]],
      [429, "max unavailable = 0", "max unavailable = 0"],
    );
    writeBudget(stage, { maxUnavailable: 1 });
    assert.equal((await ask()).answer.allowed, true);
    const spent = await ask({ name: "ingester-zone-b-0" });
    assert.deepEqual(
      [spent.answer.code, spent.answer.message, spent.answer.log],
      [429, "1 pod not ready in ingester-zone-a", { reason: "zpdb exceeded", budget: "ingester" }],
    );
  });

  it("a dry run that only the Eviction tells of, as kubectl drain does, records nothing", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const object = { apiVersion: "policy/v1", kind: "Eviction", metadata: {}, deleteOptions: { dryRun: ["All"] } };
    assert.equal((await ask({ object })).answer.allowed, true);
    assert.deepEqual(reserved(stage), {});
  });

  it("E26 a dry run records nothing", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    assert.equal((await ask({ dryRun: true })).answer.allowed, true);
    assert.deepEqual(reserved(stage), {});
  });

  it("a lost race is a no for now; what else it cannot find out is a fault, and answered alike, without a word of why", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const notNow = [429, "no decision could be made in time, try again"];
    const withdraw = stage.emulator.faults.inject({ effect: { kind: "conflict" }, resource: BUDGETS });
    const { answer } = await ask();
    assert.deepEqual([answer.code, answer.message], notNow);
    withdraw();
    stage.emulator.faults.inject({ effect: { kind: "error" } });
    await assert.rejects(ask(), { code: "ServerError" });
    const { reserver, metrics } = startProcess(stage);
    const fault = createPodEviction({ reserver, metrics: metrics.budgets }).onFault(new Error("secret"), review());
    assert.deepEqual([fault.code, fault.message], notNow);
  });
});
