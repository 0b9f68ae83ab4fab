/**
 * Two zones of one group that shrink at once: the first is admitted and not stored yet because other webhooks are slow.
 * And a group of more zones than are handled.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { A, B, because, HOUR, MIN_TIME, MODES, pendingOf, play, settle, track } from "../prepare-stage.ts";
import { callWebhook, createZone, reviewOf, scaleReviewOf, type Stage } from "../stage.ts";

for (const [mode, recordOf] of MODES)
  for (const [kind, review] of [
    ["StatefulSet", reviewOf],
    ["Scale", scaleReviewOf],
  ] as const)
    it(`in ${mode} a ${kind} waits for another zone whose downscale was admitted and may still be stored, also without a minimum time`, async (t) => {
      const stage = await play(t, recordOf);
      settle(stage, recordOf);
      const [a, b] = [createZone(stage, A), createZone(stage, B)];
      assert.equal((await callWebhook(stage.webhook, review(a, 2))).allowed, true);
      const { at } = pendingOf(stage)[A] ?? {};
      const answer = await callWebhook(stage.webhook, review(b, 2));
      const why = `the downscale of ${A} from 3 to 2 replicas, admitted at ${at}, may still be stored`;
      assert.deepEqual(
        [answer.allowed, answer.reason, answer.message],
        [false, "OtherZoneNotReady", because(B, why, 2)],
      );
      assert.deepEqual([stage.seen, Object.keys(pendingOf(stage))], [[`POST ${A}-2`], [A]]);
    });

/** Zone b is deleted without its pods, which are ready. */
function orphan(stage: Stage): void {
  const { store } = stage.emulator;
  for (const pod of store.list("pods", "default")) {
    if (!pod.metadata.name.startsWith(B)) continue;
    const { ownerReferences: _, ...metadata } = pod.metadata;
    const labels = { "rollout-group": "ingester", "statefulset.kubernetes.io/pod-name": metadata.name };
    store.update("pods", { ...pod, metadata: { ...metadata, labels } });
  }
  store.remove("statefulsets.apps", "default", B);
}

for (const [mode, recordOf] of MODES)
  for (const [hours, reason] of [
    [1, "MinTimeNotElapsed"],
    [13, "Prepared"],
  ] as const)
    it(`in ${mode} a zone whose StatefulSet is gone counts by the tracker ${hours} h after its downscale: ${reason}`, async (t) => {
      const stage = await play(t, recordOf);
      track(stage, { [B]: Date.now() - hours * HOUR });
      createZone(stage, B);
      const { metadata, spec } = createZone(stage, A, { labels: { [MIN_TIME]: "12h" } });
      orphan(stage);
      const { store } = stage.emulator;
      const template = { ...spec?.template, metadata: { labels: { name: A, "rollout-group": "ingester" } } };
      const stored = store.get("statefulsets.apps", "default", metadata?.name ?? "");
      assert.ok(stored);
      const a = store.update("statefulsets.apps", { ...stored, spec: { ...spec, template } });
      const answer = await callWebhook(stage.webhook, reviewOf(a, 2));
      assert.deepEqual([answer.allowed, answer.reason], [hours === 13, reason], answer.message);
    });

for (const [count, allowed] of [
  [MAX_ZONES, true],
  [MAX_ZONES + 1, false],
] as const)
  it(`a zone of a group of ${count} zones is ${allowed ? "" : "not "}scaled down`, async (t) => {
    const [, recordOf] = MODES[0] ?? assert.fail();
    const stage = await play(t, recordOf);
    for (let i = 1; i < count; i++) createZone(stage, `zone-${i}`, { replicas: 0 });
    const answer = await callWebhook(stage.webhook, reviewOf(createZone(stage, A), 2));
    const why = because(A, "group ingester has 33 zones, more than 32.", 2);
    assert.deepEqual(
      [answer.allowed, allowed || answer.message, stage.seen],
      allowed ? [true, true, [`POST ${A}-2`]] : [false, why, []],
    );
  });
