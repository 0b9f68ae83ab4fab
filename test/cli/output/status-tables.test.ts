import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { GroupState } from "../../../cli/decide/group-state.ts";
import { colourful, plain } from "../../../cli/output/text.ts";
import { renderGroup, renderGroups } from "../../../cli/output/status-tables.ts";
import { zone } from "../../builders/groups.ts";
import type { StoredHold, RolloutGroupStatus } from "../../../reconciler/group-status/status.ts";

const NOW = Date.parse("2026-11-22T03:00:00Z");
const SENTENCE =
  "ingester-zone-b waits: ingester-zone-a-1 of ingester-zone-a is not ready, and only one zone at a time may have such pods";

const stored = (reason: string, message = SENTENCE): StoredHold => ({
  reason,
  phase: "Blocked",
  message,
  cause: reason,
  objects: [
    { kind: "StatefulSet", name: "ingester-zone-b" },
    { kind: "Pod", name: "ingester-zone-a-1" },
  ],
  waitsFor: { kind: "Pod", name: "ingester-zone-a-1" },
  since: "2026-11-22T02:55:00Z",
});

const stateOf = (group: string, status: Partial<RolloutGroupStatus>): GroupState => ({
  namespace: "default",
  group,
  zones: [],
  generation: 1,
  status: {
    observedGeneration: 1,
    summary: { zones: "1/3", updated: "4/9", ready: "8/9", zone: `${group}-zone-b` },
    ...status,
  },
});

const WAITING = stateOf("ingester", {
  phase: "Blocked",
  message: SENTENCE,
  holds: [stored("OtherZoneNotReady"), stored("MinTimeBetweenZones", "ingester-zone-c waits for 3 hours")],
  progress: {
    stepsLeft: 5,
    startTime: "",
    lastStepTime: "",
    estimatedCompletionTime: "2026-11-22T02:00:00Z",
  },
});
const ROLLING = stateOf("store", {
  phase: "RollingOut",
  message: "rolling",
  progress: { stepsLeft: 5, startTime: "", lastStepTime: "", estimatedCompletionTime: "2026-11-22T03:10:00Z" },
});

const linesOf = (text: string): string[] => text.split("\n").slice(0, -1);
const groupsAt = (width: number | undefined): string[] =>
  linesOf(renderGroups([WAITING, ROLLING], { style: plain, width: () => width }, NOW));

describe("the groups", () => {
  it("have all columns without a terminal, and with -o wide", () =>
    assert.deepEqual(groupsAt(undefined), [
      "GROUP     PHASE       ZONES  UPDATED  PODS-READY  ZONE             REASON             WAITS-FOR              SINCE  ESTIMATED-END",
      "ingester  Blocked     1/3    4/9      8/9         ingester-zone-b  OtherZoneNotReady  pod/ingester-zone-a-1  5m",
      "store     RollingOut  1/3    4/9      8/9         store-zone-b                                                      in 10m",
    ]));
  it("have no estimated end while the reconciler does not tick", () => {
    const [, line = ""] = linesOf(renderGroups([{ ...ROLLING, isOld: true }], { style: plain }, NOW));
    assert.match(line, /^store +RollingOut \(old\) .* store-zone-b$/);
  });
  it("say at 90 columns also how many pods are ready", () =>
    assert.deepEqual(groupsAt(90), [
      "GROUP     PHASE       UPDATED  PODS-READY  REASON             WAITS-FOR              SINCE",
      "ingester  Blocked     4/9      8/9         OtherZoneNotReady  pod/ingester-zone-a-1  5m",
      "store     RollingOut  4/9      8/9",
    ]));
  it("say at 80 columns what blocks them, and how far they are", () =>
    assert.deepEqual(
      groupsAt(80),
      [
        "GROUP     PHASE       UPDATED  REASON             WAITS-FOR              SINCE",
        "ingester  Blocked     4/9      OtherZoneNotReady  pod/ingester-zone-a-1  5m",
        "store     RollingOut  4/9                                                ",
      ].map((line) => line.trimEnd()),
    ));
  it("say at 60 columns what blocks them", () =>
    assert.deepEqual(groupsAt(60), [
      "GROUP     PHASE       UPDATED  WAITS-FOR              SINCE",
      "ingester  Blocked     4/9      pod/ingester-zone-a-1  5m",
      "store     RollingOut  4/9",
    ]));
});

describe("one group", () => {
  for (const width of [80, 60])
    it(`has no line of more than ${width} columns on a terminal of ${width}`, () => {
      const lines = linesOf(renderGroup(WAITING, { style: plain, width: () => width }, NOW));
      assert.deepEqual(
        lines.filter((line) => line.length > width),
        [],
      );
      assert.ok(
        lines.some((line) => line.endsWith("ingester-zone-a-1 of")),
        lines.join("\n"),
      );
    });

  const BLOCKED = { phase: "Blocked", holds: [stored("UpdateStrategyNotOnDelete")] } as const;
  for (const message of [SENTENCE, `no step since 2026-11-22T02:00:00Z: ${SENTENCE}`])
    it(`that is blocked says why once: ${message.slice(0, 13)}`, () => {
      const text = renderGroup(stateOf("ingester", { ...BLOCKED, message }), { style: plain }, NOW);
      assert.equal(text.split(SENTENCE).length, 2, text);
      assert.equal(text.includes("\nno step since 2026-11-22T02:00:00Z\n"), message !== SENTENCE, text);
    });

  it("has the images beside the hash in the message of a block", () => {
    const { status, ...state } = stateOf("a", {
      phase: "Paused",
      holds: [stored("ZonePaused", "b waits for zone-a-last")],
    });
    const zones = [{ ...zone({ name: "zone-a", updateRevision: "zone-a-last" }), images: ["app:2"] }];
    const text = renderGroup({ ...state, zones, status }, { style: plain }, NOW);
    assert.match(text, /ZonePaused .* b waits for app:2 \(zone-a-last\)$/m);
  });

  it("notes of a zone when its window opens, as the status page does", () => {
    const row = { updated: 3, ready: 3, replicas: 3, updateRevision: "r", generation: 1 };
    const window = (cron: string) => ({ cron, duration: "", timeZone: "", freezes: "" });
    const rows = [
      { ...row, name: "zone-a", rolloutWindow: window("* * 5 * * *") },
      { ...row, name: "zone-b", rolloutWindow: window("* * * * * *") },
    ] as never;
    const zones = [zone({ name: "zone-a" }), zone({ name: "zone-b" })];
    const text = renderGroup({ ...stateOf("a", { phase: "Ready", zones: rows }), zones }, { style: plain }, NOW);
    assert.match(text, /^zone-a .* window closed until 2026-11-22T05:00:00/m);
    assert.doesNotMatch(text, /^zone-b .* window/m);
  });

  for (const [what, holds, colour] of [
    ["is green", [], 32],
    ["is not green if it waits to be scaled", [{ ...stored("MinTimeBetweenZones"), phase: "Waiting" }], 90],
    ["is blocked if somebody has to do something before it is scaled", [stored("LeaderNotFound")], 31],
  ] as const)
    it(`that is ready ${what}`, () => {
      const text = renderGroup(stateOf("a", { phase: "Ready", holds }), { style: colourful }, NOW);
      assert.ok(text.includes(`\u001B[${colour}m${colour === 31 ? "Blocked" : "Ready"}`), text);
    });
});
