/** Nodes that are updated beside each other: at least one of each topology zone stays for the pods of the others (§17.12). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planPass } from "../../../reconciler/nodes/plan-pass.ts";
import type { UpdateNode } from "../../../reconciler/nodes/node.ts";
import type { NodeReading, PolicySnapshot } from "../../../reconciler/nodes/snapshot.ts";
import { at, busyNode, entry, MINUTE, node, policy, snapshot } from "./fixture.ts";

/** What is read of nodes with pods, of which these take pods. */
const readAll = (nodes: readonly UpdateNode[], open: readonly UpdateNode[], more: Partial<NodeReading> = {}) =>
  new Map(
    nodes.map(({ name }): [string, NodeReading] => [
      name,
      { workloads: [], others: open.filter((other) => other.name !== name), ...more },
    ]),
  );

const inZone = (zone: string, ...names: readonly string[]) => names.map((name) => node(name, { zone }));
const staged = (name: string, zone: string) =>
  busyNode(name, "StagedAndPerformedUpdate", "StagedAndPerformedUpdate", { node: { zone } });
const many = { maxConcurrent: 10 };

const started = (input: PolicySnapshot): string[] => planPass(input).started.map(({ name }) => name);
const skipped = (input: PolicySnapshot): string[] => planPass(input).skips.map((skip) => `${skip.node} ${skip.reason}`);
const rebooted = (input: PolicySnapshot): string[] =>
  planPass(input).writes.flatMap(({ node: { name }, spec }) => (spec.state === "RebootedIntoUpdate" ? [name] : []));

describe("nodes that start in one pass", () => {
  it("leave one of their zone", () => {
    const nodes = inZone("a", "a1", "a2", "a3");
    const readings = readAll(nodes, [...nodes, ...inZone("b", "b1")]);
    const input = snapshot(nodes, { readings, policy: policy(many) });
    assert.deepEqual(started(input), ["a1", "a2"]);
    assert.deepEqual(skipped(input), ["a3 LimitReached"]);
    assert.match(
      planPass(input).skips[0]?.message ?? "",
      /no other node of zone a takes its pods until a1, a2 is back/,
    );
  });

  it("leave none where no pod has to go", () => {
    const nodes = inZone("a", "a1", "a2");
    const readings = readAll(nodes, nodes, { others: undefined });
    assert.deepEqual(started(snapshot(nodes, { readings, policy: policy(many) })), ["a1", "a2"]);
  });
});

describe("a node starts beside nodes that are active", () => {
  const nodes = [staged("a1", "a"), ...inZone("a", "a2")];
  const active = [entry("a1", { zone: "a", phase: "Holding" })];
  const [, own] = nodes;

  it("unless it is the last of its zone", () =>
    assert.deepEqual(skipped(snapshot(nodes, { readings: readAll(nodes, nodes), policy: policy(many, { active }) })), [
      "a2 LimitReached",
    ]));

  it("unless all others that take pods go by other policies", () => {
    const [a1 = own] = inZone("a", "a1");
    const others = [entry("b1", { zone: "b", phase: "Holding" })];
    const input = snapshot(a1 ? [a1] : [], {
      readings: readAll(inZone("a", "a1"), inZone("b", "b1")),
      others,
      policy: policy(many),
    });
    assert.deepEqual(skipped(input), ["a1 LimitReached"]);
  });

  it("of another policy as well", () =>
    assert.deepEqual(
      skipped(snapshot(own ? [own] : [], { readings: readAll(nodes, nodes), others: active, policy: policy(many) })),
      ["a2 LimitReached"],
    ));
});

describe("nodes that are staged", () => {
  const nodes = [staged("a1", "a"), staged("a2", "a")];
  const active = nodes.map(({ name }) => entry(name, { zone: "a", phase: "Holding" }));

  it("do not wait for each other, and one of them reboots", () =>
    assert.deepEqual(rebooted(snapshot(nodes, { readings: readAll(nodes, nodes), policy: policy(many, { active }) })), [
      "a1",
    ]));

  it("wait until the one that drains is back", () => {
    const draining = busyNode("a1", "RebootedIntoUpdate", "StagedAndPerformedUpdate", { node: { zone: "a" } });
    const [, second] = nodes;
    const both = second ? [draining, second] : [];
    const phases = [entry("a1", { zone: "a", phase: "Draining" }), entry("a2", { zone: "a", phase: "Holding" })];
    const input = snapshot(both, { readings: readAll(both, [draining]), policy: policy(many, { active: phases }) });
    assert.deepEqual(rebooted(input), []);
    assert.match(planPass(input).status.active[1]?.waitsFor ?? "", /until a1 is back in service/);
  });
});

it("a one-shot is over although a node has no place for its pods: that does not end by itself", () => {
  const firedAt = { cron: "0 0 11 * * *", timeZone: "UTC", handledThrough: at(-120 * MINUTE) };
  const nodes = inZone("a", "a1");
  const isOver = (oneByOne: string | undefined): boolean => {
    const readings = readAll(nodes, inZone("b", "b1"), { oneByOne });
    const input = snapshot(nodes, {
      readings,
      policy: policy({ window: { cron: firedAt.cron } }, { campaign: firedAt }),
    });
    return planPass(input).status.campaign?.handledThrough === at(0);
  };
  assert.deepEqual([isOver("shop/a-0 would wait for shop/a-1"), isOver(undefined)], [true, false]);
});
