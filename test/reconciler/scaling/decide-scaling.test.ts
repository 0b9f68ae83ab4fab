import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hold } from "../../../reconciler/model/decision.ts";
import { decideScaling } from "../../../reconciler/scaling/decide-scaling.ts";
import { planScale, type ZoneFacts } from "../../../reconciler/scaling/snapshot.ts";
import type { ZoneTraits } from "../builders.ts";
import { decide, reference, sceneOf } from "./decide-scene.ts";
import { DELAYED, MIRROR, NO_WRITE_BACK } from "./mirror-stage.ts";
import { downscaled, minTime, NOW } from "./snapshots.ts";

const mirror = (replicas: number, more: Record<string, string> = {}): ZoneTraits => ({
  replicas,
  annotations: { ...MIRROR, ...more },
});
const delayed = (replicas: number, more: Record<string, string> = {}): ZoneTraits =>
  mirror(replicas, { ...DELAYED, ...more });
const follows = (leader: string, more: Record<string, string> = {}): ZoneTraits => ({
  annotations: { "grafana.com/rollout-downscale-leader": `ingester-zone-${leader}`, ...more },
});
const READY_ONLY = { "grafana.com/rollout-upscale-only-when-leader-ready": "true" };
const force = (replicas: number) => ({ "grafana.com/rollout-force-replicas": String(replicas) });

const MINUTE = 60_000;
const refused = hold("ScaleRefused", "no", []);
const unreadable = { unreadable: "no answer" };
/** A zone of 5 that wants 3: the pods that stay are notified, the pods to remove have answered. */
const answered: ZoneFacts = { reference: reference(3, 5), notified: true, answers: { wanted: 3, youngest: undefined } };
const young = (place: number, wanted = 3): ZoneFacts => ({
  ...answered,
  answers: { wanted, youngest: { place, preparedAt: NOW - 30 * MINUTE } },
});

type Case = readonly [
  name: string,
  zones: readonly ZoneTraits[],
  facts: readonly ZoneFacts[],
  expected: readonly string[],
];

const CASES: readonly Case[] = [
  ["zones that neither follow nor mirror have no step", [{}, {}], [], ["nothing"]],
  [
    "a group with a zone that is being deleted is not scaled",
    [{ replicas: 4 }, follows("a"), { terminating: true }],
    [],
    ["nothing"],
  ],
  ["a follower is scaled", [{ replicas: 4 }, follows("a")], [], ["scale b to 4"]],
  [
    "of minimum times that differ, each zone waits its own, whatever that of the zone which was scaled down is",
    [
      { replicas: 2, ...downscaled(10), ...minTime("24h") },
      { ...follows("a"), ...minTime("12h") },
      { ...follows("a"), ...minTime("6h") },
    ],
    [],
    ["scale c to 2", "MinTimeBetweenZones"],
  ],
  [
    "also if that one and another have shorter ones",
    [
      { replicas: 2, ...downscaled(10), ...minTime("6h") },
      { ...follows("a"), ...minTime("12h") },
      { replicas: 2, ...minTime("1h") },
    ],
    [],
    ["wait", "MinTimeBetweenZones"],
  ],
  [
    "a leader of 2 that grows to 5 and stops at 3, all ready, is not followed by one that waits until it is ready",
    [
      { replicas: 5, statusReplicas: 3 },
      { replicas: 2, ...follows("a", READY_ONLY) },
    ],
    [],
    ["wait", "LeaderNotReady"],
  ],
  [
    "without that setting it is followed to 5",
    [
      { replicas: 5, statusReplicas: 3 },
      { replicas: 2, ...follows("a") },
    ],
    [],
    ["scale b to 5"],
  ],
  [
    "followers come before mirroring zones",
    [mirror(2), { replicas: 4 }, follows("b")],
    [{ reference: reference(5, 5) }],
    ["scale c to 4"],
  ],
  [
    "a waiting follower leaves its turn to a mirroring zone",
    [follows("x"), mirror(2)],
    [],
    ["read b", "LeaderNotFound"],
  ],
  [
    "a zone with both waits, and its reference is not read",
    [{}, { annotations: { ...MIRROR, ...follows("a").annotations } }],
    [],
    ["wait", "LeaderAndMirror"],
  ],

  ["a reference is read first", [mirror(2)], [], ["read a"]],
  ["and other zones' references in their turn", [mirror(2), mirror(2)], [{ reference: reference(2, 2) }], ["read b"]],
  [
    "a reference that cannot be read holds its zone",
    [mirror(2)],
    [{ reference: unreadable }],
    ["wait", "ReferenceUnreadable"],
  ],
  ["and the next zone follows", [mirror(2), mirror(2)], [{ reference: unreadable }], ["read b", "ReferenceUnreadable"]],
  ["a zone grows", [mirror(2)], [{ reference: reference(5, 2) }], ["scale a to 5"]],
  ["a zone shrinks", [mirror(5)], [{ reference: reference(2, 2) }], ["scale a to 2"]],
  ["the only zone of its group shrinks to nothing", [mirror(3)], [{ reference: reference(0, 3) }], ["scale a to 0"]],
  ["and comes back", [mirror(0)], [{ reference: reference(3, 0) }], ["scale a to 3"]],
  [
    "of two zones that mirror 0 replicas, one shrinks at a time",
    [mirror(3), mirror(3)],
    [{ reference: reference(0, 3) }, { reference: reference(0, 3) }],
    ["scale a to 0"],
  ],
  [
    "the second of two zones shrinks beside one of no pods",
    [mirror(0), mirror(3)],
    [{ reference: reference(0, 0) }, { reference: reference(0, 0) }],
    ["scale b to 0"],
  ],
  ["forced replicas win", [mirror(2, force(7))], [{ reference: reference(5, 2) }], ["scale a to 7"]],
  ["a zone as wanted is written back", [mirror(2)], [{ reference: reference(2, 5) }], ["write back 2 of a"]],
  ["unless it is reported already", [mirror(2)], [{ reference: reference(2, 2) }], ["nothing"]],
  ["or turned off", [mirror(2, NO_WRITE_BACK)], [{ reference: reference(2, 5) }], ["nothing"]],
  [
    "it is written back once, even if that failed",
    [mirror(2)],
    [{ reference: reference(2, 5), writtenBack: { failure: "no" } }],
    ["nothing"],
  ],

  ["pods that stay are notified first", [delayed(5)], [{ reference: reference(3, 5) }], ["keep a-0 a-1 a-2"]],
  ["also if nothing is to change", [delayed(2)], [{ reference: reference(2, 2) }], ["keep a-0 a-1"]],
  [
    "also if no pod stays: requests in flight for others have to end",
    [delayed(2)],
    [{ reference: reference(0, 2) }],
    ["keep"],
  ],
  [
    "then a zone with a delay grows at once",
    [delayed(2)],
    [{ reference: reference(5, 2), notified: true }],
    ["scale a to 5"],
  ],
  ["pods to remove are prepared", [delayed(5)], [{ reference: reference(3, 5), notified: true }], ["prepare a-3 a-4"]],
  [
    "also of a zone that is forced",
    [delayed(5, force(4))],
    [{ reference: reference(3, 5), notified: true }],
    ["prepare a-4"],
  ],
  [
    "a pod that failed holds the zone",
    [delayed(5)],
    [{ ...answered, answers: { wanted: 3, failure: "a-3 answered 500" } }],
    ["wait", "PrepareFailed"],
  ],
  ["a pod whose delay is not over holds the zone", [delayed(5)], [young(1)], ["wait", "DelayNotReached"]],
  [
    "and its replicas are written back in the meantime",
    [delayed(5)],
    [{ ...young(1), reference: reference(3, 3) }],
    ["write back 5 of a", "DelayNotReached"],
  ],
  ["once pods may be removed, the reference is read again", [delayed(5)], [answered], ["read a"]],
  ["it is unchanged: the zone shrinks", [delayed(5)], [{ ...answered, confirmed: reference(3, 5) }], ["scale a to 3"]],
  [
    "as far as the pods' delays are over",
    [delayed(5)],
    [{ ...young(0), confirmed: reference(3, 5) }],
    ["scale a to 4"],
  ],
  ["it has changed: the zone is not scaled", [delayed(5)], [{ ...answered, confirmed: reference(4, 5) }], ["nothing"]],
  [
    "it cannot be read any more",
    [delayed(5)],
    [{ ...answered, confirmed: unreadable }],
    ["wait", "ReferenceUnreadable"],
  ],
  [
    "pods that answered for another number do not count as prepared",
    [delayed(5)],
    [{ ...young(0, 4), confirmed: reference(3, 5) }],
    ["nothing"],
  ],
  [
    "a delay that cannot be read holds in both directions",
    [mirror(2, { ...DELAYED, "grafana.com/rollout-delayed-downscale": "soon" })],
    [{ reference: reference(5, 2) }],
    ["wait", "DelayInvalid"],
  ],

  [
    "a zone that was refused waits, and is not written back",
    [mirror(2)],
    [{ reference: reference(5, 5), refused }],
    ["wait", "ScaleRefused"],
  ],
  [
    "and the next zone follows",
    [{ replicas: 4 }, follows("a"), follows("a")],
    [{}, { refused }],
    ["scale c to 4", "ScaleRefused"],
  ],
];

describe("the next step of a group's scaling", () => {
  for (const [name, zones, facts, expected] of CASES)
    it(`${name}: ${expected.join(", ")}`, () => assert.deepEqual(decide(sceneOf(zones, facts)), expected));

  it("once a zone has been scaled is its write-back, regardless of other zones, and the holds stay as reported", () => {
    const scene = sceneOf(
      [mirror(2), mirror(5), { replicas: 4 }, follows("c")],
      [{ reference: reference(3, 2) }, { reference: reference(3, 5) }],
    );
    const [, b] = scene.zones;
    assert.ok(b);
    const scaled = {
      ...scene,
      scaled: { step: planScale(b, { replicas: 3, why: "mirroring" }, scene), scalingHolds: [refused] },
    };
    assert.deepEqual(decide(scaled), ["write back 3 of b", "ScaleRefused"]);
    const facts = new Map(scaled.facts).set(b.uid, { reference: reference(3, 5), writtenBack: "done" });
    assert.deepEqual(decide({ ...scaled, facts }), ["nothing", "ScaleRefused"]);
  });

  it("names the pod that could not be prepared", () => {
    const { next } = decideScaling(
      sceneOf([delayed(5)], [{ ...answered, answers: { wanted: 3, failure: "a-3 answered 500" } }]),
    );
    assert.partialDeepStrictEqual(next, {
      message: "ingester-zone-a is not scaled down: a pod could not be prepared: a-3 answered 500",
    });
  });
});
