/** Any facts about a group, and any result of each step. */
import type { ScaleZone } from "../../../reconciler/model/outcome.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { hold } from "../../../reconciler/model/decision.ts";
import { decideScaling } from "../../../reconciler/scaling/decide-scaling.ts";
import type { Zone } from "../../../reconciler/model/zone.ts";
import { readDelay } from "../../../reconciler/scaling/delayed.ts";
import {
  addFacts,
  planScale,
  type PodAnswers,
  type ScalingSnapshot,
  type ScalingStep,
  type ZoneFacts,
  zoneFactsOf,
} from "../../../reconciler/scaling/snapshot.ts";
import { least, runs } from "../../runs.ts";
import type { ZoneTraits } from "../builders.ts";
import { reference, sceneOf } from "./decide-scene.ts";
import { DELAYED, MIRROR, NO_WRITE_BACK } from "./mirror-stage.ts";
import { minTime, NOW } from "./snapshots.ts";

const LEADER = "grafana.com/rollout-downscale-leader";
const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined });
const small = fc.nat(5);

const traits = fc
  .record({
    replicas: small,
    annotations: fc.constantFrom<Record<string, string>>(
      {},
      { [LEADER]: "ingester-zone-a" },
      { [LEADER]: "ingester-zone-b" },
      MIRROR,
      { ...MIRROR, ...NO_WRITE_BACK },
      { ...MIRROR, ...DELAYED },
      { ...MIRROR, ...DELAYED, "grafana.com/rollout-delayed-downscale": "soon" },
    ),
    forced: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, small),
    waits: fc.boolean(),
    terminating: fc.integer({ min: 0, max: 19 }).map((n) => n === 0),
  })
  .map(({ replicas, annotations, forced, waits, terminating }): ZoneTraits => ({
    replicas,
    terminating,
    annotations: {
      ...annotations,
      ...(forced !== undefined && { "grafana.com/rollout-force-replicas": String(forced) }),
    },
    ...(waits && minTime("12h")),
  }));
const zones = fc.array(traits, { minLength: 1, maxLength: 4, size: "max" });

const reading = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(small, small).map(([spec, status]) => reference(spec, status)) },
  fc.constant({ unreadable: "no" }),
);
const youngest = optional(fc.record({ place: fc.nat(3), preparedAt: fc.constant(NOW - 60_000) }));
const answers: fc.Arbitrary<PodAnswers> = fc.oneof(
  fc.record({ wanted: small, youngest }),
  fc.record({ wanted: small, failure: fc.constant("no") }),
);
const refusal = hold("ScaleRefused", "no", []);

const facts: fc.Arbitrary<ZoneFacts> = fc.record(
  {
    reference: reading,
    notified: fc.constant(true as const),
    answers,
    confirmed: reading,
    refused: fc.constant(refusal),
    writtenBack: fc.constant("done" as const),
  },
  { requiredKeys: [] },
);

/**
 * A zone with a delay loses only pods that answered, for the number that is still wanted, after the last pod whose
 * delay is not over.
 */
function checkPrepared({ zone, replicas }: ScaleZone, snapshot: ScalingSnapshot): void {
  const delay = readDelay(zone);
  if (zone.scaling.leader !== undefined || replicas >= zone.replicas || !delay) return;
  const { answers, confirmed } = zoneFactsOf(snapshot, zone);
  assert.ok(answers && "youngest" in answers, "pods were prepared");
  assert.ok(replicas > answers.wanted + (answers.youngest?.place ?? -1), "their delays are over");
  assert.ok(
    confirmed &&
      "wantedReplicas" in confirmed &&
      (zone.scaling.forcedReplicas ?? confirmed.wantedReplicas) === answers.wanted,
  );
}

function check(next: ScalingStep | undefined, snapshot: ScalingSnapshot): void {
  if (next?.action === "scaleZone") {
    assert.equal(snapshot.scaled, undefined, "one zone is scaled");
    assert.ok(!snapshot.zones.some((zone) => zone.terminating));
    checkPrepared(next, snapshot);
  }
  if (next?.action === "writeBack") {
    const { scaled } = snapshot;
    assert.equal(next.replicas, scaled?.step.zone.uid === next.zone.uid ? scaled.step.replicas : next.zone.replicas);
  }
}

/** The result of a step, or of reading a reference. */
const outcome = fc.record({ reading, youngest, succeeds: fc.boolean() });
type Outcome = typeof outcome extends fc.Arbitrary<infer T> ? T : never;

/** The snapshot after the next step had this outcome; undefined if there was no step. */
function carryOut(snapshot: ScalingSnapshot, { reading, youngest, succeeds }: Outcome): ScalingSnapshot | undefined {
  const { next, scalingHolds, unread } = decideScaling(snapshot);
  check(next, snapshot);
  const addToZone = (zone: Zone, more: ZoneFacts): ScalingSnapshot =>
    addFacts(snapshot, zone, { facts: more, now: snapshot.now + 1 });
  if (unread)
    return addToZone(unread, zoneFactsOf(snapshot, unread).reference ? { confirmed: reading } : { reference: reading });
  switch (next?.action) {
    case undefined:
    case "hold":
      return undefined;
    case "cancelPreparation":
      return addToZone(next.zone, { notified: true });
    case "preparePods": {
      const { wanted, pods } = next;
      assert.equal(pods.count, next.zone.replicas - wanted);
      const place = youngest && youngest.place < pods.count ? youngest : undefined;
      return addToZone(next.zone, { answers: succeeds ? { wanted, youngest: place } : { wanted, failure: "no" } });
    }
    case "scaleZone":
      return succeeds
        ? { ...snapshot, scaled: { step: next, scalingHolds } }
        : addToZone(next.zone, { refused: refusal });
    case "writeBack":
      return addToZone(next.zone, { writtenBack: succeeds ? "done" : { failure: "no" } });
    default:
      return next satisfies never;
  }
}

/** The minimum number of plays that reach each of these cases; below it the property proves nothing about it. */
const LEAST = { scaled: 300, shrunk: 100, refused: 100, prepared: 100, "written back": 300 };

describe("over random groups and facts", () => {
  it("no zone is scaled unprepared, together with another or in a group that loses a zone, and only its replicas are written back", () => {
    fc.assert(
      fc.property(
        zones,
        fc.array(facts, { maxLength: 4, size: "max" }),
        fc.option(fc.nat(3)),
        (zones, facts, scaled) => {
          const scene = sceneOf(zones, facts);
          const zone = scene.zones[scaled ?? -1];
          const snapshot = zone
            ? {
                ...scene,
                scaled: { step: planScale(zone, { replicas: 2, why: "mirroring" }, scene), scalingHolds: [] },
              }
            : scene;
          check(decideScaling(snapshot).next, snapshot);
        },
      ),
      { numRuns: runs(5000) },
    );
  });

  it("a group is done after at most six steps per zone, with any results, and at most one zone is scaled", () => {
    const reached: Record<string, number> = {};
    const reach = (what: string, is: boolean): void => void (is && (reached[what] = (reached[what] ?? 0) + 1));
    fc.assert(
      fc.property(zones, fc.array(outcome, { minLength: 26, maxLength: 26 }), (zones, outcomes) => {
        let snapshot = sceneOf(zones);
        let steps = 0;
        for (const outcome of outcomes) {
          const after = carryOut(snapshot, outcome);
          if (!after) break;
          steps++;
          snapshot = after;
        }
        assert.ok(steps <= 6 * zones.length + 1, `${steps} steps`);
        const known = [...snapshot.facts.values()];
        const { step } = snapshot.scaled ?? {};
        reach("scaled", step !== undefined);
        reach("shrunk", step !== undefined && step.replicas < step.zone.replicas);
        reach(
          "prepared",
          known.some(({ answers }) => answers !== undefined),
        );
        reach(
          "refused",
          known.some(({ refused }) => refused !== undefined),
        );
        reach(
          "written back",
          known.some(({ writtenBack }) => writtenBack !== undefined),
        );
      }),
      { numRuns: runs(2000) },
    );
    for (const [what, count] of Object.entries(LEAST))
      assert.ok((reached[what] ?? 0) >= least(count, 2000), `${what}: ${JSON.stringify(reached)}`);
  });
});
