/** `zonewise doctor`: StatefulSets and their groups, labels and annotations, PhasedRollouts and gates. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { diagnose } from "../../../../cli/decide/doctor/checks.ts";
import type { DoctorFacts, Finding, Keyed, StoredZone } from "../../../../cli/decide/doctor/facts.ts";
import { findMeant } from "../../../../cli/decide/doctor/groups.ts";
import type { Phased } from "../../../../cli/decide/explain-phased.ts";
import type { StatefulSet } from "../../../../infra/kubernetes/resources.ts";
import type { Gate } from "../../../../reconciler/gates/gate.ts";
import { ANNOTATIONS, LABELS } from "../../../../reconciler/model/annotations.ts";
import { MAX_ZONES } from "../../../../reconciler/model/refused-group.ts";
import { readZone } from "../../../../reconciler/model/zone.ts";
import { readTarget } from "../../../../reconciler/phased/target.ts";
import { statefulSetObject, type ZoneTraits } from "../../../builders/zones.ts";
import { gateOf } from "../../../builders/gates.ts";
import { readPhased } from "../../../reconciler/phased/adapter.ts";
import { rolloutObject, setObject } from "../../../builders/phased.ts";

const storedOf = (objects: readonly StatefulSet[]): StoredZone[] =>
  objects.map((object) => ({ object, zone: readZone(object) }));
const examineStatefulSets = (objects: readonly StatefulSet[]): Finding[] => {
  const found = storedOf(objects);
  const keyed = found.map(({ object: { metadata }, zone: { namespace, name, problems } }) => {
    const { labels = {}, annotations = {} } = metadata ?? {};
    const keys = { label: Object.keys(labels), annotation: Object.keys(annotations) };
    return { kind: "statefulset", namespace, name, keys, problems };
  });
  return diagnose({ sets: found, keyed, now: NOW });
};
const summaryOf = (findings: readonly Finding[]): string[] =>
  findings.map(({ level, check, object }) => `${level} ${check} ${object}`);
const sets = (...traits: readonly ZoneTraits[]): StatefulSet[] =>
  traits.map((one, i) => statefulSetObject({ name: `ingester-zone-${"abc".charAt(i)}`, ...one }));
const withLabels = (object: StatefulSet, labels: Record<string, string>): StatefulSet => ({
  ...object,
  metadata: { ...object.metadata, labels },
});

const leadBy = (leader: string): ZoneTraits => ({ annotations: { "grafana.com/rollout-downscale-leader": leader } });
const MIN_TIME = "grafana.com/min-time-between-zones-downscale";
const OTHER: ZoneTraits = { labels: { "rollout-group": "other" } };
const NOW = Date.parse("2026-06-01T12:00:00Z");
const WINDOW = "zonewise.dev/rollout-window";
const PAUSED: ZoneTraits = { annotations: { "grafana.com/rollout-paused": "true" } };

const many = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `ingester-zone-${i}` }));

describe("zonewise doctor", () => {
  const [plain = assert.fail()] = sets({});
  const CASES: readonly {
    readonly name: string;
    readonly objects: readonly StatefulSet[];
    readonly found: readonly string[];
    /** The cure of each. */
    readonly fix?: string | RegExp;
    readonly says?: RegExp;
  }[] = [
    { name: "nothing of well configured zones", objects: sets({}, {}), found: [] },
    {
      name: "a strategy other than OnDelete",
      objects: sets({ updateStrategy: "RollingUpdate" }, {}),
      found: ["error not-on-delete statefulset/ingester-zone-a"],
    },
    {
      name: "a group of as many zones as there may be",
      objects: sets(...many(MAX_ZONES)),
      found: [],
    },
    {
      name: "one with a zone more",
      objects: sets(...many(MAX_ZONES + 1)),
      found: ["error group-refused statefulset/ingester-zone-0"],
      says: /^group ingester has 33 zones, more than 32: it is neither rolled out nor scaled$/,
    },
    {
      name: "a label where an annotation belongs",
      objects: sets({ labels: { "grafana.com/rollout-downscale-leader": "ingester-zone-b" } }, {}),
      found: ["error misplaced-key statefulset/ingester-zone-a"],
    },
    {
      name: "two minimum times that differ: the annotation wins",
      objects: sets({ labels: { [MIN_TIME]: "12h" }, annotations: { [MIN_TIME]: "1h" } }, {}),
      found: ["error unreadable statefulset/ingester-zone-a"],
      fix: "kubectl -n test edit statefulset ingester-zone-a",
      says: /the annotation wins/,
    },
    {
      name: "an annotation where a label belongs",
      objects: sets({ annotations: { "grafana.com/prepare-downscale": "true" } }, {}),
      found: ["error misplaced-key statefulset/ingester-zone-a"],
      fix: "kubectl -n test edit statefulset ingester-zone-a",
      says: /^its annotation grafana.com\/prepare-downscale has no effect; did you mean the label grafana.com\/prepare-downscale\?$/,
    },
    {
      name: "an annotation that cannot be read",
      objects: sets({ annotations: { "rollout-max-unavailable": "many" } }, {}),
      found: ["error unreadable statefulset/ingester-zone-a"],
    },
    { name: "a zone that is alone", objects: sets({}), found: ["warning single-zone statefulset/ingester-zone-a"] },
    {
      name: "a leader that is not in the group",
      objects: sets({}, { annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-aa" } }),
      found: ["error leader-missing statefulset/ingester-zone-b"],
      fix: "kubectl -n test annotate --overwrite statefulset ingester-zone-b grafana.com/rollout-downscale-leader=ingester-zone-a",
    },
    {
      name: "a leader that is like none of the group",
      objects: sets({}, { annotations: { "grafana.com/rollout-downscale-leader": "q" } }),
      found: ["error leader-missing statefulset/ingester-zone-b"],
      fix: "name one of ingester-zone-a:\nkubectl -n test annotate --overwrite statefulset ingester-zone-b grafana.com/rollout-downscale-leader=ingester-zone-a\nor if it should follow no zone:\nkubectl -n test annotate --overwrite statefulset ingester-zone-b grafana.com/rollout-downscale-leader-",
    },
    {
      name: "a leader whose group has a typo",
      objects: sets(
        { labels: { "rollout-group": "ingestr" } },
        { annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-a" } },
        {},
      ),
      found: ["error leader-missing statefulset/ingester-zone-b"],
      fix: "if ingester-zone-a belongs to group ingester:\nkubectl -n test label --overwrite statefulset ingester-zone-a rollout-group=ingester",
    },
    {
      name: "a leader in a larger group: the own zone is the mistyped one",
      objects: sets({}, { ...OTHER, ...leadBy("ingester-zone-a") }, {}),
      found: ["error leader-missing statefulset/ingester-zone-b", "warning single-zone statefulset/ingester-zone-b"],
      fix: /^(if ingester-zone-b belongs to group ingester:\n.* statefulset ingester-zone-b rollout-group=ingester|if there are other zones, .*)$/,
    },
    {
      name: "a leader that is alone in its group, as its follower is",
      objects: sets(
        { labels: { "rollout-group": "first" } },
        { labels: { "rollout-group": "second" }, ...leadBy("ingester-zone-a") },
      ),
      found: [
        "error leader-missing statefulset/ingester-zone-b",
        "warning single-zone statefulset/ingester-zone-a",
        "warning single-zone statefulset/ingester-zone-b",
      ],
      fix: /^(if ingester-zone-a belongs to group second:\n.*\nor if ingester-zone-b belongs to group first:\n.* rollout-group=first|if there are other zones, .*)$/,
    },
    {
      name: "a leader in another group of as many zones",
      objects: sets(OTHER, leadBy("ingester-zone-a"), {}, { ...OTHER, name: "other-zone-b" }),
      found: ["error leader-missing statefulset/ingester-zone-b"],
      fix: "kubectl -n test edit statefulset ingester-zone-b",
    },
    {
      name: "a leader in no group",
      objects: [withLabels(plain, {}), ...sets({}, leadBy("ingester-zone-a"), {}).slice(1)],
      found: ["error leader-missing statefulset/ingester-zone-b"],
      fix: "if ingester-zone-a belongs to group ingester:\nkubectl -n test label --overwrite statefulset ingester-zone-a rollout-group=ingester",
      says: /names ingester-zone-a, which is in no group:/,
    },
    {
      name: "a leader with a typo whose nearest name follows the zone through another",
      objects: sets(leadBy("ingester-zonec"), leadBy("ingester-zone-a"), leadBy("ingester-zone-b")),
      found: ["error leader-missing statefulset/ingester-zone-a"],
      fix: "if it should follow no zone:\nkubectl -n test annotate --overwrite statefulset ingester-zone-a grafana.com/rollout-downscale-leader-",
    },
    {
      name: "a leader that differs from the others in the letter of its zone",
      objects: sets({}, leadBy("ingester-zone-x")),
      found: ["error leader-missing statefulset/ingester-zone-b"],
      fix: "if it should follow no zone:\nkubectl -n test annotate --overwrite statefulset ingester-zone-b grafana.com/rollout-downscale-leader-",
    },
    {
      name: "a label of a group that is empty",
      objects: sets({ labels: { "rollout-group": "" } }, {}, {}),
      found: ["error group-refused statefulset/ingester-zone-a"],
      fix: "give the label the name of their group\nor if they belong to no group:\nkubectl -n test label statefulset ingester-zone-a rollout-group-",
    },
    {
      name: "a group whose name is a part of another one's",
      objects: sets({ labels: { "rollout-group": "ing" } }, {}, {}),
      found: ["warning single-zone statefulset/ingester-zone-a"],
      fix: "if there are other zones, give them the same rollout-group",
    },
    {
      name: "that all zones are paused",
      objects: sets(PAUSED, PAUSED),
      found: ["warning all-paused group/ingester"],
      fix: "zonewise -n test resume ingester",
    },
    {
      name: "one of two zones that was scaled to zero",
      objects: sets({ replicas: 0 }, {}),
      found: ["warning zone-empty statefulset/ingester-zone-a"],
      fix: "kubectl -n test scale statefulset ingester-zone-a --replicas=3",
    },
    {
      name: "one of three zones that was scaled to zero",
      objects: sets({}, { replicas: 0 }, { replicas: 2 }),
      found: ["warning zone-empty statefulset/ingester-zone-b"],
      fix: "kubectl -n test scale statefulset ingester-zone-b --replicas=3",
    },
    {
      name: "nothing of a group that was scaled to zero as a whole",
      objects: sets({ replicas: 0 }, { replicas: 0 }),
      found: [],
    },
    {
      name: "a window that cannot be read",
      objects: sets({ annotations: { [WINDOW]: "0 2 * * *" } }, { annotations: { [WINDOW]: "* * 2 * * *" } }),
      found: ["error unreadable statefulset/ingester-zone-a"],
      says: /it has 5 fields; .*; the zone's pods stay until it is corrected/,
    },
    {
      name: "a window that never opens",
      objects: sets({ annotations: { [WINDOW]: "* * 2 31 2 *" } }, { annotations: { [WINDOW]: "* * 2 * * *" } }),
      found: ["error unreadable statefulset/ingester-zone-a"],
      fix: "kubectl -n test edit statefulset ingester-zone-a",
      says: /window \* \* 2 31 2 \* \(UTC\) does not open in the next 10 years: a new template never reaches/,
    },
    {
      name: "nothing of windows that are open at different times, or of one that is closed now",
      objects: sets({ annotations: { [WINDOW]: "* * 2 * * *" } }, { annotations: { [WINDOW]: "* * 3 * * *" } }),
      found: [],
    },
    {
      name: "a mistyped annotation of a window",
      objects: sets({ annotations: { "zonewise.dev/rollout-windows": "* * 2 * * *" } }, {}),
      found: ["error unreadable statefulset/ingester-zone-a"],
      says: /is zonewise.dev\/rollout-window meant\?/,
    },
    {
      name: "a change that two findings propose once, by the graver one, and errors first",
      objects: [
        statefulSetObject({ name: "db-zone-a", labels: { "rollout-group": "compactr" } }),
        statefulSetObject({
          name: "db-zone-b",
          labels: { "rollout-group": "compactor" },
          annotations: { "grafana.com/rollout-downscale-leader": "db-zone-a" },
        }),
        statefulSetObject({
          name: "db-zone-c",
          labels: { "rollout-group": "compactor" },
          updateStrategy: "RollingUpdate",
        }),
      ],
      found: ["error not-on-delete statefulset/db-zone-c", "error leader-missing statefulset/db-zone-b"],
    },
    { name: "nothing of a group with one paused zone", objects: sets(PAUSED, {}), found: [] },
    {
      name: "our annotations on a StatefulSet in no group",
      objects: [
        withLabels({ ...plain, metadata: { ...plain.metadata, annotations: { "rollout-max-unavailable": "2" } } }, {}),
      ],
      found: ["warning no-group statefulset/ingester-zone-a"],
    },
    {
      name: "nothing of an annotation of somebody else on one",
      objects: [withLabels({ ...plain, metadata: { ...plain.metadata, annotations: { "rollout-id": "2" } } }, {})],
      found: [],
    },
  ];
  for (const { name, objects, found, fix: cure, says = /./ } of CASES)
    it(`finds ${name}`, () => {
      const findings = examineStatefulSets(objects);
      assert.deepEqual(summaryOf(findings), found);
      for (const { fix, message } of findings) {
        assert.notEqual(fix, "");
        assert.match(message, says);
        if (typeof cure === "string") assert.equal(fix.replace(/^if so:\n/, ""), cure);
        else if (cure) assert.match(fix, cure);
      }
    });
});

describe("a group label with a typo", () => {
  const zone = (letter: string, group: string): StatefulSet =>
    statefulSetObject({ name: `compactor-zone-${letter}`, labels: { "rollout-group": group } });
  const right = "compactor";
  it("is told where a group of nearly the same name has more zones", () => {
    const found = examineStatefulSets([zone("a", "compactr"), zone("b", right), zone("c", right)]);
    assert.deepEqual(
      found.map(({ fix }) => fix),
      ["if so:\nkubectl -n test label --overwrite statefulset compactor-zone-a rollout-group=compactor"],
    );
  });

  it("is none of two groups whose names differ in the letter of a zone", () => {
    const found = examineStatefulSets([zone("a", "store-a"), zone("b", "store-b")]);
    assert.deepEqual(
      found.map(({ fix }) => fix),
      Array.from({ length: 2 }, () => "if there are other zones, give them the same rollout-group"),
    );
  });
});

/** What is written as an annotation, and what is meant. */
const MISSES: readonly (readonly [written: string, meant: string | undefined])[] = [
  ["rollout-max-unavailble", "rollout-max-unavailable"],
  ["rollout-max-unavailabel", "rollout-max-unavailable"],
  ["grafana.com/rollout-max-unavailable", "rollout-max-unavailable"],
  ["grafana.com/rollout-pause", "grafana.com/rollout-paused"],
  ["rollout-paused", "grafana.com/rollout-paused"],
  ["zonewise.dev/rollout-paused", "grafana.com/rollout-paused"],
  ["grafna.com/rollout-paused", "grafana.com/rollout-paused"],
  ["rollout-grup", "rollout-group"],
  ["Rollout-Group", "rollout-group"],
  ["grafana.com/no-downscal", "grafana.com/no-downscale"],
  ["zonewise.dev/bypass-gate-until", "zonewise.dev/bypass-gates-until"],
  ["rollout-operator.grafana.com/no-downscale", "grafana.com/no-downscale"],
  ["rollout-operator.grafana.com/rollout-group", "rollout-group"],
  ["zonewise.dev/delete-by-hand", "zonewise/delete-by-hand"],
  ["sts.plus/paus", "sts.plus/pause"],
  ["sts.plus/promote-steps", "sts.plus/promote-step"],
  ["zonewise.dev/retry-gates", "zonewise.dev/retry-gate"],
  // Somebody else's.
  ["app", undefined],
  ["name", undefined],
  ["pause", undefined],
  ["argo.example/pause", undefined],
  ["app.kubernetes.io/name", undefined],
  ["rollout-operator", undefined],
  ["deployment.kubernetes.io/revision", undefined],
  ["kubectl.kubernetes.io/last-applied-configuration", undefined],
];
for (const [written, meant] of MISSES)
  it(`${written}: ${meant ?? "another's"}`, () => assert.equal(findMeant(written, "annotation")?.key, meant));

it("no key of ours is taken for another", () => {
  for (const key of Object.values(LABELS)) assert.equal(findMeant(key, "label"), undefined, key);
  for (const key of Object.values(ANNOTATIONS)) assert.equal(findMeant(key, "annotation"), undefined, key);
});

it("a mistyped key of any object is found, unless its reader names it", () => {
  const find = (problems: readonly string[]) => {
    const of: Keyed = {
      kind: "rolloutgate",
      namespace: "test",
      name: "gate",
      keys: { label: [], annotation: ["zonewise.dev/retry-gates"] },
      problems,
    };
    return diagnose({ keyed: [of] }).map(({ object, message, fix }) => [object, message, fix]);
  };
  const says =
    "its annotation zonewise.dev/retry-gates has no effect; did you mean the annotation zonewise.dev/retry-gate?";
  assert.deepEqual(find([]), [["rolloutgate/gate", says, "kubectl -n test edit rolloutgate gate"]]);
  assert.deepEqual(find(["annotation zonewise.dev/retry-gates is unknown"]), []);
});

const phased: Phased = { rollout: readPhased(rolloutObject()), target: readTarget(setObject()) };

it("finds a StatefulSet that names a PhasedRollout which does not manage it: nothing would release its pods", () => {
  const { namespace, name: owner, targetRef } = phased.rollout;
  const find = (claimed: DoctorFacts["claimed"]) => diagnose({ phased: [phased], claimed });
  assert.deepEqual(find([{ namespace, name: targetRef, owner }]), []);
  for (const claim of [
    { namespace, name: targetRef, owner: "gone" },
    { namespace, name: "copy", owner },
    { namespace: "elsewhere", name: targetRef, owner },
  ]) {
    const [found, ...more] = find([claim]);
    assert.deepEqual([found?.check, found?.object, more], ["phased-claim", `statefulset/${claim.name}`, []]);
    assert.equal(
      found?.fix.split("\n")[1],
      `kubectl -n ${claim.namespace} annotate statefulset ${claim.name} sts.plus/phasedRollout- sts.plus/original-partition-`,
    );
  }
});

describe("a gate", () => {
  const gate = gateOf();
  const { namespace } = gate.ref;
  const invalid = (reason: string): Gate["conditions"] => [
    { type: "Valid", status: "False", reason, message: "at character 8" } as never,
  ];
  const setsOf = (group: string, place = namespace) =>
    storedOf(sets({ labels: { "rollout-group": group } }, { labels: { "rollout-group": group } })).map((one) => ({
      ...one,
      zone: { ...one.zone, namespace: place },
    }));
  const find = (conditions: Gate["conditions"], found: readonly StoredZone[]) =>
    diagnose({ gates: [{ ...gate, conditions }], sets: found })
      .filter(({ object }) => object === "rolloutgate/gate")
      .map(({ check, message, fix }) => [check, message, fix]);
  const edit = `kubectl -n ${namespace} edit rolloutgate gate`;

  it("is found by what its condition Valid says", () => {
    assert.deepEqual(find([], setsOf(gate.group)), []);
    assert.deepEqual(find(invalid("ExpressionInvalid"), setsOf(gate.group)), [
      ["gate-not-valid", "it is not valid: ExpressionInvalid, at character 8", edit],
    ]);
  });

  it("is found if its group does not exist; the nearest one of its namespace is proposed", () => {
    const why = `there is no rollout group ${gate.group}`;
    assert.deepEqual(find([], setsOf(gate.group, "elsewhere")), [["gate-not-valid", why, edit]]);
    const near = `${gate.group}s`;
    assert.deepEqual(find(invalid("GroupNotFound"), setsOf(near)), [
      [
        "gate-not-valid",
        `${why}; did you mean ${near}?`,
        `if so:\nkubectl -n ${namespace} patch rolloutgate gate --type=merge -p '{"spec":{"group":"${near}"}}'`,
      ],
    ]);
    assert.deepEqual(find(invalid("GroupNotFound"), setsOf(gate.group)), [], "it has zones since");
  });
});
