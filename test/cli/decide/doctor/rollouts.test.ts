import assert from "node:assert/strict";
import type { Gate } from "../../../../reconciler/gates/gate.ts";
import type { GateRecord } from "../../../../reconciler/gates/record.ts";
import { readZone, type Zone } from "../../../../reconciler/model/zone.ts";
import { describe, it } from "node:test";
import { type Finding, runChecks } from "../../../../cli/decide/doctor/check.ts";
import {
  GATES,
  listSecrets,
  MIRRORS,
  PHASED,
  type PhasedFacts,
  POLICIES,
  rightOf,
  SECRETS,
} from "../../../../cli/decide/doctor/rollouts.ts";
import type { Phased } from "../../../../cli/decide/explain-phased.ts";
import { readTarget } from "../../../../reconciler/phased/target.ts";
import { group, statefulSetObject, type ZoneTraits } from "../../../reconciler/builders.ts";
import { MIRROR } from "../../../reconciler/scaling/mirror-stage.ts";
import { gateOf } from "../../../reconciler/gates/builders.ts";
import { at, policy } from "../../../reconciler/nodes/fixture.ts";
import { rollout, setObject, type RolloutTraits, type SetTraits } from "../../../reconciler/phased/builders.ts";

const examinePhased = (all: readonly Phased[], facts: Omit<PhasedFacts, "phased">): Finding[] =>
  runChecks(PHASED, { phased: all, ...facts });
const examineGates = (gates: readonly Gate[], groups: ReadonlyMap<string, readonly Zone[]>): Finding[] =>
  runChecks(GATES, { gates, groups, now: 0 });
const summaryOf = (findings: readonly Finding[]): string[] =>
  findings.map(({ level, check, object }) => `${level} ${check} ${object}`);
const phased = (traits: RolloutTraits = {}, set: SetTraits | null = {}): Phased => ({
  rollout: rollout(traits),
  target: set ? readTarget(setObject(set)) : undefined,
});

/** Groups of two zones each. */
const groupsOf = (...keys: readonly string[]) => new Map(keys.map((key) => [key, group({}, {}).zones]));

const recordOf = (bypasses: GateRecord["bypasses"]): GateRecord => ({
  identity: "i",
  startedAt: 0,
  zones: [],
  stages: [],
  bypasses,
});

describe("zonewise doctor", () => {
  const ROLLOUTS: readonly {
    readonly name: string;
    readonly all: readonly Phased[];
    readonly raises?: boolean;
    readonly found: readonly string[];
  }[] = [
    { name: "nothing of a PhasedRollout beside a policy that raises the partition", all: [phased()], found: [] },
    {
      name: "that nothing raises the partition",
      all: [phased()],
      raises: false,
      found: ["warning partition-not-raised phasedrollout/guard"],
    },
    {
      name: "a StatefulSet that does not exist",
      all: [phased({}, null)],
      found: ["error phased-target phasedrollout/guard"],
    },
    {
      name: "a StatefulSet in a group",
      all: [phased({}, { labels: { "rollout-group": "db" } })],
      found: ["error phased-grouped phasedrollout/guard"],
    },
    {
      name: "another update strategy",
      all: [phased({}, { strategy: "OnDelete" })],
      found: ["error phased-strategy phasedrollout/guard"],
    },
    {
      name: "two PhasedRollouts of one StatefulSet",
      all: [phased(), phased({ name: "second" })],
      found: ["error phased-twice phasedrollout/second"],
    },
    {
      name: "the one of two PhasedRollouts that does not manage their StatefulSet",
      all: [phased({}, { owner: "second" }), phased({ name: "second" }, { owner: "second" })],
      found: ["error phased-twice phasedrollout/guard"],
    },
    {
      name: "all of three PhasedRollouts but the one that manages their StatefulSet",
      all: ["guard", "middle", "second"].map((name) => phased({ name }, { owner: "middle" })),
      found: ["error phased-twice phasedrollout/guard", "error phased-twice phasedrollout/second"],
    },
  ];
  for (const { name, all, raises = true, found } of ROLLOUTS)
    it(`finds ${name}`, () => {
      const findings = examinePhased(all, { isGuarded: () => raises, targetsOf: () => [], claimed: [] });
      assert.deepEqual(summaryOf(findings), found);
      for (const { fix } of findings) assert.notEqual(fix, "");
    });

  it("proposes the nearest StatefulSet for one that does not exist, and deletion only without any", () => {
    const fixWith = (targets: readonly string[]): string =>
      examinePhased([phased({}, null)], { isGuarded: () => true, targetsOf: () => targets, claimed: [] })[0]?.fix ?? "";
    const { namespace, targetRef } = phased().rollout;
    assert.equal(
      fixWith(["web", `${targetRef}b`]),
      `if so: kubectl -n ${namespace} get phasedrollout guard -o yaml | sed 's/^  targetRef: .*/  targetRef: ${targetRef}b/' | kubectl replace --force -f -`,
    );
    for (const other of ["store-gateway", `my-${targetRef}-of-another-kind`])
      assert.equal(fixWith([other]), `kubectl -n ${namespace} delete phasedrollout guard`);
  });

  it("proposes no StatefulSet that another PhasedRollout targets", () => {
    const lost = phased({}, null);
    const near = `${lost.rollout.targetRef}b`;
    const rival = {
      ...phased({ name: "second" }),
      rollout: { ...phased({ name: "second" }).rollout, targetRef: near },
    };
    const scene = { isGuarded: () => true, targetsOf: () => [near], claimed: [] };
    const [found] = examinePhased([lost, rival], scene);
    assert.equal(found?.fix, `kubectl -n ${lost.rollout.namespace} delete phasedrollout guard`);
  });

  it("finds a StatefulSet that names a PhasedRollout which does not manage it: nothing would release its pods", () => {
    const { rollout } = phased();
    const { namespace, name: owner, targetRef } = rollout;
    const find = (claimed: Parameters<typeof examinePhased>[1]["claimed"]) =>
      examinePhased([phased()], { isGuarded: () => true, targetsOf: () => [], claimed });
    assert.deepEqual(find([{ namespace, name: targetRef, owner }]), []);
    for (const claim of [
      { namespace, name: targetRef, owner: "gone" },
      { namespace, name: "copy", owner },
      { namespace: "elsewhere", name: targetRef, owner },
    ]) {
      const [found, ...more] = find([claim]);
      assert.deepEqual([found?.check, found?.object, more], ["phased-claim", `statefulset/${claim.name}`, []]);
      assert.ok(
        found?.fix.startsWith(
          `kubectl -n ${claim.namespace} annotate statefulset ${claim.name} sts.plus/phasedRollout- sts.plus/original-partition-; `,
        ),
        found?.fix,
      );
    }
  });

  it("finds a PhasedRollout whose spec cannot be read, and a gate that is not valid", () => {
    const { rollout, target } = phased();
    const scene = { isGuarded: () => true, targetsOf: () => [], claimed: [] };
    const found = examinePhased([{ rollout: { ...rollout, problem: "spec.check: required" }, target }], scene);
    assert.deepEqual(
      found.map(({ check, message }) => [check, message]),
      [["not-valid", "it is not valid: spec.check: required"]],
    );
    const gate = gateOf();
    const valid = { type: "Valid", status: "False", reason: "ExpressionInvalid", message: "at character 8" };
    const groups = groupsOf(`${gate.ref.namespace}/${gate.group}`);
    const [finding] = examineGates([{ ...gate, conditions: [valid as never] }], groups);
    assert.deepEqual(
      [finding?.object, finding?.message],
      ["rolloutgate/gate", "it is not valid: ExpressionInvalid, at character 8"],
    );
  });

  it("proposes the nearest group for a gate whose group does not exist", () => {
    const gate = gateOf();
    const near = `${gate.group}s`;
    assert.equal(
      examineGates([gate], groupsOf(`${gate.ref.namespace}/${near}`, `elsewhere/${gate.group}`))[0]?.fix,
      `if so: kubectl -n ${gate.ref.namespace} patch rolloutgate gate --type=merge -p '{"spec":{"group":"${near}"}}'`,
    );
  });

  it("finds a gate of a group that does not exist, and one that cannot be read", () => {
    const gate = gateOf();
    assert.deepEqual(summaryOf(examineGates([gate], groupsOf(`${gate.ref.namespace}/${gate.group}`))), []);
    assert.deepEqual(summaryOf(examineGates([gate], groupsOf())), ["warning gate-without-group rolloutgate/gate"]);
    assert.deepEqual(summaryOf(examineGates([{ ...gate, checks: [] }], groupsOf())), [
      "error gate-unreadable rolloutgate/gate",
    ]);
  });

  describe("finds a gate that is never asked", () => {
    const none: ZoneTraits = { replicas: 0 };
    for (const [name, when, zones, found] of [
      ["between zones of one", ["BetweenZones"], [{}], /, and its group has one zone: it holds nothing$/],
      ["between two zones", ["BetweenZones"], [{}, {}], undefined],
      [
        "between two zones, one of no pods",
        ["BetweenZones"],
        [{}, none],
        /fewer than two zones of its group have pods: it holds nothing$/,
      ],
      ["between three zones, one of no pods", ["BetweenZones"], [{}, none, {}], undefined],
      ["also before the first of one zone", ["BeforeFirstZone", "BetweenZones"], [{}], undefined],
      ["after the last of one zone", ["AfterLastZone"], [{}], undefined],
    ] as const satisfies readonly (readonly [string, readonly string[], readonly ZoneTraits[], RegExp | undefined])[])
      it(`${name}: ${found ? "it is found" : "nothing"}`, () => {
        const gate = gateOf({ spec: { when } });
        const groups = new Map([[`${gate.ref.namespace}/${gate.group}`, group(...zones).zones]]);
        const [finding, ...more] = examineGates([gate], groups);
        assert.deepEqual(more, []);
        assert.equal(finding?.check, found && "gate-never-asked");
        if (found) assert.match(finding?.message ?? "", found);
      });
  });

  it("finds bypasses of gates that are refused, and leaves those that count to status", () => {
    const gate = gateOf();
    const { namespace } = gate.ref;
    const find = (until: string, { accepted, gates = [gate] }: { accepted?: boolean; gates?: Gate[] } = {}) => {
      const zone = readZone({
        metadata: {
          name: "zone-b",
          namespace,
          labels: { "rollout-group": gate.group },
          annotations: { "zonewise.dev/bypass-gates-until": until, "zonewise.dev/bypass-gates-reason": "known alert" },
        },
      });
      const record = accepted === undefined ? {} : { record: recordOf([{ zone: "zone-b", until, accepted }]) };
      return runChecks(GATES, {
        gates: gates.map((one) => ({ ...one, ...record })),
        groups: new Map([[`${namespace}/${gate.group}`, [zone]]]),
        now: Date.parse("2026-01-01T00:00:00Z"),
      }).filter(({ check }) => check !== "gate-never-asked");
    };
    const [soon, far] = ["2026-01-01T01:00:00Z", "2026-01-03T00:00:00Z"];
    assert.deepEqual(find(soon), []);
    assert.equal(find(far)[0]?.fix, `zonewise -n ${namespace} bypass ${gate.group} --zone zone-b --end`);
    assert.deepEqual(summaryOf(find(far)), ["error bypass-refused statefulset/zone-b"]);
    assert.deepEqual(summaryOf(find(far, { gates: [] })), ["error bypass-refused statefulset/zone-b"]);
    assert.deepEqual(summaryOf(find(soon, { accepted: false })), ["error bypass-refused statefulset/zone-b"]);
    assert.deepEqual([find("2025-12-31T23:00:00Z"), find("tomorrow"), find(soon, { gates: [] })], [[], [], []]);
  });

  it("finds node updates that are frozen, and a policy that cannot be obeyed", () => {
    const frozen = { id: "n1-1", at: at(0), reason: "HealthTimeout", message: "n1: too slow" };
    const all = [policy(), policy({}, { frozen }), policy({ window: { cron: "soon" } })];
    const findings = runChecks(POLICIES, all);
    assert.deepEqual(summaryOf(findings), [
      "error updates-frozen nodeupdatepolicy/default",
      "error policy-invalid nodeupdatepolicy/default",
    ]);
  });

  it("asks for the right to each Secret that a check names, and for no other", () => {
    const query = { expr: "up", url: "http://prometheus", secretRef: "metrics" };
    const secrets = listSecrets(
      [phased({ query: { secretRef: "db-metrics" } }), phased()],
      [gateOf(), gateOf({ check: { query } })],
    );
    assert.deepEqual(
      secrets.map((secret) => [rightOf(secret), runChecks(SECRETS, [secret])[0]?.object]),
      [
        [{ verb: "get", group: "", resource: "secrets", name: "db-metrics" }, "phasedrollout/guard"],
        [{ verb: "get", group: "", resource: "secrets", name: "metrics" }, "rolloutgate/gate"],
      ],
    );
  });
});

it("finds a mirrored resource that does not exist, and proposes the nearest name", () => {
  const zone = readZone(statefulSetObject({ name: "ingester-zone-a", annotations: { ...MIRROR } }));
  const find = (names: readonly string[], missing: string | undefined = "not found"): Finding[] =>
    runChecks(MIRRORS, [{ zone, mirror: zone.scaling.mirror ?? assert.fail(), missing, names }]);
  assert.deepEqual(summaryOf(find(["templates"])), ["error mirror-missing statefulset/ingester-zone-a"]);
  assert.match(
    find(["templates", "other"])[0]?.fix ?? "",
    /^kubectl -n test annotate --overwrite statefulset ingester-zone-a \S+-resource-name=templates$/,
  );
  assert.match(find(["other"])[0]?.fix ?? "", /^create ReplicaTemplate template/);
  const read = { zone, mirror: zone.scaling.mirror ?? assert.fail(), missing: undefined, names: [] };
  assert.deepEqual(runChecks(MIRRORS, [read]), []);
});
