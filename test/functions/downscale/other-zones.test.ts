/**
 * Two zones of one group that shrink at once: the first is admitted and not stored yet because other webhooks are slow.
 * And a group of more zones than are handled.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { MAX_ZONES } from "../../../reconciler/model/too-many-zones.ts";
import { A, B, because, MODES, pendingOf, play, settle } from "../prepare-stage.ts";
import { callWebhook, createZone, reviewOf, scaleReviewOf } from "../stage.ts";

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
