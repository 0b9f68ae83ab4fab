import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { AdmissionRequest, Answer } from "../../../functions/http/webhook.ts";
import { createPodEviction } from "../../../functions/eviction/pod-eviction.ts";
import type { RolloutError } from "../../../infra/errors.ts";
import { BUDGETS, reserved, setBudgetStage, startProcess, writeBudget } from "../../reconciler/budget-stage.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { callWebhook, eviction, reviewOf } from "./eviction-stage.ts";
import { amend } from "../../builders/objects.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await setBudgetStage();
  writeBudget(stage);
});
afterEach(() => stage.close());

const CASES: readonly [string, Partial<AdmissionRequest>, Partial<Answer>, string][] = [
  [
    "an operation that is none",
    { operation: "DELETE" },
    { code: 400, message: "request operation is not create, got: DELETE" },
    "invalid-request",
  ],
  [
    "a subresource that is none",
    { subResource: "foo" },
    { code: 400, message: "request SubResource is not eviction, got: foo" },
    "invalid-request",
  ],
  [
    "no name",
    { name: "" },
    { code: 400, message: "request did not include both a namespace and a name" },
    "invalid-request",
  ],
  [
    "no namespace",
    { namespace: "" },
    { code: 400, message: "request did not include both a namespace and a name" },
    "invalid-request",
  ],
  [
    "no such pod",
    { name: "ingester-zone-a-9" },
    { code: 400, message: 'pods "ingester-zone-a-9" not found' },
    "pod-not-found",
  ],
  ["a pod that may be evicted", {}, { allowed: true, reason: "Allowed" }, "allowed"],
  [
    "a terminating pod",
    { name: "ingester-zone-c-2" },
    { allowed: true, warnings: ["pod is not ready"] },
    "pod-not-ready",
  ],
];

function setPhase(name: string, phase: string): void {
  amend(stage.emulator.store, "Pod", name, { status: { phase } });
}

describe("/admission/pod-eviction", () => {
  for (const [name, more, expected, metric] of CASES) {
    it(`${name}: ${metric}`, async () => {
      const { store } = stage.emulator;
      if (metric === "pod-not-ready") {
        store.remove(BUDGETS, "default", "ingester");
        store.remove("pods", "default", "ingester-zone-c-2");
      }
      const { answer, metrics } = await callWebhook(stage, more);
      for (const [key, value] of Object.entries(expected)) assert.deepEqual(answer[key as keyof Answer], value);
      assert.equal(answer.allowed, expected.code === undefined);
      const text = await metrics.render();
      assert.match(
        text,
        new RegExp(`zpdb_eviction_requests_total\\{reason="${metric}",status="${expected.code ?? 200}"\\} 1`),
      );
      assert.match(text, /zpdb_inflight_eviction_requests 0/);
    });
  }

  it("a Pending pod is judged and reserved like others", async () => {
    setPhase("ingester-zone-a-0", "Pending");
    assert.equal(
      (await callWebhook(stage, { name: "ingester-zone-b-0" })).answer.message,
      "1 pod not ready in ingester-zone-a",
    );
    assert.equal((await callWebhook(stage)).answer.reason, "Allowed");
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
    setPhase("ingester-zone-a-0", "Running");
    assert.equal(
      (await callWebhook(stage, { name: "ingester-zone-b-0" })).answer.message,
      "1 pod not ready in ingester-zone-a",
    );
  });

  // Upstream answers this with 403, after which a drainer gives up.
  it("a budget of 0 is denied for now, and so is a spent one", async () => {
    writeBudget(stage, { maxUnavailable: 0 });
    const zero = await callWebhook(stage);
    assert.deepEqual(
      [zero.answer.code, zero.answer.message, zero.answer.log?.["reason"]],
      [429, "max unavailable = 0", "max unavailable = 0"],
    );
    writeBudget(stage, { maxUnavailable: 1 });
    assert.equal((await callWebhook(stage)).answer.allowed, true);
    const spent = await callWebhook(stage, { name: "ingester-zone-b-0" });
    assert.deepEqual(
      [spent.answer.code, spent.answer.message, spent.answer.log],
      [429, "1 pod not ready in ingester-zone-a", { reason: "zpdb exceeded", budget: "ingester" }],
    );
  });

  for (const [where, more] of [
    ["the request", { dryRun: true }],
    ["the Eviction alone, as by kubectl drain", { object: eviction({ dryRun: ["All"] }) }],
  ] as const)
    it(`a dry run that is set in ${where} records nothing`, async () => {
      assert.equal((await callWebhook(stage, more)).answer.allowed, true);
      assert.deepEqual(reserved(stage), {});
    });

  it("a lost race is denied for now; any other failed read is an error, and its answer is the same, without the cause", async () => {
    const notNow = [429, "no decision could be made in time, try again"];
    const endFault = stage.emulator.faults.inject({ effect: { kind: "conflict" }, resource: BUDGETS });
    const { reserver, metrics } = startProcess(stage);
    const answerTo = createPodEviction({ reserver, metrics: metrics.budgets }).onFault;
    // The last try has what is left of the time, and may fail for it, here and below.
    const lost = await callWebhook(stage).then(
      ({ answer }) => answer,
      (error: RolloutError) => {
        assert.equal(error.code, "Timeout");
        return answerTo(error, reviewOf());
      },
    );
    assert.deepEqual([lost.code, lost.message], notNow);
    endFault();
    stage.emulator.faults.inject({ effect: { kind: "error" } });
    await assert.rejects(callWebhook(stage), ({ code }: RolloutError) => ["ServerError", "Timeout"].includes(code));
    const fault = answerTo(new Error("secret"), reviewOf());
    assert.deepEqual([fault.code, fault.message], notNow);
  });
});
