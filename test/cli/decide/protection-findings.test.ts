/** What doctor proposes about disruption budgets takes no pod's protection away. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { examineBudgets, examineTemplates } from "../../../cli/decide/protection-findings.ts";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { ANNOTATIONS } from "../../../reconciler/model/annotations.ts";
import type { StoredBudget } from "../../../reconciler/budget/scope.ts";
import type { Zone } from "../../../reconciler/model/zone.ts";
import { statefulSetObject } from "../../reconciler/builders.ts";
import { zonesOf, budgetOf } from "./worlds.ts";

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
  assert.equal(fixWith(both, wide), "keep one, such as budget-1: kubectl -n test delete zpdb budget-0");
  assert.equal(fixWith(wide, both), "keep one, such as budget-0: kubectl -n test delete zpdb budget-1");
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
      selector: "app=store",
    }));
    return examineBudgets([budget], [...of, ...store], []).find(({ object }) => object.endsWith("store-0"))?.fix ?? "";
  };
  assert.match(fixOf({}), /label --overwrite pods -l 'app=store' rollout-group=store && .*"rollout-group":"store"/);
  assert.match(fixOf({ tier: "x" }), /: kubectl -n test edit zpdb ingester$/);
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

  it("says nothing while it has no replicas", () => {
    const [first = assert.fail(), second = assert.fail()] = of.map((zone) => ({ ...zone, replicas: 0 }));
    assert.deepEqual(findIn([first, second]), []);
    const one = findIn([first, { ...second, replicas: 1 }]);
    assert.match(one[0]?.message ?? "", /every eviction of them is allowed$/);
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

  it("says what budgets of single zones do not keep", () => {
    const own = of.map((zone) => ({ ...zone, podLabels: { ...labels, zone: zone.name } }));
    const each = own.map(({ name }) => ({
      metadata: { namespace: "test", name },
      spec: { selector: { matchLabels: { zone: name } } },
    }));
    const said = (others: readonly object[]) => findIn(own, [], others)[0]?.message ?? "";
    const single =
      /the pods of all its zones \(.*\): evictions are allowed by budgets of single zones at most, in several/;
    assert.match(said(each), single);
    assert.match(said(each.slice(1)), single);
    assert.match(said([]), /its pods \(.*\): every eviction of them is allowed, in several zones at once$/);
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

describe("of a template that carries zonewise/delete-by-hand", () => {
  const found = (value: string) => {
    const object = statefulSetObject({ name: "ingester-zone-a" });
    const template = { ...object.spec?.template, metadata: { annotations: { [ANNOTATIONS.deleteByHand]: value } } };
    return examineTemplates([{ ...object, spec: { ...object.spec, template } } as StatefulSet]);
  };

  it("says that no guard refuses a deletion of its pods, and takes it out", () => {
    const [finding = assert.fail(), ...more] = found("true");
    assert.equal(more.length, 0);
    assert.deepEqual(
      [finding.level, finding.check, finding.object],
      ["warning", "delete-by-hand-in-template", "statefulset/ingester-zone-a"],
    );
    assert.match(finding.message, /no guard refuses a deletion of any of its pods$/);
    assert.match(
      finding.fix,
      /: kubectl -n \S+ patch statefulset ingester-zone-a --type=json -p '\[\{"op":"remove","path":"[^ ]+\/zonewise[^ /]*~1delete-by-hand"\}\]'$/,
    );
  });

  it("finds nothing where no guard obeys it: another value, or no group", () => {
    assert.deepEqual(found("yes"), []);
    const object = statefulSetObject({ name: "ingester-zone-a" });
    assert.deepEqual(examineTemplates([object]), []);
    const { labels: _, ...metadata } = object.metadata ?? {};
    const template = { ...object.spec?.template, metadata: { annotations: { [ANNOTATIONS.deleteByHand]: "true" } } };
    assert.deepEqual(
      examineTemplates([{ ...object, metadata, spec: { ...object.spec, template } } as StatefulSet]),
      [],
    );
  });
});
