import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { drawAnimation } from "./animation.ts";

const PRINTED = `Applying examples/three-zones.yaml: three zones of three pods.
  0.6 s  zone-a  ● old11 ready
All pods are ready. Changing the image to nginx:1.29: the rollout begins.
  0.0 s  zone-a  ✕ old11 terminating
  0.0 s  updating zone-a-0
  0.0 s  waiting for a < b
  2.0 s  zone-a  ● new22 ready
  2.0 s  all zones are updated and ready
Rolled out 1 zone (zone-a): 1 pod replaced in 2.0 s
  0.0 s  zone-a  ● new22  ○ new22 not ready
`;

/** The texts that are shown from and to these seconds of the animation. */
function textsOf(svg: string, from: number, to: number): string[] {
  const groups = svg.split("\n").filter((line) => line.startsWith("<g visibility"));
  const found = groups.filter((group) => {
    const [, dur = "", values = "", keyTimes = ""] =
      /dur="([\d.]+)s".* values="([^"]*)" keyTimes="([^"]*)"/.exec(group) ?? [];
    const times = [...keyTimes.split(";").map(Number), 1].map((time) => Math.round(time * Number(dur) * 10) / 10);
    const place = values.split(";").indexOf("visible");
    return times[place] === from && times[place + 1] === to;
  });
  return found.map((group) => [...group.matchAll(/>([^<>]+)<\/text>/g)].map(([, text]) => text).join("|"));
}

describe("the README's picture", () => {
  const svg = drawAnimation(PRINTED);

  const MOMENTS: readonly [string, number, number, readonly string[]][] = [
    [
      "the state before the rollout",
      0,
      1,
      ["group ingester|ready", "zone-a|●|old11 ready", "all zones are updated and ready"],
    ],
    [
      "the last of several simultaneous changes",
      1,
      3,
      ["group ingester|rolling out   0.0 s", "zone-a|✕|old11 terminating", "waiting for a &lt; b"],
    ],
    [
      "the state after the rollout, and no later changes",
      3,
      6,
      ["group ingester|updated and ready   2.0 s", "zone-a|●|new22 ready", "all zones are updated and ready"],
    ],
  ];
  for (const [name, from, to, texts] of MOMENTS)
    it(`shows ${name}`, () =>
      assert.deepEqual(
        textsOf(svg, from, to).map((text) => text.replaceAll("\u00A0", " ")),
        texts,
      ));

  it("shows one moment of each track to players without animation", () =>
    assert.equal(svg.split("\n").filter((line) => line.startsWith('<g visibility="visible">')).length, 3));
  it("highlights the new revision", () => {
    assert.match(svg, /fill="#ffffff">new22/);
    assert.doesNotMatch(svg, /fill="#ffffff">old11/);
  });
  it("requires a complete rollout", () =>
    assert.throws(() => drawAnimation(PRINTED.split("Rolled out")[0] ?? ""), /no complete rollout/));
});
