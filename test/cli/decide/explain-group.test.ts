/** Each reason is induced, and explained with its rule, the objects that block, and what helps. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addAnswer, explainGroup, explainPod, explainZone } from "../../../cli/decide/explain-group.ts";
import type { GroupState } from "../../../cli/decide/group-state.ts";
import { RULES, type Denial } from "../../../reconciler/remedies/rules.ts";
import { describeZone } from "../../../reconciler/group-status/zones.ts";
import { REASONS, type Reason } from "../../../reconciler/model/decision.ts";
import { goneHealth, readyHealth } from "../../../reconciler/model/health.ts";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { NOT_NOW } from "../../../reconciler/budget/verdict.ts";
import { worldOf } from "../../builders/groups.ts";
import { LAST, NOON, TOO_LONG } from "../../builders/zones.ts";
import { budgetOf, OUTDATED, recorded, withBudget, WORLDS, zonesOf } from "./worlds.ts";
import type { World } from "../../../reconciler/plan/world.ts";

const NO_IMAGE = { ready: false, revision: LAST, broken: "ImagePullBackOff" };

/** Nothing is recorded of it. */
const stateOf = ({ zones }: World, status?: GroupState["status"]): GroupState => ({
  namespace: "test",
  group: "ingester",
  zones,
  status,
  generation: 1,
});

/** A word that the reader would have to replace. */
const PLACEHOLDER = /\b(GROUP|ZONE|POD|NAMESPACE|GATE|BUDGET|LEADER|OTHER|NAME|N)\b/;

describe("zonewise explain names rule, objects and remedy of", () => {
  for (const reason of Object.keys(REASONS) as Reason[])
    it(reason, () => {
      const make = WORLDS[reason];
      const world = make?.() ?? worldOf(zonesOf({}));
      const zones = world.zones.map((zone) => describeZone(zone));
      const status = make ? undefined : { ...recorded(reason), observedGeneration: 1, zones };
      const answers = explainGroup(stateOf(world, status), world);
      const answer = answers.find((one) => one.reason === reason) ?? assert.fail(JSON.stringify(answers));
      assert.equal(answer.allowed, false);
      assert.equal(answer.rule, RULES[reason].rule);
      assert.ok(answer.objects.length > 0, "no objects");
      assert.match(answer.message, /ingester-zone-|group ingester/);
      assert.notEqual(answer.remedy, "");
      assert.doesNotMatch(answer.remedy, PLACEHOLDER);
    });
});

const two = (spec: object): World => withBudget([{}, {}, {}], spec);
const changePod = (world: World, change: object): World => ({
  ...world,
  zones: world.zones.map((zone, i) => ({
    ...zone,
    pods: zone.pods.map((pod, n) => (i + n === 0 ? { ...pod, ...change } : pod)),
  })),
});
const reservedFor = (world: World, kind: "eviction" | "rollout"): World => ({
  ...world,
  budgets: world.budgets.map((one) => ({
    ...one,
    reservations: {
      "ingester-zone-a-0": {
        kind,
        uid: "uid-ingester-zone-a-0",
        pinned: true,
        time: new Date(NOON).toISOString(),
        by: "another",
      },
    },
  })),
});

interface Denied {
  readonly world: World;
  readonly objects: readonly string[];
  readonly helps: RegExp;
}

/**
 * Complete by its type: every other reason of the closed list but NotNow, which only an answer of the webhook shows.
 */
const DENIALS: Readonly<Record<Exclude<Denial, "NotNow">, Denied>> = {
  SeveralBudgets: {
    world: withBudget([{}, {}], {}, [budgetOf({}, "second")]),
    objects: ["ingester", "second"],
    helps: /keep one, such as ingester:\n.* delete zpdb second$/,
  },
  BudgetInvalid: { world: two({ maxUnavailable: -1 }), objects: ["ingester"], helps: /edit zpdb ingester/ },
  OwnerNotFound: {
    world: changePod(two({}), { owner: undefined, madeBy: undefined, controller: undefined }),
    objects: ["ingester"],
    helps: /as doctor proposes:\nzonewise -n test doctor$/,
  },
  MaxUnavailableZero: {
    world: two({ maxUnavailable: 0 }),
    objects: ["ingester"],
    helps: /patch zpdb ingester .*maxUnavailable":1,"maxUnavailablePercentage":null}}'$/,
  },
  TooFewZones: {
    world: withBudget([{}], {}),
    objects: ["ingester"],
    helps: /delete zpdb ingester\nor if there are other zones, .*\n.*get zpdb ingester /,
  },
  TooManyZones: {
    world: withBudget(
      Array.from({ length: MAX_ZONES + 1 }, (_, i) => ({ name: `ingester-zone-${i}` })),
      {},
    ),
    objects: ["ingester"],
    helps: /give some of its zones another group by their label rollout-group:\n.*get statefulsets -l rollout-group=/,
  },
  LabelsTooLong: {
    world: withBudget([{}, { labels: TOO_LONG }], {}),
    objects: ["ingester"],
    helps: /remove labels .*\n.*edit statefulset /,
  },
  PartitionUnknown: {
    world: two({ podNamePartitionRegex: "(x)" }),
    objects: ["ingester"],
    helps: /edit zpdb ingester/,
  },
  BudgetSpent: {
    world: withBudget([{}, { pods: { 1: { ready: false } } }, {}], {}),
    objects: ["ingester-zone-b-1", "ingester"],
    helps: /describe pod ingester-zone-b-1/,
  },
  PodTerminating: {
    world: changePod(two({}), { health: goneHealth(readyHealth(undefined), undefined) }),
    objects: ["ingester-zone-a-0"],
    helps: /try again once it is gone/,
  },
  AllowedAlready: {
    world: reservedFor(two({}), "rollout"),
    objects: ["ingester"],
    helps: /try again once it is gone/,
  },
};

describe("zonewise explain pod names rule, objects and remedy of the denial", () => {
  for (const [reason, { world, objects, helps }] of Object.entries(DENIALS))
    it(reason, () => {
      const pod = world.zones[0]?.pods[0] ?? assert.fail();
      const [answer = assert.fail()] = explainPod(pod, stateOf(world), world);
      assert.deepEqual([answer.question, answer.reason, answer.allowed], ["evict", reason, false]);
      assert.equal(answer.rule, RULES[reason as Denial].rule);
      const names = answer.objects.map(({ name }) => name);
      for (const name of objects) assert.ok(names.includes(name), names.join());
      assert.match(answer.remedy, helps);
      assert.doesNotMatch(answer.remedy, PLACEHOLDER);
    });

  it("which counts a pod that is not ready since the time that is recorded of it", () => {
    const world = withBudget([{}, { pods: { 1: { ready: false } } }, {}], {});
    const since = "2026-01-01T11:00:00Z";
    const stored = {
      reason: "ZoneNotReady",
      phase: "RollingOut",
      message: "",
      cause: "",
      since,
      objects: [{ kind: "Pod", name: "ingester-zone-b-1" }],
    } as const;
    const pod = world.zones[0]?.pods[0] ?? assert.fail();
    assert.equal(explainPod(pod, stateOf(world, { holds: [stored] }), world)[0]?.since, since);
  });
});

it("a pod that is not ready is said to keep the other zones' pods from being evicted", () => {
  const world = withBudget([{}, { pods: { 1: { ready: false, broken: "ImagePullBackOff" } } }, {}], {});
  const [, ill = assert.fail()] = world.zones[1]?.pods ?? [];
  const answer = explainPod(ill, stateOf(world), world).at(-1);
  assert.equal(answer?.question, "blocks its group");
  assert.match(answer?.message ?? "", /^ingester-zone-b-1 \(ImagePullBackOff i\) keeps group ingester waiting; /);
  assert.match(answer?.message ?? "", /; no pod of ingester-zone-a, ingester-zone-c may be evicted$/);
  assert.match(answer?.remedy ?? "", /^delete the pod; .*\n.* delete pod ingester-zone-b-1\n/);
});

it("a refusal by the API server is the answer, though no rule of ours says no", () => {
  const scene = two({});
  const pod = scene.zones[0]?.pods[0] ?? assert.fail();
  const answers = explainPod(pod, stateOf(scene), scene);
  const said = `create pods/eviction: admission webhook "pod-eviction" denied the request: ${NOT_NOW.message} (429)`;
  const [late = assert.fail()] = addAnswer(answers, { kind: "refused", message: said }, { pod, scene });
  assert.deepEqual([late.reason, late.rule, late.allowed], ["NotNow", RULES.NotNow.rule, false]);
  assert.deepEqual(late.objects, [{ kind: "Pod", name: pod.name }]);
  assert.match(late.remedy, /try again; if it fails again, look at the log of the functions/);
  const [refused] = addAnswer(answers, { kind: "refused", message: "Cannot evict pod" }, { pod, scene });
  assert.deepEqual([refused?.question, refused?.reason, refused?.allowed], ["evict", "Refused", false]);
  assert.deepEqual(addAnswer(answers, { kind: "allowed" }, { pod, scene }), answers);
  const denied = answers.map((one) => ({ ...one, allowed: false }));
  assert.deepEqual(addAnswer(denied, { kind: "refused", message: "Cannot evict pod" }, { pod, scene }), denied);
});

describe("zonewise explain says yes", () => {
  it("to a pod that may be evicted and is the next of the rollout", () => {
    const world = withBudget([OUTDATED, {}, {}], {});
    const pod = world.zones[0]?.pods[0] ?? assert.fail();
    const answers = explainPod(pod, stateOf(world), world);
    assert.deepEqual(
      answers.map(({ question, allowed }) => [question, allowed]),
      [
        ["evict", true],
        ["roll out", true],
      ],
    );
  });

  it("to a zone that waits only for its turn, and says whose it is", () => {
    const world = worldOf(zonesOf(OUTDATED, OUTDATED));
    const zone = world.zones[1] ?? assert.fail();
    const [answer] = explainZone(zone, stateOf(world), world);
    assert.match(answer?.message ?? "", /^it is the turn of ingester-zone-a: updating/);
  });

  it("to a settled group", () => {
    const world = worldOf(zonesOf({}, {}));
    assert.deepEqual(
      explainGroup(stateOf(world), world).map(({ allowed }) => allowed),
      [true],
    );
  });
});

it("what is recorded of a group that has changed since is not repeated", () => {
  const world = worldOf(zonesOf({ ...OUTDATED, generation: 2 }, { updateRevision: LAST }));
  const status = {
    ...recorded("ScaleRefused"),
    observedGeneration: 1,
    zones: world.zones.map((zone) => ({ ...describeZone(zone), generation: 1 })),
  };
  assert.deepEqual(
    explainGroup(stateOf(world, status), world).map(({ reason }) => reason),
    [""],
  );
});

it("a downscale that a webhook refuses for outdated pods waits for their rollout", () => {
  const judged = { "grafana.com/prepare-downscale": "true" };
  const follows = { "grafana.com/rollout-downscale-leader": "ingester-zone-a" };
  const paused = { "grafana.com/rollout-paused": "true" };
  const world = worldOf(
    zonesOf({ replicas: 2 }, { annotations: follows, labels: judged }, { ...OUTDATED, annotations: paused }),
  );
  const answer = explainGroup(stateOf(world), world).find(({ question }) => question === "scale");
  assert.equal(answer?.reason, "OtherZoneNotReady");
  assert.equal(
    answer?.remedy,
    "wait until ingester-zone-c is rolled out, or see what it waits for:\nzonewise -n test explain group/ingester",
  );
});

describe("a group that takes no step says which of these it is", () => {
  const PAUSED = { annotations: { "grafana.com/rollout-paused": "true" } };
  for (const [what, traits, expected] of [
    ["nothing to do", [{}, {}], ["Nothing to do", true, /^all zones are up to date$/]],
    [
      "one of its zones is paused, and nothing to do",
      [PAUSED, {}],
      ["Nothing to do", true, /^all zones are up to date$/],
    ],
    [
      "all its zones are paused",
      [PAUSED, PAUSED],
      [
        "Nothing to do",
        true,
        /^all zones are up to date; ingester-zone-a, ingester-zone-b are paused: a new template waits .*resume ingester\)$/,
      ],
    ],
    ["the next tick acts", [OUTDATED, OUTDATED], ["Goes on by itself", true, /^updating ingester-zone-a-0/]],
    [
      "a pod is not ready",
      [
        {
          ...OUTDATED,
          statusReady: 1,
          pods: { 0: { ready: false, revision: LAST }, 1: { ready: false, revision: LAST } },
        },
        OUTDATED,
      ],
      ["RollingOut", false, /^ingester-zone-a-0: not ready/],
    ],
    [
      "its image cannot be pulled",
      [{ ...OUTDATED, statusReady: 1, pods: { 0: NO_IMAGE, 1: NO_IMAGE } }, OUTDATED],
      ["Blocked", false, /^ingester-zone-a-0: ImagePullBackOff i/],
    ],
  ] as const)
    it(what, () => {
      const world = worldOf(zonesOf(...traits));
      const [first] = explainGroup(stateOf(world), world);
      const [answer, allowed, message] = expected;
      assert.deepEqual([first?.answer, first?.allowed], [answer, allowed]);
      assert.match(first?.message ?? "", message);
    });

  it("a paused zone of a group that is up to date", () => {
    const world = worldOf(zonesOf(PAUSED, {}));
    const [first] = world.zones[0] ? explainZone(world.zones[0], stateOf(world), world) : [];
    assert.equal(first?.answer, "Nothing to do");
    assert.match(first?.message ?? "", /; ingester-zone-a is paused: a new template waits until you resume/);
  });
});
