/**
 * Lists the gates. Without their definition the capability is off; gates that cannot be read hold all zones of their
 * namespace.
 */
import type { Clock } from "../../../infra/clock.ts";
import type { Source } from "../../../infra/kubernetes/context.ts";
import { createOptionalKind } from "../../../infra/kubernetes/optional-kind.ts";
import { rolloutGates } from "../../../infra/kubernetes/custom-resources.ts";
import type { Log } from "../../../infra/log.ts";
import { readAll } from "../../snapshot/gather.ts";
import { readGate, type Gate } from "../gate.ts";
import { byName } from "../../model/order.ts";

/** The gates of a namespace ("" for all), or why they could not be read. */
export type GateList = { readonly gates: readonly Gate[] } | { readonly error: unknown };

/** Lists them with one call. Never rejects. */
type ListGates = (namespace: string, source: Source) => Promise<GateList>;

/** Milliseconds after which a definition that was missing is looked for again. */
const READ_AGAIN_MS = 10_000;

export function createGateLister(clock: Pick<Clock, "monotonic">, log: Log): ListGates {
  const kind = createOptionalKind(
    { capability: "gates", definition: "the definition rolloutgates.zonewise.dev", againAfterMs: READ_AGAIN_MS },
    { clock, log },
  );
  return async (namespace, source) => {
    try {
      return { gates: (await kind.read(() => readGates(namespace, source))) ?? [] };
    } catch (error) {
      return { error };
    }
  };
}

/** In byte order of their names. */
async function readGates(namespace: string, source: Source): Promise<Gate[]> {
  const { items } = await readAll(
    { resource: rolloutGates, query: { ...(namespace && { namespace }) }, read: readGate },
    source,
  );
  return items.filter((gate) => gate !== undefined).toSorted((a, b) => byName(a.ref, b.ref));
}
