/**
 * What a budget publishes of itself, against what it does (§5.10): once all is settled, an eviction of a ready pod of each
 * zone is tried, as a dry run. The webhook allows it if the budget's status says that one would be allowed, and denies it
 * otherwise. Where nobody judges an eviction, there is nothing to compare.
 */
import { dig, fieldsOf, isTrue, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { Store } from "../../emulator/store.ts";
import { BUDGET, BUDGETS, EVICTION_PATHS, NAMESPACE } from "../names.ts";
import type { Review } from "../network.ts";
import { PODS } from "../person.ts";
import type { World } from "../world.ts";

interface Tried extends Pick<World, "ask"> {
  readonly store: Pick<Store, "get" | "list">;
}

/** Calls `violated` with what differs, in words. */
export function createHeadroomOracle(violated: (what: string) => void) {
  /** The webhook's answer to the eviction that is tried. */
  let answer: { readonly name: string; readonly isAllowed: boolean } | undefined;

  return {
    onReview({ path, sent, status, answer: text }: Pick<Review, "path" | "sent" | "status" | "answer">): void {
      const request = fieldsOf(dig(JSON.parse(sent), "request"));
      if (!EVICTION_PATHS.has(path) || status !== 200 || request["dryRun"] !== true) return;
      const isAllowed = dig(JSON.parse(text), "response", "allowed") === true;
      answer = { name: textOf(request["name"]) ?? "", isAllowed };
    },

    /** Resolves once each zone has been asked about. */
    async look({ store, ask }: Tried, zones: readonly string[]): Promise<void> {
      for (const zone of zones) {
        const allowed = publishedOf(store, zone);
        const pods = store.list("pods", NAMESPACE).filter(({ metadata }) => metadata.labels?.["name"] === zone);
        const name = pods.find((pod) => isTrue(pod, "Ready"))?.metadata.name;
        if (allowed === undefined || name === undefined) continue;
        answer = undefined;
        const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: NAMESPACE } };
        await ask("drainer", "POST", `${PODS}/${name}/eviction?dryRun=All`, eviction);
        if (answerFor(name) === undefined || answerFor(name) === allowed > 0) continue;
        violated(
          `the budget says that ${allowed} evictions of ${zone} are allowed, and one of ${name} is ${allowed > 0 ? "denied" : "allowed"}`,
        );
      }
    },
  };

  function answerFor(name: string): boolean | undefined {
    return answer?.name === name ? answer.isAllowed : undefined;
  }
}

/** How many evictions would be allowed of the zone, by the status of its budget; undefined if it does not say. */
function publishedOf(store: Tried["store"], zone: string): number | undefined {
  const zones = listOf(dig(store.get(BUDGETS, NAMESPACE, BUDGET), "status", "zones"));
  return numberOf(
    dig(
      zones.find((one) => dig(one, "name") === zone),
      "disruptionsAllowed",
    ),
  );
}
