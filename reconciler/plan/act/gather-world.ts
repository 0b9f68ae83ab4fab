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

/** The configuration of the reconciler that serves the group. */
interface WorldSettings extends Pick<World, "clusterDomain"> {
  /** Name of the ConfigMap that records when zones were scaled down. */
  readonly zoneTracker: string;
}

const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Rejects with the error of the API server. A group without zones has a world without zones. */
export async function gatherWorld(
  { namespace, group }: Pick<Zone, "namespace" | "group">,
  reader: WorldReader,
  read: (zones: readonly Zone[]) => Promise<WorldSettings>,
): Promise<World> {
  const grouped = await gatherGroupZones({ namespace, group }, reader);
  const { clusterDomain, zoneTracker } = await read(grouped);
  const { zones, orphans } = await gatherGroup(grouped, reader);
  const [budgets, gates, { tracked }, references] = await Promise.all([
    gatherBudgets(namespace, zones, reader),
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
    clusterDomain,
    now: reader.clock.now(),
  };
  return { ...world, preparedAt: new Map(), readyMs: estimateReadyMs(zones) };
}

async function gatherBudgets(
  namespace: string,
  zones: readonly ZoneWithPods[],
  reader: WorldReader,
): Promise<WorldBudget[]> {
  const budgets = await listBudgets(namespace, reader);
  return await Promise.all(budgets.map((budget) => readBudget(budget, zones, reader)));
}

/** Only a budget that selects pods of the group is read whole. */
async function readBudget(
  budget: ListedBudget,
  zones: readonly ZoneWithPods[],
  reader: WorldReader,
): Promise<WorldBudget> {
  const { object, content } = budget;
  const selects = zones.some(({ labels, pods }) =>
    [{ labels }, ...pods].some((one) => selectsLabels(budget, one.labels)),
  );
  if (!selects || "problem" in content)
    return { ...budget, reservations: readReservations(object.status?.disruptedPods), others: [] };
  const { reservations } = await openReservationStore(reader.cluster, object, {});
  const own = new Set(zones.map(({ uid }) => uid));
  const under = await gatherUnderBudget(content, reader);
  return { ...budget, reservations, others: under.zones.filter(({ uid }) => !own.has(uid)) };
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
