import assert from "node:assert/strict";
import { it } from "node:test";
import { judge, MAX_GAP_MS } from "./judge.ts";
import type { Scene } from "./measure.ts";
import { renderPage } from "./page.ts";
import { drawGaps } from "./picture.ts";

const SCENE: Scene = {
  name: "rollout",
  isControl: false,
  from: 0,
  to: 60_000,
  acknowledged: 1000,
  lost: 0,
  longestGapMs: 300,
  zonesDown: 1,
  pauseMs: 10,
};

const CASES: readonly [Partial<Scene>, readonly string[]][] = [
  [{}, []],
  [{ lost: 1 }, ["rollout: 1 acknowledged writes are lost"]],
  [{ zonesDown: 2 }, ["rollout: 2 zones were down at once"]],
  [{ longestGapMs: MAX_GAP_MS + 11 }, ["rollout: no write was acknowledged for 10011 ms"]],
  [{ longestGapMs: MAX_GAP_MS + 11, pauseMs: 50 }, []],
  [{ lost: 1, zonesDown: 3, isControl: true }, []],
];

for (const [change, faults] of CASES)
  it(`${JSON.stringify(change)} is judged`, () => assert.deepEqual(judge({ ...SCENE, ...change }), faults));

it("the page and the picture have each scene, with Zonewise and without", () => {
  const scenes = [SCENE, { ...SCENE, name: "RollingUpdate", isControl: true, from: 60_000, to: 62_500, lost: 7 }];
  const page = renderPage(scenes, new Date(0));
  assert.match(page, /^\| rollout \| 0\.30 s \| 1000 \| 0 \| 1 \| 60\.0 s \| 0\.01 s \|$/m);
  assert.match(page, /^\| RollingUpdate \| 0\.30 s \| 1000 \| 7 \| 1 \| 2\.50 s \| 0\.01 s \|$/m);
  const picture = drawGaps(scenes, [[100, 5100, 61_000]]);
  for (const text of ["rollout", "RollingUpdate", "50 s</text>"]) assert.ok(picture.includes(text), text);
});
