/** Finds the budget that a pod is under, with as few calls as may be. */
import type { Call } from "../../infra/kubernetes/cluster.ts";
import { absent } from "../../infra/errors.ts";
import { pods } from "../../infra/kubernetes/resources.ts";
import { type Ask, type Attempt, decided, type Desk } from "./ask.ts";
import { readMember } from "../budget/member.ts";
import { findBudget } from "../budget/scope.ts";
import { verdict, type Verdict } from "../budget/verdict.ts";
import type { Budget } from "../budget/zpdb.ts";
import type { ListedBudget } from "./gather-budget.ts";

export interface Around {
  readonly budgets: readonly ListedBudget[];
  readonly desk: Desk;
  readonly call: Call;
}

const OF_STATEFULSET = /^(?<set>.+)-\d+$/;

/** Under which hint the pod's StatefulSet is found, by the pod's name alone; undefined if the name is none of a StatefulSet's pod. */
export function hintKey({ namespace, name }: Pick<Ask, "namespace" | "name">): string | undefined {
  const set = OF_STATEFULSET.exec(name)?.groups?.["set"];
  return set === undefined ? undefined : `${namespace}/${set}`;
}

/** The budget that the pod is under, by its name alone where that may do: the pod comes with the budget's list, a call less. */
export async function chooseBudget(ask: Ask, around: Around): Promise<ListedBudget | Attempt> {
  const { budgets, desk } = around;
  const key = hintKey(ask);
  const hint = key && desk.hints.get(key);
  const guess = hint === undefined && key !== undefined && budgets.length === 1 ? budgets[0] : budgets.find(({ ref }) => ref.name === hint);
  if (guess && !("problem" in guess.content)) return guess;
  return await lookUp(ask, around);
}

/** Reads the pod itself. Rejects with what the cluster says. */
export async function lookUp(ask: Ask, around: Around): Promise<ListedBudget | Attempt> {
  const { budgets, desk, call } = around;
  if (ask.rollout && budgets.length === 0) return decided(verdict("PodNotInScope", "there is no zoned pod disruption budget"));
  const pod = await desk.cluster.get(pods, ask, call).catch(absent);
  if (!pod) return decided(verdict("PodNotFound", `pods "${ask.name}" not found`));
  const found = findBudget(readMember(pod), budgets, ask);
  learn(ask, found, desk);
  return "reason" in found ? decided(found) : (budgets.find(({ content }) => content === found) ?? { state: "outrun" });
}

const MOST_HINTS = 10_000;

/** Remembers under which budget the pods of a StatefulSet are. */
export function learn(ask: Ask, found: Budget | Verdict, { hints }: Desk): void {
  const key = hintKey(ask);
  if (key === undefined || ("reason" in found && found.reason !== "PodNotInScope")) return;
  if (hints.size >= MOST_HINTS) hints.clear();
  hints.set(key, "reason" in found ? "" : found.name);
}
