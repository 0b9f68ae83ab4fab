/** 12.5, in both modes: with the time in an annotation and with the zone tracker. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import {
  A,
  B,
  because,
  HOUR,
  inTracker,
  isRecent,
  LAST,
  MIN_TIME,
  MODES,
  pendingOf,
  play,
  recorded,
  settle,
  track,
} from "../prepare-stage.ts";
import { callWebhook, createZone, reviewOf, scaleReviewOf } from "../stage.ts";

for (const [mode, recordOf] of MODES) {
  const isTracker = recordOf === inTracker;
  /** Stores in this mode that the zone was scaled down so long ago. */
  const wasDownscaled = (ageMs: number): { annotations: Record<string, string> } => ({
    annotations: isTracker ? {} : { [LAST]: formatTimestamp(Date.now() - ageMs) },
  });

  describe(`prepare-downscale in ${mode}`, () => {
    it("a request that is no downscale, or a dry run, is allowed unchanged", async (t) => {
      const stage = await play(t, recordOf);
      const zone = createZone(stage, A);
      for (const request of [
        reviewOf(zone, 5),
        reviewOf(zone, 3),
        reviewOf(zone, 1, { dryRun: true }),
        scaleReviewOf(zone, 3),
      ])
        assert.equal((await callWebhook(stage.webhook, request)).allowed, true);
      assert.deepEqual([stage.seen, stage.calls], [[], []]);
    });

    for (const status of [200, 204])
      it(`pods that answer ${status} are prepared in descending order, and the time is stored`, async (t) => {
        const stage = await play(t, recordOf, () => status);
        settle(stage, recordOf);
        const zone = createZone(stage, A);
        const answer = await callWebhook(stage.webhook, reviewOf(zone, 1));
        const what = `downscale of statefulsets/${A} in default from 3 to 1 replicas`;
        assert.equal(answer.message, `${what} is allowed -- all pods successfully prepared for shutdown.`);
        assert.equal(answer.allowed, true);
        assert.deepEqual(stage.seen.toSorted(), [`POST ${A}-1`, `POST ${A}-2`]);
        isRecent(recorded(stage, A, answer));
        const [head] = stage.heads;
        assert.match(
          head?.url ?? "",
          /^http:\/\/ingester-zone-a-\d\.ingester\.default\.svc\.cluster\.local\.:\d+\/prepare$/,
        );
        assert.partialDeepStrictEqual(head?.headers, {
          "content-type": "application/json",
          "content-length": "0",
          "x-cluster": "default",
        });
      });

    it("a zone with the name of what every object inherits has no earlier downscale, and shrinks", async (t) => {
      const stage = await play(t, recordOf);
      settle(stage, recordOf);
      const answer = await callWebhook(stage.webhook, reviewOf(createZone(stage, "constructor"), 1));
      assert.deepEqual(
        [answer.message, answer.allowed],
        [
          "downscale of statefulsets/constructor in default from 3 to 1 replicas is allowed -- all pods successfully prepared for shutdown.",
          true,
        ],
      );
      isRecent(pendingOf(stage)["constructor"]?.at);
      isRecent(recorded(stage, "constructor", answer));
    });

    it("a Scale is prepared like its StatefulSet, and the time is stored apart from the StatefulSet, which must not change in the meantime", async (t) => {
      const stage = await play(t, recordOf);
      settle(stage, recordOf);
      const zone = createZone(stage, A);
      const answer = await callWebhook(stage.webhook, scaleReviewOf(zone, 1));
      assert.deepEqual([answer.allowed, answer.patch], [true, undefined]);
      assert.deepEqual(stage.seen.toSorted(), [`POST ${A}-1`, `POST ${A}-2`]);
      isRecent(pendingOf(stage)[A]?.at);
      if (isTracker) isRecent(recorded(stage, A));
      assert.deepEqual(
        stage.calls.filter((call) => call.includes("statefulsets") && !call.startsWith("GET")),
        [],
      );
    });

    it("waits for a zone that was just scaled down and has a minimum time", async (t) => {
      const stage = await play(t, recordOf);
      const zone = createZone(stage, A);
      createZone(stage, B, { labels: { [MIN_TIME]: "12h" }, ...wasDownscaled(0) });
      if (isTracker) track(stage, { [B]: Date.now() });
      const answer = await callWebhook(stage.webhook, reviewOf(zone, 1));
      assert.equal(answer.allowed, false);
      assert.match(
        answer.message ?? "",
        /1 replicas is not allowed because statefulset ingester-zone-b was downscaled at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC and is labelled to wait 12h0m0s between zone downscales$/,
      );
      assert.deepEqual(stage.seen, []);
    });

    it("waits for a zone that the reconciler scaled down, which writes the annotation in both modes", async (t) => {
      const stage = await play(t, recordOf);
      const zone = createZone(stage, A);
      createZone(stage, B, {
        labels: { [MIN_TIME]: "12h" },
        annotations: { [LAST]: formatTimestamp(Date.now() - HOUR / 60) },
      });
      track(stage, { [A]: Date.now() - 13 * HOUR, [B]: Date.now() - 13 * HOUR });
      const { allowed, message } = await callWebhook(stage.webhook, reviewOf(zone, 1));
      assert.equal(allowed, false);
      assert.match(message ?? "", /statefulset ingester-zone-b was downscaled at .* labelled to wait 12h0m0s/);
    });

    const PATIENT: readonly [string, number, string | undefined][] = [
      ["was scaled down long ago", 13 * HOUR, "12h"],
      ["is not labelled", 0, undefined],
      ["is labelled to wait for less than this one is", 2 * HOUR, "1h"],
    ];
    for (const [name, age, label] of PATIENT)
      it(`does not wait for a zone that ${name}`, async (t) => {
        const stage = await play(t, recordOf);
        const zone = createZone(stage, A, { labels: { [MIN_TIME]: "12h" }, ...wasDownscaled(0) });
        createZone(stage, B, { labels: label ? { [MIN_TIME]: label } : {}, ...wasDownscaled(age) });
        if (isTracker) track(stage, { [A]: Date.now(), [B]: Date.now() - age });
        assert.equal((await callWebhook(stage.webhook, reviewOf(zone, 1))).allowed, true);
      });

    const unreadable = isTracker
      ? "parsing parsing downscale timestamps from the zone ConfigMap failed."
      : "parsing downscale annotations failed.";
    for (const [what, label, time] of [
      ["a time", "12h", "yesterday"],
      ["a label", "soon", formatTimestamp(Date.now())],
    ] as const)
      it(`does not guess ${what} of another zone that cannot be read`, async (t) => {
        const stage = await play(t, recordOf);
        const zone = createZone(stage, A);
        createZone(stage, B, { labels: { [MIN_TIME]: label }, annotations: isTracker ? {} : { [LAST]: time } });
        if (isTracker) track(stage, { [B]: JSON.stringify({ LASTDOWNSCALED: time }) });
        assert.equal((await callWebhook(stage.webhook, reviewOf(zone, 1))).message, because(A, unreadable));
      });

    it("after an answer of 500 all preparations are cancelled, and the downscale is denied", async (t) => {
      const stage = await play(t, recordOf, (method) => (method === "POST" ? 500 : 200));
      settle(stage, recordOf);
      const zone = createZone(stage, A);
      const answer = await callWebhook(stage.webhook, reviewOf(zone, 1));
      const [, why, pod, url] =
        /^(.*): (ingester-zone-a-[12]) at (\S+): it answered 500\.$/.exec(answer.message ?? "") ??
        assert.fail(answer.message);
      assert.equal(why, because(A, "one or more pods failed to prepare for shutdown"));
      assert.match(
        url ?? "",
        new RegExp(`^http://${pod}\\.ingester\\.default\\.svc\\.cluster\\.local\\.:8080/prepare$`),
      );
      assert.deepEqual(
        stage.drafts.map(({ regarding: { kind, name }, type, reason, message }) => [kind, name, type, reason, message]),
        [["StatefulSet", A, "Warning", "PrepareFailed", answer.message]],
      );
      assert.deepEqual(stage.seen.filter((request) => request.startsWith("DELETE")).toSorted(), [
        `DELETE ${A}-1`,
        `DELETE ${A}-2`,
      ]);
      assert.equal(recorded(stage, A, answer), undefined);
    });

    if (isTracker)
      it("a downscale whose time cannot be stored is undone", async (t) => {
        const stage = await play(t, recordOf);
        settle(stage, recordOf);
        const zone = createZone(stage, A);
        stage.emulator.faults.inject({ verb: "update", resource: "configmaps", effect: { kind: "error" } });
        const answer = await callWebhook(stage.webhook, scaleReviewOf(zone, 1));
        assert.equal(answer.message, because(A, stage.record.messages.unsaved));
        assert.deepEqual(stage.seen.toSorted(), [`DELETE ${A}-1`, `DELETE ${A}-2`, `POST ${A}-1`, `POST ${A}-2`]);
        assert.deepEqual(pendingOf(stage), {});
      });

    for (const [name, other, waits] of [
      ["as the only zone of its group", undefined, false],
      ["as one of two zones", {}, false],
      ["beside a zone of no pods", { replicas: 0 }, false],
      ["beside a zone of no pods whose template is new", { replicas: 0, updated: 0 }, false],
      ["beside a zone of which a pod is not ready", { ready: 2 }, true],
    ] as const)
      it(`a zone ${waits ? "waits" : "is prepared"} to go to no pods ${name}`, async (t) => {
        const stage = await play(t, recordOf);
        settle(stage, recordOf);
        const zone = createZone(stage, A);
        if (other) createZone(stage, B, other);
        const answer = await callWebhook(stage.webhook, reviewOf(zone, 0));
        assert.equal(answer.allowed, !waits, answer.message);
        const pods = waits ? [] : [`POST ${A}-0`, `POST ${A}-1`, `POST ${A}-2`];
        assert.deepEqual(stage.seen.toSorted(), pods);
      });

    it("waits for no other zone if all the pods that go serve nothing: they may be what the others wait for", async (t) => {
      const stage = await play(t, recordOf);
      settle(stage, recordOf);
      const zone = createZone(stage, A, { ready: 1 });
      createZone(stage, B, { ready: 1, updated: 3 });
      const messageTo = async (replicas: number): Promise<string | undefined> =>
        (await callWebhook(stage.webhook, reviewOf(zone, replicas))).message;
      const why = `statefulset ${B} has 0 non-updated replicas and 2 non-ready replicas`;
      assert.equal(await messageTo(0), because(A, why).replace("to 1 replicas", "to 0 replicas"));
      assert.deepEqual(stage.seen, []);
      assert.match((await messageTo(1)) ?? "", /successfully prepared/);
    });

    it("waits for other zones with outdated or unready pods, regardless of its own", async (t) => {
      const stage = await play(t, recordOf);
      settle(stage, recordOf);
      const zone = createZone(stage, A, { ready: 2 });
      const other = createZone(stage, B, { replicas: 1, updated: 0 });
      const messageOfRequest = async (): Promise<string | undefined> =>
        (await callWebhook(stage.webhook, reviewOf(zone, 1))).message;
      assert.equal(
        await messageOfRequest(),
        because(A, `statefulset ${B} has 1 non-updated replicas and 0 non-ready replicas`),
      );
      const { store } = stage.emulator;
      store.remove("pods", "default", `${B}-0`);
      assert.equal(
        await messageOfRequest(),
        because(A, `statefulset ${B} has 1 non-updated replicas and 1 non-ready replicas`),
      );
      assert.deepEqual(stage.seen, []);
      store.remove("statefulsets.apps", "default", other.metadata?.name ?? "");
      assert.match((await messageOfRequest()) ?? "", /successfully prepared/);
    });
  });
}
