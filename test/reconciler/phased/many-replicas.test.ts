/** `spec.replicas` and what a status has stored have no bound: a decision reads at as many places as there are pods. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { decidePhased } from "../../../reconciler/phased/decide-phased.ts";
import type { PhasedSnapshot } from "../../../reconciler/phased/snapshot.ts";
import { HELD } from "../../../reconciler/phased/target.ts";
import { rolling, type Scene, snapshot } from "./builders.ts";
import { checking, decideIn, NEWER, ROLLED_BACK, stepped } from "./table.ts";

/** Far more than there are pods, and few enough that the test would end without the bound. */
const MANY = 300_000;

const SCENES: readonly (Scene & { readonly name: string })[] = [
  { name: "a partition that no step explains", set: { ...NEWER, replicas: MANY, partition: 0 }, pods: "oon" },
  { name: "a stored step far above the replicas", set: { ...NEWER, partition: 2 }, pods: "ooo", status: stepped(MANY) },
  {
    name: "a scale-out to as many",
    set: { ...NEWER, replicas: MANY },
    pods: "ooon",
    status: checking(MANY, { replicas: 3 }),
  },
  { name: "a rollback", set: { replicas: MANY, updated: 1 }, pods: "ox", status: ROLLED_BACK },
  { name: "all released", set: { ...NEWER, replicas: MANY, partition: 0 }, pods: "nnn", status: rolling(0) },
];

function counted(scene: Scene): { readonly input: PhasedSnapshot; readonly reads: () => number } {
  const input = snapshot(scene);
  const pods = new Map(input.pods);
  let reads = 0;
  const get = pods.get.bind(pods);
  pods.get = (index) => {
    reads++;
    return get(index);
  };
  return { input: { ...input, pods }, reads: () => reads };
}

for (const { name, ...scene } of SCENES)
  it(`reads at few places: ${name}`, () => {
    const { input, reads } = counted(scene);
    decidePhased(input);
    assert.ok(reads() <= 20, `${reads()} places`);
  });

for (const partition of [HELD, Number.MAX_VALUE])
  it(`decides about a step that was stored with partition ${partition}`, () =>
    assert.equal(
      decideIn({ set: { ...NEWER, partition: 2 }, pods: "ooo", status: stepped(partition) }),
      "held: Contain",
    ));
