/** Disruption budgets, and the webhook that asks them. */
import assert from "node:assert/strict";
import { BUDGETS, writeBudget } from "../../reconciler/budget-stage.ts";
import { withDefaults } from "../../emulator/defaults.ts";
import { listOf, put } from "../../emulator/objects.ts";
import { deploy } from "../../reconciler/stage.ts";
import { issue } from "../guard-stage.ts";
import { change, create, label, remove, setSpec } from "./changes.ts";
import type { Trouble } from "./trouble.ts";

const HOOKS = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const HOOK = "pod-eviction-default";
const SETS = "statefulsets.apps";
const POD = "pod/ingester-zone-a-0";

export const BUDGET_TROUBLES: readonly Trouble[] = [
  {
    trouble: "no eviction webhook",
    make: ({ stage }) => stage.emulator.store.remove(HOOKS, undefined, HOOK),
    seenAfter: 40,
    object: POD,
    says: {
      status: /^warning {2}no webhook configuration sends evictions/,
      explain: /evict: not judged {2}NoWebhook/,
      doctor: /zpdb\/ingester: no webhook configuration sends evictions/,
      page: /no webhook configuration sends evictions/,
    },
    cure: { by: "doctor" },
    curedAfter: 70,
  },
  {
    trouble: "functions that are scaled to none",
    make: (at) => setSpec(at, "deployments.apps", "zonewise-functions", ["replicas"], 0),
    seenAfter: 40,
    object: POD,
    says: {
      status: /^warning {2}.*cannot be called.*every eviction in default is refused/,
      explain: /Cannot be evicted {2}WebhookDown/,
      doctor: /zpdb\/ingester: .*cannot be called.*every eviction in default is refused/,
      page: /cannot be called/,
    },
    cure: {},
    curedAfter: 70,
  },
  {
    trouble: "a webhook with the CA of another",
    make: async (at) => {
      const caBundle = Buffer.from((await issue()).caPem).toString("base64");
      change(at, HOOKS, HOOK, (object) => {
        const webhooks = listOf(object["webhooks"]).map((hook) =>
          put(hook as never, ["clientConfig", "caBundle"], caBundle),
        );
        // Without the labels nobody injects it.
        return { ...object, metadata: { ...object.metadata, labels: {} }, webhooks };
      });
    },
    seenAfter: 40,
    object: POD,
    says: {
      explain: /Cannot be evicted {2}WebhookDown\n.*x509: certificate signed by unknown authority/,
      doctor: /cannot be called, .*x509/,
    },
    cure: {},
    curedAfter: 70,
  },
  {
    trouble: "two budgets for the same pods",
    make: ({ stage }) => writeBudget(stage, {}, "second"),
    object: POD,
    says: {
      explain: /Cannot be evicted {2}SeveralBudgets/,
      doctor: /several budgets select its pods: ingester, second/,
    },
    cure: {},
  },
  {
    trouble: "a typo in the label of the group",
    make: (at) => label(at, SETS, "ingester-zone-c", { "rollout-group": "ingestr" }),
    object: "pod/ingester-zone-c-0",
    says: {
      doctor: /statefulset\/ingester-zone-c: budget ingester selects its pods but not the StatefulSet/,
      explain: /Cannot be evicted {2}OwnerNotFound\n[^]*zonewise -n default doctor/,
    },
    cure: { by: "doctor" },
  },
  {
    trouble: "a pattern of partitions that fits no pod",
    make: (at) => setSpec(at, BUDGETS, "ingester", ["podNamePartitionRegex"], "partition-([0-9]+)"),
    object: POD,
    says: {
      explain: /Cannot be evicted {2}PartitionUnknown/,
      doctor: /zpdb\/ingester: its podNamePartitionRegex finds no partition in the name ingester-zone-a-0/,
    },
    cure: {
      by: "doctor",
      edit: (budget) => put(budget, ["spec", "podNamePartitionRegex"], "[a-z-]+-([0-9]+)"),
    },
  },
  {
    trouble: "an invalid budget",
    make: (at) => setSpec(at, BUDGETS, "ingester", ["podNamePartitionRegex"], "("),
    seenAfter: 40,
    object: POD,
    says: { explain: /Cannot be evicted {2}BudgetInvalid/, doctor: /error {2}zpdb\/ingester: .*\(budget-invalid\)/ },
    event: /^BudgetInvalid /m,
    cure: { edit: (budget) => put(budget, ["spec", "podNamePartitionRegex"], undefined) },
  },
  {
    trouble: "a budget that allows no pod",
    make: (at) => setSpec(at, BUDGETS, "ingester", ["maxUnavailable"], 0),
    object: POD,
    says: { explain: /Cannot be evicted {2}MaxUnavailableZero/ },
    cure: {},
  },
  {
    trouble: "a budget that selects no pod",
    make: ({ stage }) => writeBudget(stage, { selector: { matchLabels: { "rollout-group": "ingestr" } } }),
    says: { doctor: /zpdb\/ingester: it selects no StatefulSet by its labels/ },
    cure: {
      by: "doctor",
      edit: (budget) => put(budget, ["spec", "selector", "matchLabels", "rollout-group"], "ingester"),
    },
  },
  {
    trouble: "a group without a budget",
    make: (at) => remove(at, BUDGETS, "ingester"),
    says: {
      doctor:
        /warning {2}group\/ingester: no disruption budget selects the pods of all its zones \(ingester-zone-a, .*\(group-without-budget\)/,
    },
    cure: { by: "doctor" },
  },
  {
    trouble: "two groups that share the label of their pods",
    make: ({ stage }) => {
      const podLabels = { "rollout-group": "ingester" };
      deploy(stage, "store:1", { group: "store", zones: ["a", "b"], replicas: 2, podLabels });
      for (const name of ["store-zone-a", "store-zone-b"]) {
        const set = stage.emulator.store.get(SETS, "default", name) ?? assert.fail();
        stage.emulator.store.update(SETS, withDefaults(SETS, set));
      }
      writeBudget(stage, { selector: { matchLabels: { "rollout-group": "store" } } }, "store");
    },
    object: "pod/store-zone-a-0",
    says: {
      doctor: /statefulset\/store-zone-a: budget ingester selects its pods but not the StatefulSet/,
      explain: /Cannot be evicted {2}OwnerNotFound/,
    },
    cure: { by: "doctor" },
    changes: ["store-zone-a", "store-zone-b"],
    curedAfter: 60,
  },
  {
    trouble: "a PodDisruptionBudget beside the zone-aware one",
    make: (at) =>
      create(at, "poddisruptionbudgets.policy", "PodDisruptionBudget", {
        metadata: { name: "core" },
        spec: { selector: { matchLabels: { "rollout-group": "ingester" } }, maxUnavailable: 1 },
      }),
    says: { doctor: /warning {2}pdb\/core: it selects pods of ingester-zone-a as a zone-aware budget does/ },
    cure: { by: "doctor" },
  },
];
