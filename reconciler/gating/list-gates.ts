/** Lists the gates. Without their definition the capability is off; gates that cannot be read hold all zones of their namespace. */
import type { Clock } from "../../infra/clock.ts";
import { hasCode } from "../../infra/errors.ts";
import type { Source } from "../../infra/kubernetes/actor.ts";
import { rolloutGates } from "../../infra/kubernetes/resources.ts";
import type { Log } from "../../infra/log.ts";
import { readGate, type Gate } from "../gates/gate.ts";

/** The gates of a namespace ("" for all), or why they could not be read. */
export type GateList = { readonly gates: readonly Gate[] } | { readonly error: unknown };

/** Lists them with one call. Never rejects. */
export type ListGates = (namespace: string, source: Source) => Promise<GateList>;

/** Milliseconds after which a definition that was missing is looked for again. */
const LOOK_AGAIN_MS = 5 * 60_000;
const NONE: GateList = { gates: [] };

export function createGateLister(clock: Pick<Clock, "monotonic">, log: Log): ListGates {
  let missingAt = -Infinity;

  return async (namespace, source) => {
    if (clock.monotonic() - missingAt < LOOK_AGAIN_MS) return NONE;
    try {
      return { gates: await readGates(namespace, source) };
    } catch (error) {
      if (!hasCode(error, "NotFound")) return { error };
      if (missingAt === -Infinity) log.info("there are no gates: the definition rolloutgates.zonewise.dev is not installed");
      missingAt = clock.monotonic();
      return NONE;
    }
  };
}

/** In byte order of their names. */
async function readGates(namespace: string, { cluster, freshness }: Source): Promise<Gate[]> {
  const confirmFresh = freshness.expect(rolloutGates);
  const gates: Gate[] = [];
  for await (const page of cluster.list(rolloutGates, { ...(namespace && { namespace }) })) {
    confirmFresh(page.resourceVersion);
    gates.push(...page.items.map(readGate).filter((gate) => gate !== undefined));
  }
  return gates.toSorted((a, b) => (a.ref.name < b.ref.name ? -1 : 1));
}
