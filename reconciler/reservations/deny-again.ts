/**
 * Denies an eviction without a list, if what kept the budget from allowing one when it was last looked at is there still: a read each of the pod,
 * of the budget and of what blocks. Those that ask at once share the reads that they have in common.
 */
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { absent } from "../../infra/errors.ts";
import { disruptionBudgets, pods, statefulSets } from "../../infra/kubernetes/resources.ts";
import { type Ask, budgetKey, type Desk } from "./ask.ts";
import { buildCase, type Case, type LastLook, proveCase, type Reread, type Suspect } from "../budget/last-look.ts";
import { readMember } from "../budget/member.ts";
import { livingReservations, type Reservations } from "../budget/reservation.ts";
import { findBudget } from "../budget/scope.ts";
import { verdict, type Verdict } from "../budget/verdict.ts";
import { BUDGET_KIND, type Budget } from "../budget/zpdb.ts";
import { hintKey } from "./find-budget.ts";
import { openLedger } from "./ledger.ts";
import { readZone } from "../model/zone.ts";

/** Then the whole budget is read again: zones may have come or gone, and another budget with them. */
const LASTS_MS = 60_000;
/** More would cost as much as a list. */
const MOST_READS = 4;

/** Resolves with undefined if the whole budget has to be read to know; rejects with what the cluster says. */
export type DenyAgain = (ask: Ask, deadlineMs: number) => Promise<Verdict | undefined>;

export function createDenyAgain(desk: Desk): DenyAgain {
  const { clock, hints, looks } = desk;
  const cluster = shareReads(desk.cluster);

  async function reread(namespace: string, suspect: Suspect, call: Call): Promise<Reread> {
    const found = await cluster.get(pods, { namespace, name: suspect.pod }, call).catch(absent);
    if (found) return { suspect, pod: readMember(found) };
    const zone = await cluster.get(statefulSets, { namespace, name: suspect.zone.name }, call).catch(absent);
    return { suspect, pod: undefined, zone: zone && readZone(zone) };
  }

  /** The reservations of the budget; undefined if it is not the one that was seen. */
  async function readReservations({ namespace, name, uid, generation }: Budget, call: Call): Promise<Reservations | undefined> {
    const found = await cluster.get(disruptionBudgets, { namespace, name }, call).catch(absent);
    if (found?.metadata.uid !== uid || found.metadata.generation !== generation) return undefined;
    return (await openLedger(cluster, found, desk.leased.has(uid), call)).reservations;
  }

  async function prove(ask: Ask, budget: Budget, claim: Case, call: Call): Promise<Verdict | undefined> {
    const [reserved, object, ...suspects] = await Promise.all([
      readReservations(budget, call),
      desk.cluster.get(pods, ask, call).catch(absent),
      ...claim.suspects.map((suspect) => reread(ask.namespace, suspect, call)),
    ]);
    if (!object) return verdict("PodNotFound", `pods "${ask.name}" not found`);
    const pod = readMember(object);
    if (!reserved || pod.owner !== claim.own.uid) return undefined;
    const ref = { kind: BUDGET_KIND, namespace: budget.namespace, name: budget.name, uid: budget.uid } as const;
    const found = findBudget(pod, [{ ref, content: budget, matchLabels: budget.matchLabels }], ask);
    if ("reason" in found) return found.reason === "PodNotInScope" ? undefined : found;
    const uids = new Map(suspects.map((one) => [one.suspect.pod, one.pod?.uid]));
    const now = clock.now();
    const message = proveCase(claim, suspects, { now, budget, reservations: livingReservations(reserved, (one) => uids.get(one), now) });
    return message === undefined ? undefined : verdict(claim.needed === 0 ? "MaxUnavailableZero" : "BudgetSpent", message, [pod, ref]);
  }

  return async (ask, deadlineMs) => {
    const name = hints.get(hintKey(ask) ?? "") ?? "";
    const look: LastLook | undefined = looks.get(budgetKey(ask.namespace, name));
    if (!look || clock.monotonic() - look.at > LASTS_MS) return undefined;
    const claim = buildCase(ask.name, look, MOST_READS);
    return claim && prove(ask, look.budget, claim, { deadlineMs });
  };
}

/** A cluster whose reads of the same object are one, as long as the first of them is under way. */
function shareReads(cluster: Cluster): Cluster {
  const underWay = new Map<string, Promise<unknown>>();
  return {
    ...cluster,
    get: <T>(...[resource, ref, call]: Parameters<typeof cluster.get<T>>): Promise<T> => {
      const key = [resource.plural, ref.namespace, ref.name].join("/");
      const read = underWay.get(key) ?? cluster.get(resource, ref, call).finally(() => underWay.delete(key));
      underWay.set(key, read);
      return read as Promise<T>;
    },
  };
}
