/**
 * Controllers, node API, agents and hosts together, while people and faults come in between: what must never happen,
 * and how it must end.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { it } from "node:test";
import { systemClock } from "../../../../infra/clock.ts";
import { MANAGED_VALUE } from "../../../../reconciler/nodes/shadow.ts";
import { setNodeStage } from "../../../functions/nodes/stage.ts";
import { either } from "../../../runs.ts";
import { NODES, Play, POLICIES, TARGET } from "./play.ts";

/** Numbers from 0 to `below`, the same for the same seed. */
function drawFrom(seed: number): (below: number) => number {
  let drawn = 0;
  return (below) => hash("sha256", `${seed}:${drawn++}`, "buffer").readUInt32BE() % below;
}

const DONE = NODES.map((name) => [name, false, 0, "Idle", "Idle", TARGET]);

/** `SEEDS=1-100` plays more. */
const [FIRST = 1, LAST = 2] = (process.env["SEEDS"] ?? either("1-2", "1-1")).split("-").map(Number);

for (let seed = FIRST; seed <= LAST; seed++)
  it(`NR20: nodes are never out of service by two, no reboot meets a pod, and all are updated in the end (seed ${seed})`, async (t) => {
    const draw = drawFrom(seed);
    const play = new Play(await setNodeStage(t));
    await play.open(t);
    const { faults } = play.stage.emulator;
    const controllers = [play.controller(), play.controller()];
    const anyNode = (): string => NODES[draw(NODES.length)] ?? "";
    const EVENTS: readonly (() => unknown)[] = [
      () => play.createPod(anyNode(), `p-${draw(100_000)}`),
      () => play.restartAgent(anyNode()),
      () => faults.inject({ verb: "patch", effect: { kind: draw(2) === 0 ? "conflict" : "dropAfter" }, times: 1 }),
      () => faults.inject({ resource: POLICIES, effect: { kind: draw(2) === 0 ? "conflict" : "dropAfter" }, times: 1 }),
      () => faults.inject({ effect: { kind: "error" }, times: 1 }),
      () => play.label(anyNode(), draw(2) === 0 ? null : MANAGED_VALUE),
      () => draw(3) === 0 && play.removePolicy(),
      () => play.createPolicy(),
      () => play.createPolicy("another"),
      () => play.removePolicy("another"),
      () => draw(3) === 0 && play.replaceNode(anyNode()),
      () => play.changePolicy({ enabled: draw(2) === 0 }),
      () => play.changePolicy({ window: draw(2) === 0 ? { cron: "broken", timeZone: "UTC" } : undefined }),
      () => draw(4) === 0 && play.hosts.get(anyNode())?.rollBack(1),
      () => draw(4) === 0 && play.hosts.get(anyNode())?.fail(draw(2) === 0 ? "prepare" : "activate"),
      () => (play.ahead = draw(3) === 0 ? 20 * 60_000 : 0),
      () => (controllers[draw(2)] = play.controller()),
    ];
    for (let step = 0; step < 80; step++) {
      if (draw(3) === 0) await EVENTS[draw(EVENTS.length)]?.();
      const first = draw(2);
      const ticking = draw(3) === 0 ? controllers : controllers.slice(first, first + 1);
      await Promise.all(ticking.map((tick) => tick()));
      play.check();
      await systemClock.sleep(5 + draw(30));
    }
    faults.clear();
    play.ahead = 0;
    play.removePolicy("another");
    play.createPolicy();
    play.changePolicy({ enabled: true, window: undefined });
    for (const name of NODES) {
      play.label(name, MANAGED_VALUE);
      play.hosts.get(name)?.rollBack(0);
    }
    for (let round = 0; round < 600 && JSON.stringify(play.facts()) !== JSON.stringify(DONE); round++) {
      play.unfreeze();
      if (round % 40 === 39) {
        play.ahead += 1500 * 60_000;
        for (const name of NODES) await play.restartAgent(name);
      }
      await controllers[0]?.();
      play.check();
      await systemClock.sleep(20);
    }
    assert.deepEqual(play.violations, []);
    assert.deepEqual(play.facts(), DONE, play.shown());
  });
