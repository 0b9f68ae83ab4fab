/**
 * A ZoneAwarePodDisruptionBudget from the object that declares it (§5.2, §6): the validating webhook refuses exactly
 * the budgets that cannot be understood, with the original's messages. JSON.parse yields the same integer for 1.0 and
 * 1; the original refuses 1.0. And the budget that selects a pod (§5.1.3, §5.1.4).
 */
import { cut, listSome } from "../../infra/cut.ts";
import { parseGoDuration } from "../../infra/duration.ts";
import { type Fields, fieldsOf, isFields } from "../../infra/json.ts";
import { firstOf, type Rule } from "../../infra/rules.ts";
import { compilePartition, type PartitionOf, type BudgetProblem } from "./partition.ts";
import type { ObjectRef } from "../model/decision.ts";
import { isTerminating } from "../model/health.ts";
import type { Zone } from "../model/zone.ts";
import type { Pod } from "../model/pod.ts";
import { verdict, type Verdict } from "./verdict.ts";
import { type Labels, matchesLabels } from "../model/label-selector.ts";

export const BUDGET_KIND = "ZoneAwarePodDisruptionBudget";

export interface Budget extends ObjectRef {
  readonly allowance: Allowance;
  /** Selects pods by their labels, and StatefulSets by theirs. */
  readonly matchLabels: Labels;
  /** Undefined in zone mode. */
  readonly partitionOf: PartitionOf | undefined;
  /** Milliseconds that a pod of another zone must have been ready for; 0 or more. */
  readonly crossZoneEvictionDelayMs: number;
}

/** How many pods may be unavailable: a number of 0 or more, or a percentage from 0 to 100. */
type Allowance = { readonly pods: number } | { readonly percent: number };

interface RawBudget {
  readonly kind: unknown;
  readonly spec: Fields;
  readonly partition: PartitionOf | BudgetProblem | undefined;
  /** Undefined if it is no duration. */
  readonly delayMs: number | undefined;
}

const FIELDS = {
  pods: "maxUnavailable",
  percent: "maxUnavailablePercentage",
  regex: "podNamePartitionRegex",
  group: "podNameRegexGroup",
  delay: "crossZoneEvictionDelay",
} as const;

/** Characters of a delay that a message shows; no duration has more. */
const MAX_SHOWN_LENGTH = 100;

/** In the original's order (§6.3-§6.11): only the first problem is reported. */
const findProblem = firstOf<[RawBudget], string>([
  ({ kind }) => (kind === BUDGET_KIND ? undefined : `unexpected object kind - expecting ${BUDGET_KIND}`),
  ({ spec }) =>
    has(spec, FIELDS.pods) && has(spec, FIELDS.percent)
      ? "invalid value: only one of maxUnavailable or maxUnavailablePercentage may be set"
      : undefined,
  badInteger(FIELDS.pods, (pods) =>
    pods < 0 ? `invalid value: max unavailable must be 0 <= val, got ${pods}` : undefined,
  ),
  badInteger(FIELDS.percent, (percent) =>
    percent < 0 || percent > 100
      ? `invalid value: max unavailable percentage must be 0 <= val <= 100, got ${percent}`
      : undefined,
  ),
  ({ partition }) =>
    typeof partition === "object" ? `invalid value: regex is not valid, got ${partition.problem}` : undefined,
  ({ spec }) => problemOfSelector(spec),
  ({ spec, delayMs }) => {
    const written = spec[FIELDS.delay];
    if (has(spec, FIELDS.delay) && typeof written !== "string")
      return `failed to extract value from config field ${FIELDS.delay}`;
    const raw = cut(String(written), MAX_SHOWN_LENGTH);
    if (delayMs === undefined) return `invalid value: crossZoneEvictionDelay is not a valid duration, got ${raw}`;
    return delayMs < 0 ? `invalid value: crossZoneEvictionDelay must be >= 0, got ${raw}` : undefined;
  },
  ({ delayMs = 0, partition }) =>
    delayMs > 0 && !partition
      ? "invalid value: crossZoneEvictionDelay requires podNamePartitionRegex to be set"
      : undefined,
  ({ spec, partition }) =>
    Number(spec[FIELDS.percent]) > 0 && partition
      ? "invalid value: max unavailable percentage can not be used with partition awareness"
      : undefined,
]);

/** The budget, or the first problem in upstream's order (§6.2-§6.11). */
export function parseBudget(object: unknown): Budget | BudgetProblem {
  const { metadata, kind, spec } = fieldsOf(object);
  if (spec === undefined) return { problem: "no spec found in unstructured object" };
  if (!isFields(spec)) return { problem: ".spec accessor error: it is not of the type map[string]interface{}" };
  const raw = { kind, spec, partition: readPartition(spec), delayMs: readDelay(spec) };
  const problem = findProblem(raw);
  if (problem !== undefined) return { problem };
  const { namespace, name, uid } = fieldsOf(metadata);
  return { kind: BUDGET_KIND, namespace: text(namespace), name: text(name), uid: text(uid), ...readTerms(raw) };
}

/** The terms that a budget without problems declares. */
function readTerms({ spec, partition, delayMs = 0 }: RawBudget) {
  return {
    allowance: has(spec, FIELDS.percent)
      ? { percent: Number(spec[FIELDS.percent]) }
      : { pods: Number(spec[FIELDS.pods] ?? 1) },
    matchLabels: readMatchLabels(spec) ?? {},
    partitionOf: typeof partition === "function" ? partition : undefined,
    crossZoneEvictionDelayMs: delayMs,
  };
}

/** The labels that an object selects by, even if the rest of it is invalid; undefined if they cannot be read. */
export function selectorOf(object: unknown): Labels | undefined {
  return readMatchLabels(fieldsOf(fieldsOf(object)["spec"]));
}

/**
 * How many pods of a StatefulSet with these replicas may be unavailable (§5.3); `spec` is undefined where nothing is set.
 */
export function allowedUnavailable(
  { allowance }: Pick<Budget, "allowance">,
  replicas: { spec: number | undefined; status: number },
): number {
  if ("pods" in allowance) return allowance.pods;
  const count = Math.min(replicas.spec ?? 0, replicas.status);
  return allowance.percent > 0 && count > 0 ? Math.max(1, Math.floor((allowance.percent * count) / 100)) : 0;
}

function badInteger(field: string, judge: (value: number) => string | undefined): Rule<[RawBudget], string> {
  return ({ spec }) => {
    if (!has(spec, field)) return undefined;
    const value = spec[field];
    return Number.isSafeInteger(value) ? judge(Number(value)) : `failed to extract value from config field ${field}`;
  };
}

/** An empty pattern is none, and its group then does not matter (§5.2). */
function readPartition(spec: Fields): RawBudget["partition"] {
  const { [FIELDS.regex]: pattern, [FIELDS.group]: group } = spec;
  if (!has(spec, FIELDS.regex) || pattern === "") return undefined;
  if (typeof pattern !== "string")
    return { problem: `failed to extract regex value from config field ${FIELDS.regex}` };
  if (has(spec, FIELDS.group) && !Number.isSafeInteger(group))
    return { problem: `failed to extract group value from config field ${FIELDS.group}` };
  return compilePartition(pattern, group === undefined ? undefined : Number(group));
}

function readDelay(spec: Fields): number | undefined {
  const written = spec[FIELDS.delay] ?? "";
  if (written === "") return 0;
  return typeof written === "string" ? parseGoDuration(written) : undefined;
}

const has = (fields: Fields, field: string): boolean => Object.hasOwn(fields, field);
const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** No object has as many; checking takes time by their number. */
const MAX_LABELS = 1000;

// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
const NAME = /^(?=.{1,63}$)[A-Za-z0-9](?:[-_.A-Za-z0-9]*[A-Za-z0-9])?$/;
const PREFIX = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** The `matchLabels` of a spec; undefined if there are none or they are invalid. */
function readMatchLabels(spec: Fields): Labels | undefined {
  return problemOfSelector(spec) === undefined
    ? (spec as { selector: { matchLabels: Labels } }).selector.matchLabels
    : undefined;
}

/** The problem of a spec's selector (§6.8). */
export function problemOfSelector({ selector }: Fields): string | undefined {
  if (selector === undefined) return "invalid value: selector is not found";
  const invalid = (why: string): string => `invalid value: selector is not valid, got ${why}`;
  if (!isFields(selector)) return invalid("no map");
  const { matchLabels, matchExpressions = [] } = selector;
  if (!Array.isArray(matchExpressions) || matchExpressions.length > 0) return invalid("matchExpressions");
  if (matchLabels === undefined) return "invalid value: selector is not found";
  if (!isFields(matchLabels)) return invalid("matchLabels, which is not a map");
  const keys = Object.keys(matchLabels);
  if (keys.length > MAX_LABELS) return invalid(`${keys.length} labels, more than ${MAX_LABELS}`);
  const bad = Object.entries(matchLabels).find(([key, value]) => !isLabel(key, value));
  return bad && invalid(`${JSON.stringify(bad[0])}: ${JSON.stringify(bad[1])}, which is not a valid label`);
}

function isLabel(key: string, value: unknown): boolean {
  const [name = "", prefix, ...more] = key.split("/").toReversed();
  const keyIsWell = NAME.test(name) && (prefix === undefined || PREFIX.test(prefix)) && more.length === 0;
  return keyIsWell && typeof value === "string" && (value === "" || NAME.test(value));
}

/** A budget as stored, which may be invalid. */
export interface StoredBudget {
  readonly ref: ObjectRef;
  readonly content: Budget | BudgetProblem;
  /** Read even if the rest of the budget is invalid; undefined if they cannot be read. */
  readonly matchLabels: Labels | undefined;
}

/** True if the budget selects these labels. One whose labels cannot be read, which is invalid, may select any. */
export const selectsLabels = ({ matchLabels }: Pick<StoredBudget, "matchLabels">, labels: Labels): boolean =>
  matchLabels === undefined || matchesLabels(matchLabels, labels);

/** The pod that a disruption can reach. */
export interface DisruptionTarget {
  /** The UID that the disruption is pinned to, if any. */
  readonly uid?: string | undefined;
  /** It is pinned to no UID: it reaches any pod of that name. */
  readonly unpinned?: boolean | undefined;
}

/**
 * The one valid budget that selects the pod, or the verdict without one. Only a pod that can never become ready again
 * needs no budget: a Pending pod may be ready by the time the API server deletes it.
 */
export function findBudget(
  pod: Pod,
  budgets: readonly StoredBudget[],
  { uid, unpinned }: DisruptionTarget = {},
): Budget | Verdict {
  if (uid !== undefined && uid !== pod.uid)
    return verdict("OtherPod", "the eviction is for another pod of this name, and will have no effect", [pod]);
  const found = budgets.filter((budget) => selectsLabels(budget, pod.labels));
  if (isTerminating(pod) && unpinned && mayBeUnder(pod, found, budgets))
    return verdict("PodTerminating", `${pod.name} is terminating; try again once it is gone`, [pod]);
  if (isTerminating(pod) || ["Succeeded", "Failed"].includes(pod.phase))
    return verdict("PodNotReady", "pod is not ready", [pod]);
  return budgets.length > 0 ? onlyValid(found, pod) : verdict("PodNotInScope", NO_BUDGET, [pod]);
}

/** By labels that are too long to be kept, it may be under any budget. */
const mayBeUnder = ({ textProblem }: Pod, found: readonly StoredBudget[], all: readonly StoredBudget[]): boolean =>
  (textProblem === undefined ? found : all).length > 0;

const NO_BUDGET = "no zoned pod disruption budget selects the pod";

function onlyValid(found: readonly StoredBudget[], pod: Pod): Budget | Verdict {
  if (pod.textProblem !== undefined) return verdict("LabelsTooLong", `${pod.name}: ${pod.textProblem}`, [pod]);
  const [only] = found;
  if (!only) return verdict("PodNotInScope", NO_BUDGET, [pod]);
  const refs = found.map(({ ref }) => ref);
  if (found.length > 1) {
    const names = listSome(refs.map(({ name }) => name));
    return verdict("SeveralBudgets", `multiple zoned pod disruption budgets found for pod: ${names}`, [pod, ...refs]);
  }
  return "problem" in only.content ? refuseInvalid(only, only.content, pod) : only.content;
}

function refuseInvalid({ ref }: StoredBudget, { problem }: BudgetProblem, object: ObjectRef): Verdict {
  return verdict("BudgetInvalid", `zoned pod disruption budget ${ref.name} is not valid: ${problem}`, [object, ref]);
}

/**
 * The budgets that count the pods of a StatefulSet, by its labels; the verdict on one that is invalid, which does not stop a
 * forced downscale.
 */
export function findBudgetsOfZone<B extends StoredBudget>(
  zone: Pick<Zone, "labels" | "textProblem"> & ObjectRef,
  budgets: readonly B[],
  forced = false,
): Verdict | readonly B[] {
  if (budgets.length > 0 && zone.textProblem !== undefined)
    return verdict("LabelsTooLong", `${zone.name}: ${zone.textProblem}`, [zone]);
  const found = budgets.filter((budget) => selectsLabels(budget, zone.labels));
  if (forced) return found.filter(({ content }) => !("problem" in content));
  const invalid = found.find(({ content }) => "problem" in content);
  return invalid && "problem" in invalid.content ? refuseInvalid(invalid, invalid.content, zone) : found;
}
