/**
 * Three zones that are scaled down at once through three processes, while the API server conflicts, fails and loses
 * answers.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { recordInAnnotation, recordInTracker } from "../../functions/downscale/downscale-record.ts";
import type { AdmissionRequest, Answer } from "../../functions/http/webhook.ts";
import type { Webhook } from "../../functions/http/webhook.ts";
import { systemClock } from "../../infra/clock.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import type { Effect } from "../emulator/faults.ts";
import { leftPrepared } from "./prepare-stage.ts";
import {
  callWebhook,
  createZone,
  playPods,
  reviewOf,
  scaleReviewOf,
  setStage,
  startPrepareDownscale,
} from "./stage.ts";
import { either } from "../runs.ts";

const ROUNDS = either(40, 12);
const TRACKER = "tracker";
const ZONES = ["zone-a", "zone-b", "zone-c"];
const EFFECTS: readonly Effect[] = [
  { kind: "conflict" },
  { kind: "error" },
  { kind: "dropBefore" },
  { kind: "dropAfter" },
  { kind: "latency", ms: 3 },
];
const labels = { "grafana.com/min-time-between-zones-downscale": "12h" };

for (const mode of ["annotation mode", "tracker mode"])
  describe(`three zones at once in ${mode}`, () => {
    it(`are never admitted together, and refused ones are not left prepared: ${ROUNDS} rounds`, async (t) => {
      const outcomes = { allowed: 0, refused: 0 };
      for (let round = 0; round < ROUNDS; round++) {
        const stage = await setStage(t);
        const failing = round % 4 === 3;
        const { podHttp, seen } = await playPods(t, (method, pod) =>
          failing && method === "POST" && pod.endsWith("-1") ? 500 : 200,
        );
        const zones = ZONES.map((name) => createZone(stage, name, { labels }));
        stage.emulator.store.create("configmaps", {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name: TRACKER, namespace: "default" },
        });
        const processOf = (): Webhook => {
          const tools = { cluster: stage.cluster, clock: systemClock };
          const record =
            mode === "tracker mode"
              ? recordInTracker(tools, TRACKER)
              : recordInAnnotation(tools, "rollout-operator-zone-tracker");
          return startPrepareDownscale({ ...tools, podHttp, record });
        };
        if (round % 2) {
          await leaveLease(processOf, createZone(stage, "zone-d"));
          // Its admissions may no longer be stored, and hold no other zone.
          stage.emulator.store.remove("statefulsets.apps", "default", "zone-d");
        }
        seen.length = 0;
        for (const [i, effect] of EFFECTS.entries())
          for (const resource of ["leases.coordination.k8s.io", "statefulsets.apps", "configmaps", "pods"])
            stage.emulator.faults.inject({ effect, resource, probability: ((round * 7 + i * 3) % 5) / 40 });
        const answers = await Promise.all(zones.map((zone, i) => callWebhook(processOf(), requestFor(zone, round, i))));
        const through = ZONES.filter((_, i) => answers[i]?.allowed);
        assert.ok(through.length <= 1, `round ${round}: ${through.join()}`);
        for (const pod of leftPrepared(seen))
          assert.ok(through.includes(pod.slice(0, -2)), `round ${round}: ${pod} is left prepared`);
        stage.emulator.faults.clear();
        await askOthers(zones, answers, processOf);
        outcomes[through.length === 1 ? "allowed" : "refused"]++;
      }
      assert.ok(outcomes.allowed > either(5, 1) && outcomes.refused > either(5, 1), JSON.stringify(outcomes));
    });
  });

/** Creates and releases the group's Lease: taking it is then another call than creating it. */
async function leaveLease(processOf: () => Webhook, zone: StatefulSet): Promise<void> {
  assert.equal((await callWebhook(processOf(), reviewOf(zone, 2, { uid: "first" }))).allowed, true);
}

/** Some through their own object, some through their scale. */
function requestFor(zone: StatefulSet, round: number, i: number): AdmissionRequest {
  const uid = `${round}-${i}`;
  return (round + i) % 2 ? reviewOf(zone, 1, { uid }) : scaleReviewOf(zone, 1, { uid });
}

/** After one was admitted, the others have to wait, also without faults. */
async function askOthers(
  zones: readonly StatefulSet[],
  answers: readonly Answer[],
  processOf: () => Webhook,
): Promise<void> {
  if (!answers.some(({ allowed }) => allowed)) return;
  for (const [i, zone] of zones.entries())
    if (!answers[i]?.allowed)
      assert.equal(
        (await callWebhook(processOf(), reviewOf(zone, 1, { uid: `late-${i}` }))).allowed,
        false,
        zone.metadata?.name ?? "",
      );
}
