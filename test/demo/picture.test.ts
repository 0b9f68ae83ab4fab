import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readPod } from "../../reconciler/model/pod.ts";
import { podObject, zone, type PodTraits } from "../reconciler/builders.ts";
import { drawPicture, textOf, type Picture, type PictureInput } from "./picture.ts";

const draw = (input: Partial<PictureInput>): Picture =>
  drawPicture({ group: "ingester", zones: [], progress: undefined, message: "", now: 0, ...input });

const CELLS: readonly [string, PodTraits, string, string][] = [
  ["ready", { revision: "zone-a-5d4c8f7b9" }, "● 5d4c8 ready", "good"],
  ["not ready", { revision: "zone-a-5d4c8f7b9", ready: false }, "○ 5d4c8 not ready", "busy"],
  ["terminating", { revision: "zone-a-5d4c8f7b9", terminating: true }, "✕ 5d4c8 terminating", "bad"],
  ["crashing", { revision: "zone-a-5d4c8f7b9", broken: "CrashLoopBackOff" }, "○ 5d4c8 CrashLoopBackOff", "bad"],
];

describe("the picture of a pod", () => {
  for (const [name, traits, text, style] of CELLS)
    it(`shows a pod that is ${name} as ${text}`, () => {
      const pods = [readPod(podObject("zone-a", 0, traits))];
      const [row] = draw({ zones: [{ ...zone({ name: "zone-a", replicas: 1 }), pods }] }).rows;
      assert.equal(textOf(row ?? []), `zone-a  ${text}`);
      assert.equal(row?.find(({ text }) => text.trim().length === 1)?.style, style);
    });

  it("shows a pod that should be there as absent", () => {
    const [row] = draw({ zones: [{ ...zone({ name: "zone-a", replicas: 1 }), pods: [] }] }).rows;
    assert.equal(textOf(row ?? []), "zone-a  · absent");
  });

  it("highlights the revision that is rolled out", () => {
    const pods = ["old", "new"].map((revision, ordinal) => readPod(podObject("zone-a", ordinal, { revision })));
    const [row] = draw({ zones: [{ ...zone({ name: "zone-a", replicas: 2, updateRevision: "new" }), pods }] }).rows;
    const styles = (row ?? [])
      .filter(({ text }) => /old|new/.test(text))
      .map(({ text, style }) => [text.trim(), style]);
    assert.deepEqual(styles, [
      ["old", "faint"],
      ["new", "strong"],
    ]);
  });

  it("omits the label of ready pods in a zone with many pods, so that a row fits a terminal", () => {
    const pods = { 1: { ready: false } };
    const [row] = draw({
      zones: [zone({ name: "zone-a", replicas: 5, at: "zone-a-5d4c8f7b9", updateRevision: "zone-a-5d4c8f7b9", pods })],
    }).rows;
    assert.equal(textOf(row ?? []), "zone-a  ● 5d4c8  ○ 5d4c8 not ready  ● 5d4c8  ● 5d4c8  ● 5d4c8");
  });

  it("lines up the cells of all zones", () => {
    const zones = [zone({ name: "a", replicas: 2 }), zone({ name: "zone-b", replicas: 2 })];
    const columns = draw({ zones }).rows.map((row) => [...textOf(row).matchAll(/●/g)].map(({ index }) => index));
    assert.deepEqual(columns[0], columns[1]);
    assert.equal(columns[0]?.length, 2);
  });
});

describe("the title of the picture", () => {
  const TITLES: readonly [string, PictureInput["progress"], string][] = [
    ["a group that does not exist yet", undefined, "group ingester   progressing"],
    [
      "a change in progress with its time so far",
      { startedAt: 1000, order: [], replaced: 0 },
      "group ingester   progressing   4.2 s",
    ],
    [
      "a completed rollout with its duration",
      { startedAt: 1000, endedAt: 3000, order: [], replaced: 0 },
      "group ingester   updated and ready   2.0 s",
    ],
  ];
  for (const [name, progress, title] of TITLES)
    it(`shows ${name}`, () => assert.equal(textOf(draw({ progress, now: 5200 }).title), title));

  it("distinguishes a rollout from other changes by its outdated pods", () => {
    const zones = [zone({ name: "zone-a", at: "old" })];
    assert.equal(textOf(draw({ zones }).title), "group ingester   rolling out");
  });
});
