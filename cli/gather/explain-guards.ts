/** Reads what holds groups and nodes back, and explains it: gates, disruption budgets, policies of node updates. */
import { absent } from "../../infra/errors.ts";
import { rolloutGates } from "../../infra/kubernetes/custom-resources.ts";
import { listBudgets } from "../../reconciler/budget/act/gather-budget.ts";
import { matchesLabels } from "../../reconciler/budget/zpdb.ts";
import { readGate } from "../../reconciler/gates/gate.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import type { Explanation } from "../decide/answer.ts";
import { explainGroup } from "../decide/explain-group.ts";
import { explainBudget, explainGate, explainPolicy } from "../decide/explain-guards.ts";
import type { GroupState } from "../decide/group-state.ts";
import type { Session } from "../session.ts";
import { gatherGroupStates } from "./groups.ts";
import { createGuards } from "./guard.ts";
import { gatherPolicies } from "./node-update.ts";
import { markOld } from "./ticking.ts";
import { gatherScene } from "./world.ts";

/** Undefined if there is no such object. */
type Explained = Promise<readonly Explanation[] | undefined>;

export async function gatherGateAnswers(session: Session, name: string): Explained {
  const query = { namespace: session.namespace };
  const list = await readAll({ resource: rolloutGates, query, read: readGate }, session).catch(absent);
  const gate = list?.items.find((one) => one?.ref.name === name);
  return gate && explainGate(gate, await gatherGroupAnswers(session, ({ group }) => group === gate.group));
}

export async function gatherBudgetAnswers(session: Session, name: string): Explained {
  const budget = (await listBudgets(session.namespace, session))?.find(({ ref }) => ref.name === name);
  if (!budget) return undefined;
  const guard = await createGuards(session)(session.namespace);
  const { matchLabels = {} } = budget;
  const selects = ({ podLabels }: Zone): boolean => matchesLabels(matchLabels, podLabels);
  return explainBudget(budget, guard, await gatherGroupAnswers(session, ({ zones }) => zones.some(selects)));
}

export async function gatherPolicyAnswers(session: Session, name: string): Explained {
  const policy = (await gatherPolicies(session)).find((one) => one.name === name);
  return policy && [explainPolicy(policy)];
}

/** The answers of all chosen groups of the namespace. */
async function gatherGroupAnswers(session: Session, isChosen: (group: GroupState) => boolean): Promise<Explanation[]> {
  const groups = (await gatherGroupStates(session, session.namespace)).filter(isChosen);
  const answers = groups.map(async (state) =>
    explainGroup(markOld(state, session.noTicks), await gatherScene(state, session)),
  );
  return (await Promise.all(answers)).flat();
}
