/** Whether a node can be drained beside those that are being updated. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type Going,
  goingBeforeReboot,
  goingBeforeStart,
  whyNotTogether,
} from "../../../reconciler/nodes/drain-together.ts";
import type { DrainFacts } from "../../../reconciler/nodes/drainable.ts";
import type { NodePod } from "../../../reconciler/nodes/node-pod.ts";
import type { Places } from "../../../reconciler/nodes/places.ts";
import { planPass } from "../../../reconciler/nodes/plan-pass.ts";
import { NODE_PHASES } from "../../../reconciler/nodes/policy-status.ts";
import type { GoingNode, NodeReading } from "../../../reconciler/nodes/snapshot.ts";
import { busyNode, entry, node, policy, pod, snapshot } from "./fixture.ts";

/** A pod on a node, and where else it fits: open nodes, or `{ name: state }` for those that take none now. */
type Here = readonly [pod: NodePod, open: readonly string[], closed?: Readonly<Record<string, string>>, back?: string];

const labels = { app: "db" };
/** One disruption at a time of all pods with the labels. */
const budget = (disruptionsAllowed = 1) => ({
  namespace: "shop",
  name: "db",
  selector: { matchLabels: labels },
  disruptionsAllowed,
  isMet: true,
  allowsUnhealthy: false,
});

function reading(
  here: readonly Here[],
  { allowed = 1, ...rest }: Partial<NodeReading> & { readonly allowed?: number } = {},
): NodeReading {
  const places = new Map(
    here.map(([{ uid }, open, closed = {}, back]): [string, Places] => {
      const places = { open, closed: new Map(Object.entries(closed)), why: "of 3 other nodes: 3 not zone=a" };
      return [uid, { ...places, ...(back !== undefined && { back }) }];
    }),
  );
  const drain: DrainFacts = {
    now: 0,
    pods: here.map(([one]) => one),
    budgets: [],
    covered: new Map(),
    coreBudgets: [budget(allowed)],
    hasElsewhere: true,
    places,
  };
  return { workloads: [], drain, ...rest };
}

const NOBODY: Going = { out: new Set(), leaving: [] };
const going = (...names: readonly string[]): Going => ({ out: new Set(names), leaving: names });
const db = (name: string, overrides = {}): NodePod =>
  pod(name, { labels, owner: `set-${name}`, kind: "StatefulSet", ...overrides });
const ask = (readings: Readonly<Record<string, NodeReading>>, of: string, others = NOBODY, isForced = false) =>
  whyNotTogether({ node: of, going: others, readings: new Map(Object.entries(readings)), isForced });
const reasonOf = (...question: Parameters<typeof ask>): string => {
  const answer = ask(...question);
  return answer && "reason" in answer
    ? `${answer.reason}: ${answer.message}`
    : answer
      ? `read ${answer.toRead.join()}`
      : "";
};

describe("pods that fit on other nodes", () => {
  for (const [title, here, others, expected] of [
    ["may go while one of these stays", [[db("a"), ["n2", "n3"]]], going("n2"), /^read n2$/],
    [
      "have no place while all of these are being updated",
      [[db("a"), ["n2"]]],
      going("n2"),
      /^NoPlaceForPods: shop\/a of n1 has no place: it fits on n2 \(being updated\) alone$/,
    ],
    [
      "have none on nodes that take no pods",
      [[db("a"), [], { n2: "cordoned", n3: "not Ready" }]],
      NOBODY,
      /it fits on n2 \(cordoned\), n3 \(not Ready\) alone$/,
    ],
    [
      "have none if one is updated and the other cordoned",
      [[db("a"), ["n2"], { n3: "cordoned" }]],
      going("n2"),
      /n2 \(being updated\), n3 \(cordoned\) alone$/,
    ],
    [
      "are named four at most",
      [[db("a"), [], { n2: "cordoned", n3: "cordoned", n4: "cordoned", n5: "cordoned" }]],
      NOBODY,
      /n4 \(cordoned\) and 1 more alone$/,
    ],
    ["need none if no controller creates them again", [[db("a", { kind: "" }), [], { n2: "cordoned" }]], NOBODY, /^$/],
    [
      "need none if a drain leaves them alone",
      [[db("a", { kind: "DaemonSet" }), [], { n2: "cordoned" }]],
      NOBODY,
      /^$/,
    ],
    ["need none if they are over", [[db("a", { phase: "Failed" }), [], { n2: "cordoned" }]], NOBODY, /^$/],
  ] as const satisfies readonly (readonly [string, readonly Here[], Going, RegExp])[])
    it(title, () => assert.match(reasonOf({ n1: reading(here) }, "n1", others), expected));
});

describe("pods that could not even come back to their node", () => {
  const nowhere: Here = [db("a"), [], {}, "somebody else has cordoned it"];
  for (const isForced of [false, true])
    it(`are not evicted, ${isForced ? "also where the reboot ends drains" : "as they could go nowhere"}`, () =>
      assert.equal(
        reasonOf({ n1: reading([nowhere]) }, "n1", NOBODY, isForced),
        "NoPlaceForPods: shop/a could come back to n1 alone (of 3 other nodes: 3 not zone=a), which would not take it: somebody else has cordoned it",
      ));
  it("do not keep a window open", () =>
    assert.deepEqual(ask({ n1: reading([nowhere]) }, "n1")?.["fits" as never], [[]]));
  it("do not matter where no controller makes them again", () =>
    assert.equal(reasonOf({ n1: reading([[db("a", { kind: "" }), [], {}, "cordoned"]]) }, "n1"), ""));
});

describe("pods that can come back to their node alone", () => {
  const captive: Here = [db("a"), []];
  for (const [title, here, options, expected] of [
    ["may go if no other waits for them: they come back with the node", [captive], {}, /^$/],
    ["may go beside pods of other budgets", [captive, [pod("x"), ["n2"]]], {}, /^$/],
    [
      "may all go where nothing protects them",
      [
        [pod("x"), []],
        [pod("y"), []],
      ],
      {},
      /^$/,
    ],
    ["may all go within a larger budget", [captive, [db("b"), []]], { allowed: 2 }, /^$/],
    [
      "may not if another one of the budget waits for them",
      [captive, [db("b"), []]],
      {},
      /^DrainWouldNotEnd: shop\/b could come back to n1 alone \(of 3 other nodes: 3 not zone=a\), and shop\/a would wait for it: PodDisruptionBudget db/,
    ],
    [
      "may not if one that could move waits for them",
      [captive, [db("b"), ["n2"]]],
      {},
      /^DrainWouldNotEnd: shop\/a could come back to n1 alone .*, and shop\/b would wait/,
    ],
    [
      "count if they are not ready already",
      [
        [db("a", { ready: false }), []],
        [db("b"), ["n2"]],
      ],
      { allowed: 0 },
      /^DrainWouldNotEnd: shop\/a/,
    ],
  ] as const satisfies readonly (readonly [string, readonly Here[], object, RegExp])[])
    it(title, () => assert.match(reasonOf({ n1: reading(here, options) }, "n1"), expected));

  it("may go if the policy ends such drains by a reboot", () =>
    assert.equal(reasonOf({ n1: reading([captive, [db("b"), []]]) }, "n1", NOBODY, true), ""));
  it("but are not left without a place by our own doing, even then", () =>
    assert.match(reasonOf({ n1: reading([[db("a"), ["n2"]]]) }, "n1", going("n2"), true), /^NoPlaceForPods/));

  const api = pod("api", { labels: { "brupop.bottlerocket.aws/component": "apiserver" }, owner: "rs-uid" });
  const ready = (count: number) => ({
    workloads: [{ kind: "ReplicaSet", namespace: "shop", name: "api", uid: "rs-uid", ready: count }],
  });
  it("stay if they are the whole node API: nobody could go on", () =>
    assert.match(
      reasonOf({ n1: reading([[api, []]], ready(1)) }, "n1", NOBODY, true),
      /^DrainWouldNotEnd: shop\/api of the node API/,
    ));
  it("go if their budget keeps the last one until a reboot that the policy forces, which it announces", () => {
    const all = {
      ...reading(
        [
          [api, []],
          [{ ...api, uid: "api-2", name: "api-2" }, []],
        ],
        ready(2),
      ),
    };
    const core = { ...budget(1), selector: { matchLabels: api.labels } };
    const kept = { ...all, drain: { ...(all.drain ?? assert.fail()), coreBudgets: [core] } };
    assert.equal(reasonOf({ n1: kept }, "n1", NOBODY, true), "");
    assert.match(reasonOf({ n1: kept }, "n1", NOBODY, false), /^DrainWouldNotEnd: shop\/api of the node API/);
  });
  it("go if other pods of the node API serve", () =>
    assert.equal(reasonOf({ n1: reading([[api, []]], ready(3)) }, "n1"), ""));
});

describe("beside a node that is being drained", () => {
  for (const [title, n1, n2, expected] of [
    ["a node with pods of other budgets may go", [[pod("x"), ["n3"]]], [[db("a"), []]], /^$/],
    [
      "no pod may have to wait for one that waits for the other node",
      [[db("b"), ["n3"]]],
      [[db("a"), []]],
      /^NoPlaceForPods: shop\/b of n1 would wait for shop\/a, which could come back to n2 alone, and that is being updated$/,
    ],
    [
      "no pod of the other node may have to wait for one of this node",
      [[db("a"), []]],
      [[db("b"), ["n3"]]],
      /^NoPlaceForPods: shop\/b of n2, which is being updated, would wait for shop\/a of n1$/,
    ],
    [
      "its pods keep their last place",
      [[pod("x"), ["n3"]]],
      [[db("a"), ["n1"]]],
      /^NoPlaceForPods: shop\/a of n2, which is being updated, has no place but on n1$/,
    ],
    ["its pods may lose one of several places", [[pod("x"), ["n3"]]], [[db("a"), ["n1", "n3"]]], /^$/],
    [
      "each of its pods keeps its last place, also after one that has none in any case",
      [[pod("x"), ["n3"]]],
      [
        [db("a"), [], { n4: "cordoned" }],
        [db("b"), ["n1"]],
      ],
      /^NoPlaceForPods: shop\/b of n2, which is being updated, has no place but on n1$/,
    ],
    [
      "a pod that has no place in any case holds nobody",
      [[pod("x"), ["n3"]]],
      [[db("a"), [], { n4: "cordoned" }]],
      /^$/,
    ],
  ] as const satisfies readonly (readonly [string, readonly Here[], readonly Here[], RegExp])[])
    it(title, () => assert.match(reasonOf({ n1: reading(n1), n2: reading(n2) }, "n1", going("n2")), expected));

  it("a pod that waits for a budget in any case holds nobody", () =>
    assert.equal(
      reasonOf({ n1: reading([[pod("x"), []]]), n2: reading([[db("a"), ["n3"]]], { allowed: 0 }) }, "n1", going("n2")),
      "",
    ));
});

describe("which nodes count as going", () => {
  const active = NODE_PHASES.map((phase) => entry(phase, { phase }));
  it("before a start: all that have not come back from their reboot", () => {
    const { out, leaving } = goingBeforeStart(active);
    assert.deepEqual([...out], ["Starting", "Staging", "Holding", "Draining", "Rebooting"]);
    assert.deepEqual(leaving, ["Starting", "Staging", "Holding", "Draining"]);
  });
  it("before a reboot: those that are being drained or reboot, as nodes that are held would wait for each other", () => {
    const { out, leaving } = goingBeforeReboot(active);
    assert.deepEqual([[...out], leaving], [["Draining", "Rebooting"], ["Draining"]]);
  });
});

describe("a one-shot window", () => {
  const campaign = { cron: "0 0 11 * * *", timeZone: "UTC", handledThrough: "2026-01-01T00:00:00Z" };
  const isOpen = (of: NodeReading, others: readonly GoingNode[] = []): boolean => {
    const input = snapshot([node("n1")], {
      readings: new Map([["n1", of]]),
      others,
      policy: policy({ window: { cron: campaign.cron } }, { campaign }),
    });
    const { started, status } = planPass(input);
    assert.deepEqual(started, []);
    return status.campaign?.handledThrough === campaign.handledThrough;
  };
  const drained: GoingNode = { node: "n2", phase: "Draining" };
  const cordoned: Here = [db("a"), [], { n3: "cordoned" }];

  for (const [title, of, others, expected] of [
    ["does not wait for a person's cordon", reading([cordoned]), [], false],
    ["does not wait for a node that is not Ready", reading([[db("a"), [], { n3: "not Ready" }]]), [drained], false],
    ["does not wait for a right", reading([], { unknown: "Forbidden" }), [], false],
    ["waits for a place on a node of another policy", reading([[db("a"), ["n2"]]]), [drained], true],
    [
      "waits for one that comes back from its reboot",
      reading([[db("a"), [], { n2: "cordoned" }]]),
      [{ node: "n2", phase: "Returning" }],
      true,
    ],
    ["does not wait if another pod has no place in any case", reading([[db("a"), ["n2"]], cordoned]), [drained], false],
    ["does not wait for it if that was found a moment ago", reading([], { held: heldBy([["n3"]]) }), [], false],
    ["waits if a moment ago a node was going", reading([], { held: heldBy([["n2"]]) }), [drained], true],
  ] as const satisfies readonly (readonly [string, NodeReading, readonly GoingNode[], boolean])[])
    it(title, () => assert.equal(isOpen(of, others), expected));
});

function heldBy(fits: readonly (readonly string[])[]): NodeReading["held"] {
  return { reason: "NoPlaceForPods", message: "m", fits };
}

describe("the plan", () => {
  const pinned = (name: string, other: string): readonly [string, NodeReading] => [
    name,
    reading([[pod(name), [other]]]),
  ];
  const pairs = new Map([pinned("a1", "a2"), pinned("a2", "a1"), pinned("b1", "b2"), pinned("b2", "b1")]);
  const nodes = ["a1", "a2", "b1", "b2"].map((name) => node(name, { zone: name.slice(0, 1) }));
  const plan = (spec: object, status = {}, of = nodes, readings = pairs) =>
    planPass(snapshot(of, { readings, policy: policy(spec, status) }));
  const startsOf = (...input: Parameters<typeof plan>): string[] => plan(...input).started.map(({ name }) => name);

  it("starts one node of each pair, however many are allowed", () => {
    assert.deepEqual(startsOf({ maxConcurrent: 4, zonesInOrder: false }), ["a1", "b1"]);
    assert.deepEqual(startsOf({ maxConcurrent: 4 }), ["a1"]);
    assert.deepEqual(plan({ maxConcurrent: 4, zonesInOrder: false }).status.skipped, { NoPlaceForPods: 2 });
  });

  it("starts the second once the first is back from its reboot", () => {
    const back = busyNode("a1", "MonitoringUpdate", "RebootedIntoUpdate", { node: { zone: "a", bootId: "boot-2" } });
    const of = [back, ...nodes.slice(1)];
    assert.deepEqual(startsOf({ maxConcurrent: 4 }, { active: [entry("a1", { zone: "a", phase: "Returning" })] }, of), [
      "a2",
    ]);
  });

  it("counts the active nodes of other policies", () => {
    const others = [{ node: "a1", phase: "Draining" as const }];
    const input = snapshot(nodes.slice(1, 2), { readings: pairs, others, policy: policy({ maxConcurrent: 4 }) });
    assert.deepEqual(planPass(input).status.skipped, { NoPlaceForPods: 1 });
  });

  it("reboots one of two staged nodes, and the other once that is back", () => {
    const staged = ["a1", "a2"].map((name) => busyNode(name, "StagedAndPerformedUpdate", "StagedAndPerformedUpdate"));
    const active = ["a1", "a2"].map((name) => entry(name, { phase: "Holding" }));
    const { writes, status } = plan({ maxConcurrent: 2 }, { active }, staged);
    assert.deepEqual(
      writes.map(({ node: { name }, spec }) => `${name} ${spec.state}`),
      ["a1 RebootedIntoUpdate"],
    );
    assert.match(
      status.active[1]?.waitsFor ?? "",
      /shop\/a2 of a2 has no place: it fits on a1 \(being updated\) alone/,
    );
  });

  it("starts what comes before the first node that must be read, if more are allowed than a pass reads", () => {
    const readings = new Map([...pairs].slice(0, 1));
    const { started, toRead: wanted } = plan({ maxConcurrent: 4, zonesInOrder: false }, {}, nodes, readings);
    assert.deepEqual([started.map(({ name }) => name), wanted], [["a1"], ["a2", "b1", "b2"]]);
  });

  it("says that the places are not known", () =>
    assert.deepEqual(
      plan({}, {}, nodes.slice(0, 1), new Map([["a1", reading([], { unknown: "Forbidden" })]])).status.waiting,
      [{ node: "a1", reason: "PlacesUnknown", message: "Forbidden" }],
    ));
});
