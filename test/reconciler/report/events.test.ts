import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hold } from "../../../reconciler/model/decision.ts";
import type { Outcome } from "../../../reconciler/model/outcome.ts";
import { buildEvent, draftEvents, eventName } from "../../../reconciler/report/events.ts";
import { remember } from "../../../reconciler/report/log-lines.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { data, noData, zonesOf } from "../../builders/gates.ts";
import { holdOf, play, type Scene, settled, zones } from "../gates/play.ts";

const [ZONE] = zonesOf("1").map(readZone);
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

describe("the Event of an object", () => {
  const draft = (name: string, message = "m") =>
    ({
      regarding: { kind: "StatefulSet", namespace: "test", name, uid: "u" },
      type: "Warning",
      reason: "R",
      message,
    }) as const;

  it("has a name that the API server takes, however long the object's is", () => {
    for (const name of ["a", "a".repeat(253), `${"a".repeat(234)}.-b`, `${"a".repeat(62)}.`.repeat(4) + "b"]) {
      const made = eventName(draft(name));
      assert.ok(made.length <= 253 && SUBDOMAIN.test(made), made);
    }
  });

  it("has the whole name of an object whose name is not that long", () => {
    assert.match(eventName(draft("zone-a")), /^zone-a\.[0-9a-f]{16}$/);
  });

  it("has a message of 1,024 characters at most, and a name by the whole of it", () => {
    const [one, two] = ["1", "2"].map((end) => draft("zone-a", "x".repeat(5000) + end));
    assert.ok(one && two);
    assert.equal(buildEvent(one, 0, "i").message?.length, 1024);
    assert.notEqual(eventName(one), eventName(two));
  });
});

describe("an Event of a rollout", () => {
  const zone = {
    ...ZONE,
    name: "ingester-zone-a",
    observed: true,
    images: ["app:2"],
    status: { replicas: 3, ready: 3, updated: 3, current: 0, currentRevision: "a-1", updateRevision: "a-2" },
  };
  const events = (images: readonly string[]) => {
    const { status } = zone;
    const decision = {
      action: "finishZone",
      zone,
      message: `all pods are updated to ${status.updateRevision}`,
    } as const;
    const outcome = {
      namespace: "test",
      group: "g",
      zones: [{ ...zone, images }],
      scalingHolds: [],
      notes: [],
      state: "acted",
      decision,
      effect: { replaced: [], denied: [] },
    };
    return draftEvents(outcome as unknown as Parameters<typeof draftEvents>[0], undefined, () => 0);
  };

  it("has the images beside the hash of a revision", () =>
    assert.deepEqual(
      events(["app:2"]).map(({ reason, message }) => [reason, message]),
      [
        ["ZoneUpdated", "all pods are updated to app:2 (a-2)"],
        ["RolloutCompleted", "all zones of group g are updated and ready: app:2 (a-2)"],
      ],
    ));

  it("is the same one whether the images are known or not", () =>
    assert.deepEqual(events(["app:2"]).map(eventName), events([]).map(eventName)));
});

describe("a zone that the StatefulSet controller has recorded, as that of Kubernetes 1.37 does, has its Event", () => {
  const at = (name: string, currentRevision: string, updateRevision = "r-2") => ({
    ...ZONE,
    name,
    uid: name,
    observed: true,
    status: { replicas: 3, ready: 3, updated: 3, current: 0, currentRevision, updateRevision },
  });
  const drafts = (earlier: readonly object[], zones: readonly object[]) => {
    const common = { namespace: "test", group: "g", scalingHolds: [], notes: [] };
    const held = { ...common, zones: earlier, state: "held", hold: hold("ZonePaused", "p", []) } as unknown as Outcome;
    const settled = { ...common, zones, state: "settled" } as unknown as Outcome;
    const found = draftEvents(settled, remember(undefined, held, 0), () => 0);
    return found.map(({ reason, message }) => `${reason}: ${message}`);
  };
  const said = "ZoneUpdated: all pods of a are updated to r-2 and ready";

  it("once it was seen before its end", () =>
    assert.deepEqual(drafts([at("a", "r-1"), at("b", "r-2")], [at("a", "r-2"), at("b", "r-2")]), [said]));
  it("not while it lacks a pod", () => {
    const whole = at("a", "r-2");
    assert.deepEqual(drafts([at("a", "r-1")], [{ ...whole, status: { ...whole.status, ready: 2 } }]), []);
  });
  it("not if its template was taken back", () =>
    assert.deepEqual(drafts([at("a", "r-1")], [at("a", "r-1", "r-1")]), []));
  it("not again", () => assert.deepEqual(drafts([at("a", "r-2")], [at("a", "r-2")]), []));
});

describe("a zone that a gate between zones holds has an Event", () => {
  const NEXT: Scene = {};
  const FIRST: Scene = { zones: zonesOf("1>2 1>2 1>2"), wants: "zone-a" };
  for (const [what, gate, scene, at, reasons] of [
    ["not if it is the first, and needs no check", settled(), FIRST, 0, []],
    ["if its checks are still to be asked", play({}, [0, noData]).gate, NEXT, 1, ["GateWaiting"]],
    ["if its checks fail", play({}, [0, data]).gate, NEXT, 1, ["GateWaiting"]],
    ["not if its checks have passed", play({}, [0, noData], [10, noData]).gate, NEXT, 11, []],
  ] as const)
    it(what, () => {
      const hold = holdOf(gate, at, scene) ?? assert.fail();
      assert.equal(hold.reason, "GateWaiting", hold.message);
      const all = (scene.zones ?? zones).map(readZone);
      const common = { namespace: "test", group: "g", scalingHolds: [], notes: [] };
      const events = draftEvents({ ...common, zones: all, state: "held", hold }, undefined, () => 0);
      assert.deepEqual(
        events.map(({ reason }) => reason),
        reasons,
      );
    });
});
