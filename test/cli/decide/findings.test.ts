import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { examineBudgets, examineStatefulSets, examineWebhooks, type Finding } from "../../../cli/decide/findings.ts";
import {
  findMissingRights,
  RECONCILER_RIGHTS,
  INSTALL_RIGHTS,
  describeRight,
} from "../../../cli/decide/reconciler-rights.ts";
import type { PodDisruptionBudget, StatefulSet, WebhookConfiguration } from "../../../infra/kubernetes/resources.ts";
import { rightsOf, rulesBoundTo } from "../../infra/rights.ts";
import { statefulSetObject, type ZoneTraits } from "../../reconciler/builders.ts";
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

describe("zonewise doctor", () => {
  const [plain = assert.fail()] = sets({});
  const CASES: readonly {
    readonly name: string;
    readonly objects: readonly StatefulSet[];
    readonly found: readonly string[];
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
      name: "our annotations on a StatefulSet in no group",
      objects: [
        withLabels({ ...plain, metadata: { ...plain.metadata, annotations: { "rollout-max-unavailable": "2" } } }, {}),
      ],
      found: ["warning no-group statefulset/ingester-zone-a"],
    },
  ];
  for (const { name, objects, found } of CASES)
    it(`finds ${name}`, () => {
      const findings = examineStatefulSets(objects);
      assert.deepEqual(summaryOf(findings), found);
      for (const { fix } of findings) assert.notEqual(fix, "");
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
      found: ["error budget-selects zpdb/ingester"],
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
