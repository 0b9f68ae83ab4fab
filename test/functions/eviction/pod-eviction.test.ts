import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import type { AdmissionRequest, Answer } from "../../../functions/http/webhook.ts";
import { createPodEviction } from "../../../functions/eviction/pod-eviction.ts";
import type { Metrics } from "../../../infra/metrics/metrics.ts";
import { evictionIdentity } from "../../../reconciler/budget/reservation.ts";
import { BUDGETS, reserved, setBudgetStage, startProcess, writeBudget } from "../../reconciler/budget-stage.ts";
import type { Stage } from "../../reconciler/stage.ts";

const MUTATING = "/admission/mutate-pod-eviction";
const VALIDATING = "/admission/pod-eviction";

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

let processes = 0;

/** Calls the webhook of a new process. */
async function callWebhook(more: Partial<AdmissionRequest> = {}, path = MUTATING): Promise<{ answer: Answer; metrics: Metrics }> {
  const { reserver, metrics } = startProcess(stage, evictionIdentity(`process-${++processes}`));
  const webhook = createPodEviction({ reserver, metrics: metrics.budgets });
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const answer = await webhook.handle(review(more), {
    path,
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
  ["a pod that may be evicted", {}, { allowed: true, reason: "Allowed" }, "allowed"],
  ["E05 a terminating pod", { name: "ingester-zone-c-2" }, { allowed: true, warnings: ["pod is not ready"] }, "pod-not-ready"],
];

const add = (path: string, value: unknown): object[] => [{ op: "add", path: `/deleteOptions${path}`, value }];

/** The client's deleteOptions, and the patch. */
const PINS: readonly [what: string, deleteOptions: object | null | undefined, patch: object[]][] = [
  ["no deleteOptions", undefined, add("", { preconditions: { uid: "UID" } })],
  ["deleteOptions that are null", null, add("", { preconditions: { uid: "UID" } })],
  ["a grace period", { gracePeriodSeconds: 5 }, add("/preconditions", { uid: "UID" })],
  ["preconditions that are null", { preconditions: null }, add("/preconditions", { uid: "UID" })],
  ["a resourceVersion", { preconditions: { resourceVersion: "7" } }, add("/preconditions/uid", "UID")],
  ["a UID that is null", { preconditions: { uid: null } }, add("/preconditions/uid", "UID")],
];

const eviction = (deleteOptions?: object | null): object => ({
  apiVersion: "policy/v1",
  kind: "Eviction",
  metadata: {},
  ...(deleteOptions !== undefined && { deleteOptions }),
});

const uidOf = (pod: string): string => stage.emulator.store.get("pods", "default", pod)?.metadata.uid ?? "";

function setPhase(name: string, phase: string): void {
  const pod = stage.emulator.store.get("pods", "default", name);
  assert.ok(pod);
  stage.emulator.store.update("pods", { ...pod, status: { ...(pod["status"] as object), phase } });
}

describe("/admission/pod-eviction", () => {
  for (const [name, more, expected, metric] of CASES) {
    it(`${name}: ${metric}`, async () => {
      stage = await setBudgetStage();
      if (metric === "pod-not-ready") stage.emulator.store.remove("pods", "default", "ingester-zone-c-2");
      else writeBudget(stage);
      const { answer, metrics } = await callWebhook(more);
      for (const [key, value] of Object.entries(expected)) assert.deepEqual(answer[key as keyof Answer], value);
      assert.equal(answer.allowed, expected.code === undefined);
      const text = await metrics.render();
      assert.match(text, new RegExp(`zpdb_eviction_requests_total\\{reason="${metric}",status="${expected.code ?? 200}"\\} 1`));
      assert.match(text, /zpdb_inflight_eviction_requests 0/);
    });
  }

  for (const [what, deleteOptions, patch] of PINS) {
    it(`an allowed eviction is pinned to the judged pod: ${what}`, async () => {
      stage = await setBudgetStage();
      writeBudget(stage);
      const { answer } = await callWebhook({ object: eviction(deleteOptions) });
      const uid = uidOf("ingester-zone-a-0");
      assert.deepEqual(answer.patch, JSON.parse(JSON.stringify(patch).replace("UID", uid)));
      assert.equal(reserved(stage)["ingester-zone-a-0"]?.uid, uid);
      assert.equal((await callWebhook({ object: eviction(deleteOptions) }, VALIDATING)).answer.patch, undefined);
    });
  }

  it("the client's UID stays", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const own = { preconditions: { uid: uidOf("ingester-zone-a-0") } };
    const { answer } = await callWebhook({ object: eviction(own) });
    assert.deepEqual([answer.allowed, answer.patch], [true, undefined]);
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
  });

  it("an eviction pinned to another UID is allowed without a reservation: it cannot take effect", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const { answer } = await callWebhook({ object: eviction({ preconditions: { uid: "of the one before" } }) });
    assert.deepEqual([answer.allowed, answer.reason, answer.patch], [true, "OtherPod", undefined]);
    assert.deepEqual(reserved(stage), {});
  });

  it("a terminating pod may be evicted again with its UID, but not without", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const uid = uidOf("ingester-zone-c-2");
    stage.emulator.store.remove("pods", "default", "ingester-zone-c-2");
    const name = "ingester-zone-c-2";
    const mutating = (await callWebhook({ name, object: eviction() })).answer;
    assert.deepEqual([mutating.allowed, mutating.warnings], [true, ["pod is not ready"]]);
    assert.deepEqual(mutating.patch, [{ op: "add", path: "/deleteOptions", value: { preconditions: { uid } } }]);
    const validating = (await callWebhook({ name, object: eviction() }, VALIDATING)).answer;
    assert.deepEqual([validating.code, validating.reason], [429, "PodTerminating"]);
    assert.equal((await callWebhook({ name, object: eviction({ preconditions: { uid } }) }, VALIDATING)).answer.allowed, true);
  });

  it("a Pending pod is judged and reserved like others", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    setPhase("ingester-zone-a-0", "Pending");
    assert.equal((await callWebhook({ name: "ingester-zone-b-0" })).answer.message, "1 pod not ready in ingester-zone-a");
    assert.equal((await callWebhook()).answer.reason, "Allowed");
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
    setPhase("ingester-zone-a-0", "Running");
    assert.equal((await callWebhook({ name: "ingester-zone-b-0" })).answer.message, "1 pod not ready in ingester-zone-a");
  });

  it("registered as validating, it allows a UID once in 15 s", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const object = eviction();
    assert.equal((await callWebhook({ object }, VALIDATING)).answer.reason, "Allowed");
    const again = (await callWebhook({ object }, VALIDATING)).answer;
    assert.deepEqual([again.code, again.reason], [429, "AllowedAlready"]);
    await stage.time.advance(15_000);
    assert.equal((await callWebhook({ object }, VALIDATING)).answer.reason, "Allowed");
  });

  it("registered as validating, it allows no eviction with a UID in the 15 s after one without: that one might then reach the successor", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const pinned = eviction({ preconditions: { uid: uidOf("ingester-zone-a-0") } });
    assert.equal((await callWebhook({ object: eviction() }, VALIDATING)).answer.reason, "Allowed");
    const again = (await callWebhook({ object: pinned }, VALIDATING)).answer;
    assert.deepEqual([again.code, again.reason], [429, "AllowedAlready"]);
    await stage.time.advance(15_000);
    for (let i = 0; i < 2; i++) assert.equal((await callWebhook({ object: pinned }, VALIDATING)).answer.reason, "Allowed");
  });

  it("an eviction of a pod without a budget is pinned as well: its successor may be under one", async () => {
    stage = await setBudgetStage();
    const { answer } = await callWebhook({ object: eviction() });
    const uid = uidOf("ingester-zone-a-0");
    assert.deepEqual([answer.reason, answer.patch], ["PodNotInScope", add("", { preconditions: { uid } })]);
  });

  it("registered as validating, it allows a UID once in 15 s for as long as it is called", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const reasons: (string | undefined)[] = [];
    for (let second = 0; second < 60; second += 4) {
      reasons.push((await callWebhook({ object: eviction() }, VALIDATING)).answer.reason);
      await stage.time.advance(4000);
    }
    const allowedAt = reasons.flatMap((reason, i) => (reason === "Allowed" ? [i * 4] : []));
    assert.deepEqual(allowedAt, [0, 16, 32, 48]);
  });

  it("registered as both, it refuses nothing and reserves nothing twice", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const versionOf = (): string | undefined => stage.emulator.store.get(BUDGETS, "default", "ingester")?.metadata.resourceVersion;
    const uid = uidOf("ingester-zone-a-0");
    assert.equal((await callWebhook({ object: eviction() })).answer.reason, "Allowed");
    const [version, before] = [versionOf(), reserved(stage)];
    assert.equal((await callWebhook({ object: eviction({ preconditions: { uid } }) }, VALIDATING)).answer.reason, "Allowed");
    assert.deepEqual([versionOf(), reserved(stage)], [version, before]);
  });

  // Upstream answers this with 403, after which a drainer gives up.
  it("E08 a budget of 0 is denied for now, and so is a spent one", async () => {
    stage = await setBudgetStage();
    writeBudget(stage, { maxUnavailable: 0 });
    const zero = await callWebhook();
    assert.deepEqual(
      [zero.answer.code, zero.answer.message, zero.answer.log?.["reason"]],
      [429, "max unavailable = 0", "max unavailable = 0"],
    );
    writeBudget(stage, { maxUnavailable: 1 });
    assert.equal((await callWebhook()).answer.allowed, true);
    const spent = await callWebhook({ name: "ingester-zone-b-0" });
    assert.deepEqual(
      [spent.answer.code, spent.answer.message, spent.answer.log],
      [429, "1 pod not ready in ingester-zone-a", { reason: "zpdb exceeded", budget: "ingester" }],
    );
  });

  it("a dry run that is set only in the Eviction, as by kubectl drain, records nothing", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const object = { apiVersion: "policy/v1", kind: "Eviction", metadata: {}, deleteOptions: { dryRun: ["All"] } };
    assert.equal((await callWebhook({ object })).answer.allowed, true);
    assert.deepEqual(reserved(stage), {});
  });

  it("E26 a dry run records nothing", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    assert.equal((await callWebhook({ dryRun: true })).answer.allowed, true);
    assert.deepEqual(reserved(stage), {});
  });

  it("a lost race is denied for now; any other failed read is an error, and its answer is the same, without the cause", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const notNow = [429, "no decision could be made in time, try again"];
    const endFault = stage.emulator.faults.inject({ effect: { kind: "conflict" }, resource: BUDGETS });
    const { answer } = await callWebhook();
    assert.deepEqual([answer.code, answer.message], notNow);
    endFault();
    stage.emulator.faults.inject({ effect: { kind: "error" } });
    await assert.rejects(callWebhook(), { code: "ServerError" });
    const { reserver, metrics } = startProcess(stage);
    const fault = createPodEviction({ reserver, metrics: metrics.budgets }).onFault(new Error("secret"), review());
    assert.deepEqual([fault.code, fault.message], notNow);
  });
});
