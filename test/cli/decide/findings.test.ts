import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { examineStatefulSets, type Finding } from "../../../cli/decide/findings.ts";
import { examineWindows } from "../../../cli/decide/window-findings.ts";
import { examineBudgets, examineWebhooks } from "../../../cli/decide/protection-findings.ts";
import {
  findMissingRights,
  RECONCILER_RIGHTS,
  INSTALL_RIGHTS,
  describeRight,
} from "../../../cli/decide/reconciler-rights.ts";
import type { PodDisruptionBudget, StatefulSet, WebhookConfiguration } from "../../../infra/kubernetes/resources.ts";
import { rightsOf, rulesBoundTo } from "../../infra/rights.ts";
import { PREVIOUS, statefulSetObject, type ZoneTraits } from "../../reconciler/builders.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { budgetOf } from "./worlds.ts";

const summaryOf = (findings: readonly Finding[]): string[] =>
  findings.map(({ level, check, object }) => `${level} ${check} ${object}`);
const sets = (...traits: readonly ZoneTraits[]): StatefulSet[] =>
  traits.map((one, i) => statefulSetObject({ name: `ingester-zone-${"abc".charAt(i)}`, ...one }));
const withLabels = (object: StatefulSet, labels: Record<string, string>): StatefulSet => ({
  ...object,
  metadata: { ...object.metadata, labels },
});

const leadBy = (leader: string): ZoneTraits => ({ annotations: { "grafana.com/rollout-downscale-leader": leader } });
const OTHER: ZoneTraits = { labels: { "rollout-group": "other" } };
const NOW = Date.parse("2026-06-01T12:00:00Z");
const WINDOW = "zonewise.dev/rollout-window";
const PAUSED: ZoneTraits = { annotations: { "grafana.com/rollout-paused": "true" } };

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
      name: "a label where an annotation belongs",
      objects: sets({ labels: { "grafana.com/rollout-downscale-leader": "ingester-zone-b" } }, {}),
      found: ["error label-for-annotation statefulset/ingester-zone-a"],
    },
    {
      name: "nothing of two minimum times that differ: the annotation wins, and they are no error",
      objects: sets(
        {
          labels: { "grafana.com/min-time-between-zones-downscale": "12h" },
          annotations: { "grafana.com/min-time-between-zones-downscale": "1h" },
        },
        {},
      ),
      found: [],
    },
    {
      name: "an annotation where a label belongs",
      objects: sets({ annotations: { "grafana.com/prepare-downscale": "true" } }, {}),
      found: ["error annotation-for-label statefulset/ingester-zone-a"],
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
      name: "a leader that is not in the group",
      objects: sets({}, { annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-aa" } }),
      found: ["error leader-missing statefulset/ingester-zone-b"],
      fix: "kubectl -n test annotate --overwrite statefulset ingester-zone-b grafana.com/rollout-downscale-leader=ingester-zone-a",
    },
    {
      name: "a leader that is like none of the group",
      objects: sets({}, { annotations: { "grafana.com/rollout-downscale-leader": "q" } }),
      found: ["error leader-missing statefulset/ingester-zone-b"],
      fix: "kubectl -n test annotate --overwrite statefulset ingester-zone-b grafana.com/rollout-downscale-leader-",
    },
    {
      name: "a leader whose group has a typo",
      objects: sets(
        { labels: { "rollout-group": "ingestr" } },
        { annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-a" } },
        {},
      ),
      found: ["warning single-zone statefulset/ingester-zone-a", "error leader-missing statefulset/ingester-zone-b"],
      fix: "kubectl -n test label --overwrite statefulset ingester-zone-a rollout-group=ingester",
    },
    {
      name: "a leader in a larger group: the own zone is the mistyped one",
      objects: sets({}, { ...OTHER, ...leadBy("ingester-zone-a") }, {}),
      found: ["warning single-zone statefulset/ingester-zone-b", "error leader-missing statefulset/ingester-zone-b"],
      fix: /^(kubectl -n test label --overwrite statefulset ingester-zone-b rollout-group=ingester|if there are other zones, .*)$/,
    },
    {
      name: "a leader that is alone in its group, as its follower is",
      objects: sets(
        { labels: { "rollout-group": "first" } },
        { labels: { "rollout-group": "second" }, ...leadBy("ingester-zone-a") },
      ),
      found: [
        "warning single-zone statefulset/ingester-zone-a",
        "warning single-zone statefulset/ingester-zone-b",
        "error leader-missing statefulset/ingester-zone-b",
      ],
      fix: /^(kubectl -n test label --overwrite statefulset ingester-zone-b rollout-group=first|if there are other zones, .*)$/,
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
      fix: "if it belongs to group ingester: kubectl -n test label --overwrite statefulset ingester-zone-a rollout-group=ingester",
      says: /names ingester-zone-a, which is in no group:/,
    },
    {
      name: "a leader with a typo whose nearest name follows the zone through another",
      objects: sets(leadBy("ingester-zonec"), leadBy("ingester-zone-a"), leadBy("ingester-zone-b")),
      found: ["error leader-missing statefulset/ingester-zone-a"],
      fix: "kubectl -n test annotate --overwrite statefulset ingester-zone-a grafana.com/rollout-downscale-leader-",
    },
    {
      name: "a leader that differs from the others in the letter of its zone",
      objects: sets({}, leadBy("ingester-zone-x")),
      found: ["error leader-missing statefulset/ingester-zone-b"],
      fix: "kubectl -n test annotate --overwrite statefulset ingester-zone-b grafana.com/rollout-downscale-leader-",
    },
    {
      name: "an annotation for a label whose value would be a command of the shell",
      objects: sets({ annotations: { "grafana.com/no-downscale": "$(reboot)" } }, {}),
      found: ["error annotation-for-label statefulset/ingester-zone-a"],
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
      says: /it has 0 replicas, .*: ingester-zone-b alone serves, and nothing is kept whole/,
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
      says: /window \* \* 2 31 2 \* \(UTC\) does not open any more: a new template never reaches/,
    },
    {
      name: "a window that is closed for ever by a year that is over",
      objects: sets({ annotations: { [WINDOW]: "* * 2 * * * 2020" } }, { annotations: { [WINDOW]: "* * 2 * * *" } }),
      found: ["error window-never-opens statefulset/ingester-zone-a"],
    },
    {
      name: "a window that one zone lacks",
      objects: sets({ annotations: { [WINDOW]: "* * 2 * * *" } }, {}),
      found: ["warning window-on-some-zones group/ingester"],
      says: /ingester-zone-a has a rollout window or a freeze, and ingester-zone-b has none/,
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
      const findings = [...examineStatefulSets(objects), ...examineWindows(objects, NOW)];
      assert.deepEqual(summaryOf(findings), found);
      for (const { fix, message } of findings) {
        assert.notEqual(fix, "");
        assert.match(message, says);
        if (typeof cure === "string") assert.equal(fix.replace(/^if so: /, ""), cure);
        else if (cure) assert.match(fix, cure);
      }
    });

  const labels = { "rollout-group": "ingester" };
  const zones = sets({}, {}).map((object) => ({ ...readZone(object), podLabels: labels }));
  const pdb = {
    metadata: { name: "core", namespace: "test" },
    spec: { selector: { matchLabels: labels } },
  } as unknown as PodDisruptionBudget;
  const BUDGETS = [
    { name: "nothing of one budget over two zones", budgets: [budgetOf({})], others: [], found: [] },
    {
      name: "an invalid budget",
      budgets: [budgetOf({ maxUnavailable: -1 })],
      others: [],
      found: ["error budget-invalid zpdb/ingester"],
    },
    {
      name: "a budget that selects nothing",
      budgets: [budgetOf({ selector: { matchLabels: { a: "b" } } })],
      others: [],
      found: ["error budget-selects zpdb/ingester", "warning group-without-budget group/ingester"],
    },
    {
      name: "budgets that overlap",
      budgets: [budgetOf({}), budgetOf({}, "second")],
      others: [],
      found: ["error budgets-overlap statefulset/ingester-zone-a", "error budgets-overlap statefulset/ingester-zone-b"],
    },
    {
      name: "a PodDisruptionBudget beside a zone-aware one",
      budgets: [budgetOf({})],
      others: [pdb],
      found: ["warning pdb-beside-zpdb pdb/core"],
    },
  ];
  for (const { name, budgets, others, found } of BUDGETS)
    it(`finds ${name}`, () => assert.deepEqual(summaryOf(examineBudgets(budgets, zones, others)), found));

  const [a = assert.fail(), b = assert.fail()] = zones;
  const regex = (podNamePartitionRegex: string) => budgetOf({ podNamePartitionRegex });
  const HALVES = [
    {
      name: "pods that a budget selects without their StatefulSet",
      budgets: [budgetOf({})],
      of: [a, b, { ...b, name: "ingester-zone-c", labels: { "rollout-group": "ingestr" } }],
      found: "error budget-selects-half statefulset/ingester-zone-c",
      fix: /^kubectl -n test label --overwrite statefulset ingester-zone-c rollout-group=ingester$/,
    },
    {
      name: "a StatefulSet that a budget selects without its pods",
      budgets: [budgetOf({})],
      of: [a, b, { ...b, name: "ingester-zone-c", podLabels: {} }],
      found: "error budget-selects-half statefulset/ingester-zone-c",
      fix: /^this replaces its pods: kubectl -n test patch statefulset ingester-zone-c .*"labels":\{"rollout-group":"ingester"\}/,
    },
    {
      name: "a zone that the budget of the others leaves out",
      budgets: [budgetOf({ selector: { matchLabels: { tier: "x" } } })],
      of: [
        ...[a, b].map((zone) => ({ ...zone, labels: { ...labels, tier: "x" }, podLabels: { tier: "x" } })),
        { ...b, name: "ingester-zone-c" },
      ],
      found: "warning budget-selects-half statefulset/ingester-zone-c",
      fix: /^this replaces its pods: kubectl .* label --overwrite statefulset ingester-zone-c tier=x && kubectl .* patch statefulset ingester-zone-c .*'$/,
    },
    {
      name: "a pattern that matches no pod",
      budgets: [regex("store-([0-9]+)")],
      of: [a, b],
      found: "error pattern-matches-no-pod zpdb/ingester",
      fix: /kubectl -n test patch zpdb ingester --type=merge -p '\{"spec":\{"podNamePartitionRegex":"\.\*-\(\[0-9\]\+\)","podNameRegexGroup":1\}\}'; otherwise/,
    },
  ];
  for (const { name, budgets, of, found, fix } of HALVES)
    it(`finds ${name}`, () => {
      const findings = examineBudgets(budgets, of, []);
      assert.deepEqual(summaryOf(findings), [found]);
      assert.match(findings[0]?.fix ?? "", fix);
    });

  it("finds nothing of a pattern that matches", () =>
    assert.deepEqual(examineBudgets([regex("[a-z\\-]+-([0-9]+)")], zones, []), []));

  it("finds an eviction webhook that fails open", () => {
    const hook = (failurePolicy: string, path: string) =>
      ({
        metadata: { name: "evictions" },
        webhooks: [{ name: "w", failurePolicy, clientConfig: { caBundle: "Cg==", service: { name: "s", path } } }],
      }) as unknown as WebhookConfiguration;
    const found = examineWebhooks([
      hook("Ignore", "/admission/mutate-pod-eviction"),
      hook("Fail", "/admission/mutate-pod-eviction"),
      hook("Ignore", "/admission/zpdb-validation"),
    ]);
    assert.deepEqual(summaryOf(found), ["warning webhook-fails-open webhookconfiguration/evictions"]);
    assert.match(
      found[0]?.fix ?? "",
      /kubectl patch mutatingwebhookconfiguration evictions --type=json .*"value":"Fail"/,
    );
  });

  it("finds a webhook of ours without a CA, and leaves others alone", () => {
    const hook = (name: string, caBundle?: string) =>
      ({
        metadata: { name },
        webhooks: [{ name: "w", clientConfig: { service: { name: "s" }, ...(caBundle && { caBundle }) } }],
      }) as unknown as WebhookConfiguration;
    const found = examineWebhooks([
      hook("pod-eviction-zonewise"),
      hook("no-downscale-zonewise", "Cg=="),
      hook("other"),
    ]);
    assert.deepEqual(summaryOf(found), ["error webhook-without-ca webhookconfiguration/pod-eviction-zonewise"]);
    assert.match(found[0]?.fix ?? "", /^give it the label grafana.com\/inject-rollout-operator-ca=true/);
    const labels = { "grafana.com/inject-rollout-operator-ca": "true" };
    const labelled = { ...hook("pod-eviction-zonewise"), metadata: { name: "pod-eviction-zonewise", labels } };
    const [ours] = examineWebhooks([labelled]);
    assert.match(ours?.fix ?? "", /by the roles of infra\/manifests\/certificates, and without them nobody does/);
  });

  it("finds missing rights", () => {
    const find = (count: number) =>
      findMissingRights({ who: "you", missing: INSTALL_RIGHTS.slice(0, count), all: INSTALL_RIGHTS, fix: "fix" });
    const messages = [0, 1, INSTALL_RIGHTS.length].map((count) => find(count).map(({ message }) => message));
    const one = "it may not create customresourcedefinitions.apiextensions.k8s.io";
    assert.deepEqual(messages, [[], [one], ["it has none of the rights that it needs"]]);
  });

  it("asks for rights of the reconciler that its manifest grants", () => {
    const granted = new Set(rulesBoundTo("zonewise-reconciler").flatMap(rightsOf));
    const short = RECONCILER_RIGHTS.map((right) => describeRight({ ...right, group: "" }));
    assert.deepEqual(
      short.filter((right) => !granted.has(right)),
      [],
    );
    assert.ok(short.length > 20);
  });
});
