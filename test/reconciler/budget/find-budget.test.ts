/** The budget of a pod that is to be evicted, or why it needs none. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { guarded, storedBudget } from "../../builders/budgets.ts";
import { type PodTraits, TOO_LONG } from "../../builders/zones.ts";
import { factsOf } from "./scene.ts";
import { type AskedEviction, startProcess } from "./adapter.ts";

const OTHERS = { selector: { matchLabels: { "rollout-group": "store-gateway" } } };
const [ONE, TWIN, THIRD] = [storedBudget(), storedBudget({}, [], "twin"), storedBudget(OTHERS, [], "third")];
const GOING: PodTraits = { terminating: true };
const NONE = "200 PodNotInScope no zoned pod disruption budget selects the pod";
const MET = "200 Allowed zpdb met across 3 zones";
const GONE = "200 PodNotReady pod is not ready";
const AGAIN = "429 PodTerminating ingester-zone-a-0 is terminating; try again once it is gone";
const invalid = (problem: string): string =>
  `400 BudgetInvalid zoned pod disruption budget ingester is not valid: invalid value: ${problem}`;

type Case = readonly [
  name: string,
  pod: PodTraits,
  budgets: readonly ReturnType<typeof storedBudget>[],
  answer: string,
  asked?: Partial<AskedEviction> & { readonly labels?: Record<string, string> },
];

const CASES: readonly Case[] = [
  ["a pod that failed", { phase: "Failed" }, [ONE], GONE],
  ["a pod that has completed", { phase: "Succeeded" }, [ONE], GONE],
  ["a terminating pod", GOING, [ONE], GONE],
  ["a pod that there is not", {}, [ONE], '400 PodNotFound pods "ingester-zone-a-7" not found', { pod: "zone-a-7" }],
  ["a pod that runs and is not ready", { ready: false }, [THIRD, ONE], MET],
  ["a Pending pod, which may be ready by the time it is deleted", { ready: false, phase: "Pending" }, [ONE], MET],
  ["no budget", {}, [], NONE],
  ["no budget that selects the pod", {}, [THIRD], NONE],
  [
    "two budgets that select the pod",
    {},
    [ONE, TWIN, THIRD],
    "400 SeveralBudgets multiple zoned pod disruption budgets found for pod: ingester, twin",
  ],
  [
    "13.6 a stored budget that is invalid",
    {},
    [storedBudget({ maxUnavailable: -1 })],
    invalid("max unavailable must be 0 <= val, got -1"),
  ],
  ["an invalid budget of other pods", {}, [storedBudget({ ...OTHERS, maxUnavailable: -1 })], NONE],
  [
    "a budget whose selector cannot be read: it may select any pod",
    {},
    [storedBudget({ selector: {} })],
    invalid("selector is not found"),
  ],
  [
    "a budget with expressions, which it cannot have",
    {},
    [storedBudget({ selector: { ...OTHERS.selector, matchExpressions: [{ key: "a", operator: "Exists" }] } })],
    invalid("selector is not valid, got matchExpressions"),
  ],
  ["an empty selector, which selects everything", {}, [storedBudget({ selector: { matchLabels: {} } })], MET],
  [
    "a disruption with another UID: it cannot take effect",
    {},
    [ONE],
    "200 OtherPod the eviction is for another pod of this name, and will have no effect",
    { uid: "of the one before" },
  ],
  ["a disruption with its UID", {}, [ONE], MET, { uid: "uid-ingester-zone-a-0" }],
  ["a terminating pod by its name alone: it might reach the successor", GOING, [ONE], AGAIN, { unpinned: true }],
  ["a terminating pod by its name alone, under no budget", GOING, [THIRD], GONE, { unpinned: true }],
  [
    "a terminating pod by its name alone whose labels are too long to be kept: any budget may select it",
    GOING,
    [THIRD],
    AGAIN,
    { unpinned: true, labels: TOO_LONG },
  ],
  ["the same where there is no budget", GOING, [], GONE, { unpinned: true, labels: TOO_LONG }],
];

describe("the budget of a pod", () => {
  for (const [name, traits, budgets, expected, { labels = {}, pod = "zone-a-0", ...asked } = {}] of CASES)
    it(`${name}: ${expected}`, async () => {
      const facts = factsOf({ zones: { a: { pods: { 0: traits } } } });
      const pods = facts.pods.map(({ metadata, ...one }) =>
        guarded({ ...one, metadata: { ...metadata, labels: { ...metadata?.labels, ...labels } } }),
      );
      const process = startProcess({ ...facts, pods, budgets });
      const { reason, message } = await process.evict({ pod: `ingester-${pod}`, ...asked });
      assert.equal(`${VERDICTS[reason].code} ${reason} ${message}`, expected);
    });
});
