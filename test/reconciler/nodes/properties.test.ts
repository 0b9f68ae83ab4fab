import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { runs } from "../../runs.ts";
import { type Host, TARGET, World } from "./world.ts";

type Event = (world: World, host: Host) => void;

const flip =
  (what: "silent" | "blocked" | "missing" | "rollsBack"): Event =>
  (_, host) =>
    void (host[what] = !host[what]);

const EVENTS: readonly (readonly [name: string, event: Event])[] = [
  ["a pass", (world) => world.pass()],
  ["a pass", (world) => world.pass()],
  ["a pass that dies at once", (world) => world.pass(0)],
  ["a pass that dies after the status", (world) => world.pass(1)],
  ["a pass that dies after a shadow", (world) => world.pass(2)],
  ["a step", (world, host) => world.step(host)],
  ["a step", (world, host) => world.step(host)],
  ["steps of all", (world) => world.hosts.forEach((one) => world.step(one))],
  ["a minute", (world) => world.advance(1)],
  ["ten minutes", (world) => world.advance(10)],
  ["two hours", (world) => world.advance(120)],
  ["a failure", (world, host) => world.step(host, true)],
  ["silence", flip("silent")],
  ["a budget", flip("blocked")],
  ["missing work", flip("missing")],
  ["a rollback", flip("rollsBack")],
  ["a death", (_, host) => void (host.node.ready || (host.dead = true))],
  ["a person", (world) => world.unfreeze()],
];

const histories = fc.array(fc.tuple(fc.nat(EVENTS.length - 1), fc.nat(3)), {
  minLength: 20,
  maxLength: 150,
  size: "max",
});
const limits = fc.integer({ min: 1, max: 3 });

function play(limit: number, history: readonly (readonly [number, number])[]): World {
  const world = new World(4, limit);
  for (const [event, host] of history) {
    const one = world.hosts[host % world.hosts.length];
    if (one) EVENTS[event]?.[1](world, one);
  }
  return world;
}

/** Everything that can be well is, and a person clears each freeze. */
function settle(world: World, withPerson: boolean): void {
  for (const host of world.hosts)
    Object.assign(host, { silent: false, blocked: false, missing: false, rollsBack: false });
  for (let i = 0; i < 400; i++) {
    if (withPerson) world.unfreeze();
    world.pass();
    for (const host of world.hosts) world.step(host);
    world.advance(i % 20 === 19 ? 1441 : 2);
  }
}

describe("whatever hosts, agents, drains and the controller do", () => {
  it("never more nodes than allowed are active or out of service, and a frozen campaign starts nothing", () =>
    fc.assert(
      fc.property(limits, histories, (limit, history) => {
        const world = play(limit, history);
        assert.deepEqual(world.violations, []);
      }),
      { numRuns: runs(1500) },
    ));

  it("in the end every living node is updated, Idle and not cordoned by us, and every other one is named", () =>
    fc.assert(
      fc.property(limits, histories, (limit, history) => {
        const world = play(limit, history);
        settle(world, true);
        assert.deepEqual(world.violations, []);
        for (const { name, dead, node, spec, status } of world.hosts) {
          if (dead) assert.ok(world.failures.has(name), `${name} is dead and not named`);
          else
            assert.deepEqual(
              [name, node.cordonedBy, spec.state, status.current_state, status.current_version],
              [name, undefined, "Idle", "Idle", TARGET],
            );
        }
      }),
      { numRuns: runs(200) },
    ));

  it("without a person the campaign ends, or is frozen and says why", () =>
    fc.assert(
      fc.property(limits, histories, (limit, history) => {
        const world = play(limit, history);
        settle(world, false);
        const { frozen } = world.policy.status;
        const isUpdated = ({ status, spec }: Host): boolean =>
          status.current_version === TARGET && spec.state === "Idle";
        const isDone = world.hosts.every((host) => isUpdated(host) || (host.dead && world.failures.has(host.name)));
        assert.ok(isDone || frozen?.message, JSON.stringify(world.policy.status));
      }),
      { numRuns: runs(200) },
    ));
});
