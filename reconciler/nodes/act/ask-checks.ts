/**
 * Asks Prometheus for the checks of policies. A policy has no namespace: the Secrets of its checks are in the
 * reconciler's own.
 */
import type { Round } from "../../checks/act/ask-prometheus.ts";
import type { Questions } from "./plan-after-reading.ts";

export function createAskChecks(round: Round, namespace: string): Questions["askChecks"] {
  return async (due) => {
    const answers = await Promise.all(
      due.map(async (check) => [check.name, await round.ask({ namespace, ...check })] as const),
    );
    return new Map(answers.flatMap(([name, answer]) => (answer ? [[name, answer] as const] : [])));
  };
}
