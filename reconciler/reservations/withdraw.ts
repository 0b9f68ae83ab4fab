/** Takes a reservation back, so that it does not hold others up for its 2 minutes. */
import type { Call } from "../../infra/kubernetes/cluster.ts";
import { hasCode } from "../../infra/errors.ts";
import { disruptionBudgets } from "../../infra/kubernetes/resources.ts";
import type { Desk, Held } from "./ask.ts";
import { isSame } from "../budget/reservation.ts";
import { openLedger } from "./ledger.ts";

const MOST_ROUNDS = 5;

/** Removes exactly this reservation, not one that somebody made of the same pod since. Never rejects: what cannot be removed expires. */
export async function withdraw({ cluster, leased }: Pick<Desk, "cluster" | "leased">, held: Held, call: Call): Promise<void> {
  const { namespace, budget: name, pod } = held;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    try {
      const budget = await cluster.get(disruptionBudgets, { namespace, name }, call);
      const ledger = await openLedger(cluster, budget, leased.has(budget.metadata.uid ?? ""), call);
      const { [pod]: found, ...others } = ledger.reservations;
      if (isSame(found, held)) await ledger.write(others, call);
      return;
    } catch (error) {
      if (!hasCode(error, "Conflict")) return;
    }
  }
}
