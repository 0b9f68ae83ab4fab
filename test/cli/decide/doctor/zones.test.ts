import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MAX_ZONES } from "../../../../reconciler/model/refused-group.ts";
import type { Finding } from "../../../../cli/decide/doctor/check.ts";
import { diagnose } from "../../../../cli/decide/doctor/checks.ts";
import type { StatefulSet } from "../../../../infra/kubernetes/resources.ts";
import { readZone } from "../../../../reconciler/model/zone.ts";
import { PREVIOUS, statefulSetObject, type ZoneTraits } from "../../../builders/zones.ts";

const examineStatefulSets = (objects: readonly StatefulSet[]): Finding[] => {
  const found = objects.map((object) => ({ object, zone: readZone(object) }));
  const keyed = found.map(({ object: { metadata }, zone: { namespace, name, problems } }) => {
    const { labels = {}, annotations = {} } = metadata ?? {};
    return { kind: "statefulset", namespace, name, labels, annotations, problems };
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
      found: ["error too-many-zones group/ingester"],
      says: /^it has 33 zones, more than 32: it is neither rolled out nor scaled, and disruption budgets let no pod of it go$/,
    },
    {
      name: "a label where an annotation belongs",
      objects: sets({ labels: { "grafana.com/rollout-downscale-leader": "ingester-zone-b" } }, {}),
      found: ["error misplaced-key statefulset/ingester-zone-a"],
    },
    {
      name: "two minimum times that differ: the annotation wins",
      objects: sets({ labels: { [MIN_TIME]: "12h" }, annotations: { [MIN_TIME]: "1h" } }, {}),
      found: ["warning two-min-times statefulset/ingester-zone-a"],
      fix: "kubectl -n test edit statefulset ingester-zone-a",
      says: /the annotation wins/,
    },
    {
      name: "two minimum times of which one cannot be read",
      objects: sets({ labels: { [MIN_TIME]: "1h" }, annotations: { [MIN_TIME]: "never" } }, {}),
      found: ["error unreadable statefulset/ingester-zone-a", "warning two-min-times statefulset/ingester-zone-a"],
      fix: "kubectl -n test edit statefulset ingester-zone-a",
    },
    {
      name: "an annotation where a label belongs",
      objects: sets({ annotations: { "grafana.com/prepare-downscale": "true" } }, {}),
      found: ["error misplaced-key statefulset/ingester-zone-a"],
      fix: "kubectl -n test label statefulset ingester-zone-a grafana.com/prepare-downscale=true && kubectl -n test annotate statefulset ingester-zone-a grafana.com/prepare-downscale-",
    },
    {
      name: "an annotation beside the label that is read, which stays",
      objects: sets({ annotations: { "rollout-group": "other" } }, {}),
      found: ["error misplaced-key statefulset/ingester-zone-a"],
      fix: "kubectl -n test annotate statefulset ingester-zone-a rollout-group-",
      says: /it is read as a label only, which is ingester and counts/,
    },
    {
      name: "a label beside the annotation that is read, which stays",
      objects: sets(
        { labels: { "rollout-max-unavailable": "7" }, annotations: { "rollout-max-unavailable": "2" } },
        {},
      ),
      found: ["error misplaced-key statefulset/ingester-zone-a"],
      fix: "kubectl -n test label statefulset ingester-zone-a rollout-max-unavailable-",
    },
    {
      name: "an annotation that cannot be read",
      objects: sets({ annotations: { "rollout-max-unavailable": "many" } }, {}),
      found: ["error unreadable statefulset/ingester-zone-a"],
    },
    {
      name: "pods that are to be prepared and have no address",
      objects: sets({ name: "", labels: { "grafana.com/prepare-downscale": "true" } }, {}),
      found: ["error no-service-name statefulset/"],
    },
    { name: "a zone that is alone", objects: sets({}), found: ["warning single-zone statefulset/ingester-zone-a"] },
    {
      name: "a follower without a minimum time where downscales are remembered",
      objects: sets({ labels: { "grafana.com/prepare-downscale": "true" } }, leadBy("ingester-zone-a"), {
        annotations: { ...leadBy("ingester-zone-b").annotations, [MIN_TIME]: "0s" },
      }),
      found: ["error no-min-time statefulset/ingester-zone-b"],
      fix: `kubectl -n test annotate --overwrite statefulset ingester-zone-b ${MIN_TIME}=0s`,
    },
    {
      name: "followers without one where nobody remembers downscales: they go at once",
      objects: sets({}, leadBy("ingester-zone-a")),
      found: [],
    },
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
      name: "an annotation for a label whose value would be a command of the shell",
      objects: sets({ annotations: { "grafana.com/no-downscale": "$(reboot)" } }, {}),
      found: ["error misplaced-key statefulset/ingester-zone-a"],
      fix: "kubectl -n test edit statefulset ingester-zone-a",
    },
    {
      name: "a label of a group that is empty",
      objects: sets({ labels: { "rollout-group": "" } }, {}, {}),
      found: ["error empty-group statefulset/ingester-zone-a"],
      fix: "kubectl -n test label --overwrite statefulset ingester-zone-a rollout-group=GROUP",
    },
    {
      name: "a group whose name is a part of another one's",
      objects: sets({ labels: { "rollout-group": "ing" } }, {}, {}),
      found: ["warning single-zone statefulset/ingester-zone-a"],
      fix: "if there are other zones, give them the same rollout-group",
    },
    {
      name: "that all zones are paused in the middle of a rollout",
      objects: sets({ ...PAUSED, at: PREVIOUS }, PAUSED),
      found: ["warning all-paused group/ingester"],
      fix: "zonewise -n test resume ingester",
    },
    {
      name: "that all zones are paused after a rollout",
      objects: sets(PAUSED, PAUSED),
      found: ["warning all-paused group/ingester"],
      fix: "zonewise -n test resume ingester",
    },
    {
      name: "one of two zones that was scaled to zero",
      objects: sets({ replicas: 0 }, {}),
      found: ["warning zone-empty statefulset/ingester-zone-a"],
      fix: "kubectl -n test scale statefulset ingester-zone-a --replicas=3",
      says: /it has 0 replicas, .*: only ingester-zone-b has pods, and nothing protects them/,
    },
    {
      name: "one of three zones that was scaled to zero",
      objects: sets({}, { replicas: 0 }, { replicas: 2 }),
      found: ["warning zone-empty statefulset/ingester-zone-b"],
      fix: "kubectl -n test scale statefulset ingester-zone-b --replicas=3",
      says: /only ingester-zone-a, ingester-zone-c serve/,
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
      found: ["error window-never-opens statefulset/ingester-zone-a"],
      fix: "kubectl -n test edit statefulset ingester-zone-a",
      says: /window \* \* 2 31 2 \* \(UTC\) does not open in the next 10 years: a new template never reaches/,
    },
    {
      name: "a window that is closed for ever by a year that is over",
      objects: sets({ annotations: { [WINDOW]: "* * 2 * * * 2020" } }, { annotations: { [WINDOW]: "* * 2 * * *" } }),
      found: ["error window-never-opens statefulset/ingester-zone-a"],
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
