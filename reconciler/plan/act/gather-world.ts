/** Reads a group with all that a tick reads, to look ahead. Pods are not called, and nothing is written. */
import type { Clock } from "../../../infra/clock.ts";
import { messageOf } from "../../../infra/errors.ts";
import type { Source } from "../../../infra/kubernetes/context.ts";
import type { Zone, ZoneWithPods } from "../../model/zone.ts";
import { readReservations } from "../../budget/reservation.ts";
import { selectsLabels } from "../../budget/zpdb.ts";
import { gatherGroup, gatherGroupZones } from "../../snapshot/gather.ts";
import { createGateLister } from "../../gates/act/list-gates.ts";
import type { Gate } from "../../gates/gate.ts";
import {
  gatherUnderBudget,
  listBudgets,
  type ListedBudget,
  openReservationStore,
} from "../../budget/act/budget-store.ts";
import { gatherTimes, createReferences } from "../../scaling/act/gather-scaling.ts";
import type { ReferenceReading } from "../../scaling/snapshot.ts";
import { estimateReadyMs, type World, type WorldBudget } from "../world.ts";

interface WorldReader extends Source {
  readonly clock: Clock;
}

const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/**
 * Rejects with the error of the API server. A group without zones has a world without zones. `findTracker` resolves with
 * the name of the ConfigMap that records when zones were scaled down.
 */
export async function gatherWorld(
  { namespace, group }: Pick<Zone, "namespace" | "group">,
  reader: WorldReader,
  findTracker: (zones: readonly Zone[]) => Promise<string>,
): Promise<World> {
  const grouped = await gatherGroupZones({ namespace, group }, reader);
  const zoneTracker = await findTracker(grouped);
  const { zones, orphans } = await gatherGroup(grouped, reader);
  const [budgets, gates, { tracked }, references] = await Promise.all([
    gatherBudgets(namespace, reader, { isWanted: (budget) => selectsOf(budget, zones), own: zones }),
    gatherGates(namespace, group, reader),
    gatherTimes(zones, needsTimes(zones), { ...reader, zoneTracker }),
    gatherReferences(zones, reader),
  ]);
  const world = {
    namespace,
    group,
    zones,
    ...(orphans && { orphans }),
    budgets,
    gates,
    tracked,
    references,
    now: reader.clock.now(),
  };
  return { ...world, preparedAt: new Map(), readyMs: estimateReadyMs(zones) };
}

const selectsOf = (budget: ListedBudget, zones: readonly ZoneWithPods[]): boolean =>
  zones.some(({ labels, pods }) => [{ labels }, ...pods].some((one) => selectsLabels(budget, one.labels)));

interface Wanted {
  readonly isWanted: (budget: ListedBudget) => boolean;
  /** Zones of the world, which are not among the others of a budget. */
  readonly own?: readonly Zone[];
}

/** The budgets of a namespace: only those that are wanted are read whole. */
export async function gatherBudgets(
  namespace: string,
  reader: WorldReader,
  { isWanted, own = [] }: Wanted,
): Promise<WorldBudget[]> {
  const known = new Set(own.map(({ uid }) => uid));
  const read = async (budget: ListedBudget): Promise<WorldBudget> => {
    const { object, content } = budget;
    if (!isWanted(budget) || "problem" in content)
      return { ...budget, reservations: readReservations(object.status?.disruptedPods), others: [] };
    const { reservations } = await openReservationStore(reader.cluster, object, {});
    const { zones } = await gatherUnderBudget(content, reader);
    return { ...budget, reservations, others: zones.filter(({ uid }) => !known.has(uid)) };
  };
  return await Promise.all((await listBudgets(namespace, reader)).map(read));
}

async function gatherGates(namespace: string, group: string, reader: WorldReader): Promise<readonly Gate[]> {
  const list = await createGateLister(reader.clock, QUIET)(namespace, reader);
  if ("error" in list) throw list.error;
  return list.gates.filter((gate) => gate.group === group);
}

/** True if a decision about the zones depends on when they were last scaled down. */
export const needsTimes = (zones: readonly Zone[]): boolean =>
  zones.some(({ scaling }) => scaling.leader !== undefined || scaling.mirror !== undefined);

async function gatherReferences(
  zones: readonly Zone[],
  { cluster }: WorldReader,
): Promise<ReadonlyMap<string, ReferenceReading>> {
  const { read } = createReferences(cluster);
  const readings = zones.map(async ({ uid, namespace, scaling: { mirror } }) => {
    if (!mirror) return [];
    const reading = await read(namespace, mirror).catch((error: unknown): ReferenceReading => ({
      unreadable: messageOf(error),
    }));
    return [[uid, reading] as const];
  });
  return new Map((await Promise.all(readings)).flat());
}
