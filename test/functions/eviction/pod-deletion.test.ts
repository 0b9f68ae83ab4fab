/** A pod that somebody deletes asks its budget as an eviction does (§5.12). */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { AdmissionRequest, Answer } from "../../../functions/http/webhook.ts";
import { createPodDeletion } from "../../../functions/eviction/pod-deletion.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { Draft } from "../../../reconciler/report/events.ts";
import { BUDGETS, reserved, setBudgetStage, startProcess, writeBudget } from "../../reconciler/budget-stage.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { callWebhook, eviction, uidOf } from "./eviction-stage.ts";
import { review } from "../../builders/reviews.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await setBudgetStage();
  writeBudget(stage);
});
afterEach(() => stage.close());

let processes = 0;

/** Asks the webhook of a new process; resolves with its answer, its Events and its metrics. */
async function askToDelete(pod: string, more: Partial<AdmissionRequest> = {}, by?: string) {
  const { reserver, metrics } = startProcess(stage, by ?? `deletion-${++processes}`);
  const events: Draft[] = [];
  const emitEvents = (drafts: readonly Draft[]): void => void events.push(...drafts);
  const webhook = createPodDeletion({ reserver, metrics: metrics.budgets, emitEvents });
  const request = review("Pod", pod, {
    userInfo: { username: "jane", groups: ["system:authenticated"] },
    oldObject: stage.emulator.store.get("pods", "default", pod),
    ...more,
  });
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const context = { path: "/admission/pod-deletion", signal: new AbortController().signal, log };
  const answer: Answer = await webhook.handle(request, { ...context, deadlineAt: stage.clock.monotonic() + 60_000 });
  return { answer, events, text: await metrics.render() };
}

const A = "ingester-zone-a-0";
const B = "ingester-zone-b-0";
const BY_HAND = `try again later; to delete it all the same: kubectl -n default annotate pod ${B} zonewise/delete-by-hand=true`;

describe("/admission/pod-deletion", () => {
  it("the first deletion is reserved, and one in a second zone is denied, with an Event and a count", async () => {
    const first = await askToDelete(A);
    assert.deepEqual([first.answer.allowed, first.answer.reason, first.events], [true, "Allowed", []]);
    assert.equal(reserved(stage)[A]?.uid, uidOf(stage, A));
    const second = await askToDelete(B);
    assert.deepEqual(
      [second.answer.allowed, second.answer.code, second.answer.message],
      [false, 429, `${B} is not deleted: 1 pod not ready in ingester-zone-a; ${BY_HAND}`],
    );
    assert.deepEqual(
      second.events.map(({ regarding, type, reason, message }) => [regarding.name, type, reason, message]),
      [[B, "Warning", "DeletionDenied", "jane may not delete it: 1 pod not ready in ingester-zone-a"]],
    );
    assert.match(second.text, /zpdb_eviction_requests_total\{reason="denied",status="429"\} 1/);
    assert.deepEqual(Object.keys(reserved(stage)), [A]);
  });

  it("evictions count a deletion, and deletions an eviction", async () => {
    assert.equal((await askToDelete(A)).answer.allowed, true);
    assert.equal((await callWebhook(stage, { name: B })).answer.code, 429);
    // A user who deletes the pod that was evicted takes nothing more.
    assert.equal((await callWebhook(stage, { name: A, object: eviction() })).answer.allowed, true);
    assert.equal((await askToDelete(A)).answer.allowed, true);
  });

  it("the rollout counts a deletion, too", async () => {
    assert.equal((await askToDelete(A)).answer.allowed, true);
    assert.equal(
      await startProcess(stage, "reconciler").requestDisruption("zone-b-0", { rollout: { maxUnavailable: 1 } }),
      `1 pod not ready in ingester-zone-a (ready, but allowed to go: ${A})`,
    );
  });

  it("a pod that the rollout deletes is not deleted by others in the same moment", async () => {
    assert.equal(
      await startProcess(stage, "reconciler").requestDisruption("zone-a-0", { rollout: { maxUnavailable: 1 } }),
      "Allowed",
    );
    const { answer } = await askToDelete(A);
    assert.deepEqual([answer.code, answer.reason], [429, "AllowedAlready"]);
  });

  it("two users who delete in two zones at once: one of the pods stays", async () => {
    const answers = await Promise.all([askToDelete(A), askToDelete(B)]);
    assert.equal(answers.filter(({ answer }) => answer.allowed).length, 1);
    assert.equal(Object.keys(reserved(stage)).length, 1);
  });

  it("a dry run reserves nothing, and its denial leaves no Event", async () => {
    assert.equal((await askToDelete(A, { dryRun: true })).answer.allowed, true);
    assert.deepEqual(reserved(stage), {});
    writeBudget(stage, { maxUnavailable: 0 });
    const { answer, events } = await askToDelete(A, { dryRun: true });
    assert.deepEqual([answer.code, events], [429, []]);
  });

  it("a deletion of a pod that has gone has no effect on its successor", async () => {
    const seen = stage.emulator.store.get("pods", "default", A);
    const oldObject = { ...seen, metadata: { ...seen?.metadata, uid: "earlier" } };
    const { allowed, reason } = (await askToDelete(A, { oldObject })).answer;
    assert.deepEqual([allowed, reason, reserved(stage)], [true, "OtherPod", {}]);
  });

  it("a deletion of a collection has no name: the pod's own counts", async () => {
    const oldObject = stage.emulator.store.get("pods", "default", A);
    assert.equal((await askToDelete("", { name: "", oldObject })).answer.reason, "Allowed");
    assert.deepEqual(Object.keys(reserved(stage)), [A]);
  });

  it("a pod that no budget selects may go, and so does one whose deletion asks nobody", async () => {
    stage.emulator.store.remove(BUDGETS, "default", "ingester");
    assert.equal((await askToDelete(A)).answer.reason, "PodNotInScope");
    writeBudget(stage, { maxUnavailable: 0 });
    const username = "system:serviceaccount:kube-system:statefulset-controller";
    const { answer } = await askToDelete(A, { userInfo: { username } });
    assert.deepEqual([answer.allowed, answer.reason], [true, "ByController"]);
  });

  it("a budget that is invalid keeps its pods, and the way out is named", async () => {
    writeBudget(stage, { maxUnavailable: -1 });
    const { answer } = await askToDelete(B);
    assert.deepEqual([answer.allowed, answer.code], [false, 400]);
    assert.match(
      answer.message ?? "",
      /ingester is not valid: .*; to delete it all the same: kubectl -n default annotate/,
    );
  });

  for (const [what, more, message] of [
    ["another operation", { operation: "UPDATE" }, "request operation is not delete, got: UPDATE"],
    ["a subresource", { subResource: "eviction" }, "request is not for pods, got: pods/eviction"],
    [
      "another kind",
      { resource: { group: "", version: "v1", resource: "nodes" } },
      "request is not for pods, got: nodes",
    ],
    ["no pod", { oldObject: null }, "request did not include the pod that is deleted"],
    [
      "a pod without a UID",
      { oldObject: { metadata: { name: A } } },
      "request did not include the pod that is deleted",
    ],
  ] as const)
    it(`${what} is refused`, async () => {
      const { answer } = await askToDelete(A, more);
      assert.deepEqual([answer.code, answer.message], [400, message]);
    });

  it("a fault is no yes", () => {
    const { reserver, metrics } = startProcess(stage);
    const { onFault } = createPodDeletion({ reserver, metrics: metrics.budgets, emitEvents: () => {} });
    const answer = onFault(new RolloutError("Timeout", "secret"), {
      namespace: "default",
      name: B,
    } as AdmissionRequest);
    assert.deepEqual(
      [answer.allowed, answer.code, answer.message],
      [false, 429, `no decision could be made in time, try again; ${BY_HAND}`],
    );
  });
});
