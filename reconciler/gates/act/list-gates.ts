/** Lists the gates. Without their definition the capability is off; gates that cannot be read hold all zones of their namespace. */
import type { Clock } from "../../../infra/clock.ts";
import { hasCode } from "../../../infra/errors.ts";
import type { Source } from "../../../infra/kubernetes/actor.ts";
import { rolloutGates } from "../../../infra/kubernetes/resources.ts";
import type { Log } from "../../../infra/log.ts";
import { readAll } from "../../snapshot/gather.ts";
import { readGate, type Gate } from "../gate.ts";
import { byName } from "../../model/order.ts";

/** The gates of a namespace ("" for all), or why they could not be read. */
export type GateList = { readonly gates: readonly Gate[] } | { readonly error: unknown };

/** Lists them with one call. Never rejects. */
export type ListGates = (namespace: string, source: Source) => Promise<GateList>;

/** Milliseconds after which a definition that was missing is looked for again. */
const LOOK_AGAIN_MS = 10_000;
const NONE: GateList = { gates: [] };

export function createGateLister(clock: Pick<Clock, "monotonic">, log: Log): ListGates {
  let missingAt = -Infinity;

  return async (namespace, source) => {
    if (clock.monotonic() - missingAt < LOOK_AGAIN_MS) return NONE;
    try {
      return { gates: await readGates(namespace, source) };
    } catch (error) {
      if (!hasCode(error, "NotFound")) return { error };
      if (missingAt === -Infinity) log.info("gates are off: the definition rolloutgates.zonewise.dev is not installed");
      missingAt = clock.monotonic();
      return NONE;
    }
  };
}

/** In byte order of their names. */
async function readGates(namespace: string, source: Source): Promise<Gate[]> {
  const { items } = await readAll({ resource: rolloutGates, query: { ...(namespace && { namespace }) }, read: readGate }, source);
  return items.filter((gate) => gate !== undefined).toSorted((a, b) => byName(a.ref, b.ref));
}
