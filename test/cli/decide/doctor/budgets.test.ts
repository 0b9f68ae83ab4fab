/** What doctor proposes about disruption budgets takes no pod's protection away. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BUDGETS as CHECKS } from "../../../../cli/decide/doctor/budgets.ts";
import type { DoctorFacts, Finding } from "../../../../cli/decide/doctor/facts.ts";
import { isGrouped } from "../../../../reconciler/remedies/leader.ts";
import type { PodDisruptionBudget } from "../../../../infra/kubernetes/resources.ts";
import type { StoredBudget } from "../../../../reconciler/budget/zpdb.ts";
import { groupKey, type Zone } from "../../../../reconciler/model/zone.ts";
import { zonesOf, budgetOf } from "../worlds.ts";

const examineBudgets = (
  budgets: readonly StoredBudget[],
  zones: readonly Zone[],
  others: readonly PodDisruptionBudget[] | undefined,
): Finding[] => {
  const groups = Map.groupBy(zones.filter(isGrouped), groupKey);
  return CHECKS.flatMap(({ find }) => find({ budgets, zones, groups, others } as unknown as DoctorFacts));
};
const summaryOf = (findings: readonly Finding[]): string[] =>
  findings.map(({ level, check, object }) => `${level} ${check} ${object}`);
const labels = { "rollout-group": "ingester" };
const [a = assert.fail(), b = assert.fail()] = zonesOf({}, {});

it("finds nothing of two budgets that each select half of a group", () => {
  const halves = ["x", "y"].map((tier) => budgetOf({ selector: { matchLabels: { tier } } }, tier));
  const of = ["x", "x", "y", "y"].map((tier, i) => ({
    ...a,
    name: `ingester-zone-${i}`,
    labels: { ...labels, tier },
    podLabels: { tier },
  }));
  assert.deepEqual(examineBudgets(halves, of, []), []);
});

it("proposes to delete only a budget that selects nothing beside what the kept one does", () => {
  const both = { "rollout-group": "ingester", tier: "x" };
  const of = [a, b].map((zone) => ({ ...zone, labels: both, podLabels: both }));
  const fixWith = (...matchLabels: object[]): string => {
    const budgets = matchLabels.map((one, i) => budgetOf({ selector: { matchLabels: one } }, `budget-${i}`));
    return examineBudgets(budgets, of, []).find(({ check }) => check === "budgets-overlap")?.fix ?? "";
  };
  const wide = { tier: "x" };
  assert.equal(fixWith(both, wide), "keep one, such as budget-1:\nkubectl -n test delete zpdb budget-0");
  assert.equal(fixWith(wide, both), "keep one, such as budget-0:\nkubectl -n test delete zpdb budget-1");
  assert.equal(fixWith(wide, { "rollout-group": "ingester" }), "kubectl -n test edit zpdb budget-1");
});

it("takes no label off running pods but that of another group, as a Service may select them by it", () => {
  const fixOf = (more: Record<string, string>): string => {
    const podLabels = { ...labels, ...more };
    const budget = budgetOf({ selector: { matchLabels: podLabels } });
    const of = [a, b].map((zone) => ({ ...zone, labels: podLabels, podLabels }));
    const store = of.map((zone, i) => ({
      ...zone,
      name: `store-${i}`,
      group: "store",
      labels: { "rollout-group": "store" },
      selector: { matchLabels: { app: "store" } },
    }));
    return examineBudgets([budget], [...of, ...store], []).find(({ object }) => object.endsWith("store-0"))?.fix ?? "";
  };
  assert.match(fixOf({}), /label --overwrite pods -l 'app=store' rollout-group=store && .*"rollout-group":"store"/);
  assert.match(fixOf({ tier: "x" }), /:\nkubectl -n test edit zpdb ingester$/);
});

describe("of a group without a budget", () => {
  const pods = { name: "x" };
  const of = [a, b].map((zone) => ({ ...zone, labels, podLabels: { ...labels, ...pods } }));
  const findIn = (zones: readonly Zone[], budgets: readonly StoredBudget[] = [], others: readonly object[] = []) =>
    examineBudgets(budgets, zones, others as never).filter(({ check }) => check === "group-without-budget");

  it("proposes one by the label of the group", () => {
    const [only, ...more] = findIn(of);
    assert.equal(more.length, 0);
    assert.equal(only?.object, "group/ingester");
    assert.equal(
      only?.fix,
      `echo '{"apiVersion":"rollout-operator.grafana.com/v1","kind":"ZoneAwarePodDisruptionBudget","metadata":{"name":"ingester"},"spec":{"maxUnavailable":1,"selector":{"matchLabels":{"rollout-group":"ingester"}}}}' | kubectl -n test create -f -`,
    );
  });

  it("proposes none by labels that pods of a Deployment may have as well, nor one that selects another's pods", () => {
    const words =
      /^give the pods of these StatefulSets, in their templates, the label rollout-group=ingester, and no other/;
    const tier = { tier: "x" };
    const own = of.map((zone) => ({ ...zone, labels: { ...labels, ...tier }, podLabels: tier }));
    assert.match(findIn(own)[0]?.fix ?? "", words);
    const [first = assert.fail(), second = assert.fail()] = of;
    assert.match(findIn([first, { ...second, podLabels: pods }])[0]?.fix ?? "", words);
    const other = { ...a, name: "db", labels: {}, podLabels: labels };
    assert.match(findIn([...of, other])[0]?.fix ?? "", words);
    assert.match(findIn([...of, { ...other, namespace: "else" }])[0]?.fix ?? "", /"rollout-group":"ingester"/);
  });

  it("says nothing while it has pods in one zone at most", () => {
    const [first = assert.fail(), second = assert.fail()] = of.map((zone) => ({ ...zone, replicas: 0 }));
    assert.deepEqual(findIn([first, second]), []);
    assert.deepEqual(findIn([first, { ...second, replicas: 1 }]), []);
  });

  it("says nothing where a PodDisruptionBudget guards all zones that have pods", () => {
    const [first = assert.fail(), second = assert.fail(), idle = assert.fail()] = [...of, a].map((zone, i) => ({
      ...zone,
      podLabels: { ...labels, set: i < 2 ? "x" : "y" },
    }));
    const pdb = { metadata: { namespace: "test" }, spec: { selector: { matchLabels: { set: "x" } } } };
    assert.deepEqual(findIn([first, second, { ...idle, replicas: 0 }], [], [pdb]), []);
    assert.equal(findIn([first, second, idle], [], [pdb]).length, 1);
  });

  it("is found where PodDisruptionBudgets guard its zones one by one", () => {
    const own = of.map((zone) => ({ ...zone, podLabels: { ...labels, zone: zone.name } }));
    const each = own.map(({ name }) => ({
      metadata: { namespace: "test", name },
      spec: { selector: { matchLabels: { zone: name } } },
    }));
    assert.match(findIn(own, [], each)[0]?.message ?? "", /evictions may take pods of several zones at once$/);
  });

  it("overwrites no budget of that name", () => {
    const mistyped = budgetOf({ selector: { matchLabels: { "rollout-group": "ingestr" } } });
    assert.equal(findIn(of, [mistyped])[0]?.fix, "kubectl -n test edit zpdb ingester");
  });

  it("says nothing where a budget selects one of its zones, or a PodDisruptionBudget all of its pods", () => {
    const [first = assert.fail(), second = assert.fail()] = of;
    const budget = budgetOf({ selector: { matchLabels: { tier: "x" } } });
    assert.deepEqual(findIn([{ ...first, labels: { ...labels, tier: "x" } }, second], [budget]), []);
    const core = (matchLabels: object) => ({ metadata: { namespace: "test" }, spec: { selector: { matchLabels } } });
    assert.deepEqual(findIn(of, [], [core(labels)]), []);
    assert.equal(findIn(of, [], [core({ "rollout-group": "store" })]).length, 1);
    assert.equal(findIn(of, [], [{ ...core(labels), metadata: { namespace: "else" } }]).length, 1);
  });
});

describe("zonewise doctor", () => {
  const zones = [a, b].map((zone) => ({ ...zone, podLabels: labels }));
  const pdb = {
    metadata: { name: "core", namespace: "test" },
    spec: { selector: { matchLabels: labels } },
  } as unknown as PodDisruptionBudget;
  const byExpression = (operator: string) => ({
    ...pdb,
    spec: { selector: { matchExpressions: [{ key: "rollout-group", operator }] } },
  });
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
    {
      name: "one that selects by an expression",
      budgets: [budgetOf({})],
      others: [byExpression("Exists")],
      found: ["warning pdb-beside-zpdb pdb/core"],
    },
    {
      name: "none that an expression keeps from the pods",
      budgets: [budgetOf({})],
      others: [byExpression("DoesNotExist")],
      found: [],
    },
    {
      name: "a budget whose selector cannot be read",
      budgets: [budgetOf({ selector: { matchLabels: { "a b": "x" } } })],
      others: [],
      found: ["error budget-invalid zpdb/ingester"],
    },
  ];
  for (const { name, budgets, others, found } of BUDGETS)
    it(`finds ${name}`, () => assert.deepEqual(summaryOf(examineBudgets(budgets, zones, others)), found));

  const [first = assert.fail(), second = assert.fail()] = zones;
  const regex = (podNamePartitionRegex: string) => budgetOf({ podNamePartitionRegex });
  const HALVES = [
    {
      name: "pods that a budget selects without their StatefulSet",
      budgets: [budgetOf({})],
      of: [
        first,
        second,
        { ...second, name: "ingester-zone-c", group: "ingestr", labels: { "rollout-group": "ingestr" } },
      ],
      found: "error budget-selects-half statefulset/ingester-zone-c",
      fix: /^kubectl -n test label --overwrite statefulset ingester-zone-c rollout-group=ingester$/,
    },
    {
      name: "a StatefulSet that a budget selects without its pods",
      budgets: [budgetOf({})],
      of: [first, second, { ...second, name: "ingester-zone-c", podLabels: {} }],
      found: "error budget-selects-half statefulset/ingester-zone-c",
      fix: /^this replaces its pods:\nkubectl -n test patch statefulset ingester-zone-c .*"labels":\{"rollout-group":"ingester"\}/,
    },
    {
      name: "a zone that the budget of the others leaves out",
      budgets: [budgetOf({ selector: { matchLabels: { tier: "x" } } })],
      of: [
        ...[first, second].map((zone) => ({ ...zone, labels: { ...labels, tier: "x" }, podLabels: { tier: "x" } })),
        { ...second, name: "ingester-zone-c" },
      ],
      found: "warning budget-selects-half statefulset/ingester-zone-c",
      fix: /^this replaces its pods:\nkubectl .* label --overwrite statefulset ingester-zone-c tier=x && kubectl .* patch statefulset ingester-zone-c .*'$/,
    },
    {
      name: "a pattern that matches no pod",
      budgets: [regex("store-([0-9]+)")],
      of: [first, second],
      found: "error pattern-matches-no-pod zpdb/ingester",
      fix: /^kubectl -n test edit zpdb ingester$/,
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
});
