/** Reads a group with all that a tick looks at, to look ahead of it. Pods are not called, and nothing is written. */
import { messageOf } from "../../infra/errors.ts";
import { pods } from "../../infra/kubernetes/resources.ts";
import { readBudgetPod, type BudgetZone } from "../../reconciler/budget/budget-pod.ts";
import { readReservations } from "../../reconciler/budget/reservation.ts";
import { matchesLabels } from "../../reconciler/budget/selector.ts";
import { gatherGroupZones, readAll } from "../../reconciler/snapshot/gather.ts";
import { createGateLister } from "../../reconciler/gates/act/list-gates.ts";
import type { Gate } from "../../reconciler/gates/gate.ts";
import { byOrdinal } from "../../reconciler/model/order.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { gatherUnderBudget, listBudgets, type ListedBudget } from "../../reconciler/budget/act/gather-budget.ts";
import { openReservationStore } from "../../reconciler/budget/act/reservation-store.ts";
import { gatherTimes } from "../../reconciler/scaling/act/gather-scaling.ts";
import { createReferences } from "../../reconciler/scaling/act/references.ts";
import type { ReferenceReading } from "../../reconciler/scaling/snapshot.ts";
import { estimateReadyMs, type World, type WorldBudget } from "../../reconciler/plan/world.ts";
import type { Session } from "../session.ts";
import type { Settings } from "./settings.ts";

type Reader = Pick<Session, "cluster" | "freshness" | "clock" | "settings" | "io">;

const describeAssumed = ({ zoneTracker, assumed }: Settings): string =>
  `note: zone tracker ${zoneTracker} is assumed, the default: ${assumed}\n`;

const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Rejects with the error of the API server. A group without zones has a world without zones. */
export async function gatherWorld(
  { namespace, group }: Pick<Zone, "namespace" | "group">,
  reader: Reader,
): Promise<World> {
  const [grouped, settings] = await Promise.all([
    gatherGroupZones({ namespace, group }, reader),
    reader.settings(namespace),
  ]);
  const zones = await Promise.all(grouped.map((zone) => readPods(zone, reader)));
  const [budgets, gates, { tracked }, references] = await Promise.all([
    gatherBudgets(namespace, zones, reader),
    gatherGates(namespace, group, reader),
    gatherTimes(zones, needsTimes(zones), { ...reader, zoneTracker: settings.zoneTracker }),
    gatherReferences(zones, reader),
  ]);
  if (settings.assumed !== undefined && needsTimes(zones)) reader.io.warn(describeAssumed(settings));
  const { clusterDomain } = settings;
  const world = {
    namespace,
    group,
    zones,
    budgets,
    gates,
    tracked,
    references,
    clusterDomain,
    now: reader.clock.now(),
  };
  return { ...world, preparedAt: new Map(), readyMs: estimateReadyMs(zones) };
}

async function readPods(zone: Zone, reader: Reader): Promise<BudgetZone> {
  const query = { namespace: zone.namespace, labelSelector: zone.selector };
  const { items } = await readAll({ resource: pods, query, read: readBudgetPod }, reader);
  return { ...zone, pods: items.filter(({ owner }) => owner === zone.uid).toSorted(byOrdinal) };
}

async function gatherBudgets(namespace: string, zones: readonly BudgetZone[], reader: Reader): Promise<WorldBudget[]> {
  const budgets = (await listBudgets(namespace, reader)) ?? [];
  return await Promise.all(budgets.map((budget) => readBudget(budget, zones, reader)));
}

/** Only a budget that selects pods of the group is read whole. */
async function readBudget(budget: ListedBudget, zones: readonly BudgetZone[], reader: Reader): Promise<WorldBudget> {
  const { object, content, matchLabels } = budget;
  const selects =
    matchLabels &&
    zones.some(({ labels, pods }) => [{ labels }, ...pods].some((one) => matchesLabels(matchLabels, one.labels)));
  if (!selects || "problem" in content)
    return { ...budget, reservations: readReservations(object.status?.disruptedPods), others: [] };
  const { reservations } = await openReservationStore(reader.cluster, object, {});
  const own = new Set(zones.map(({ uid }) => uid));
  const under = await gatherUnderBudget(content, reader);
  return { ...budget, reservations, others: under.zones.filter(({ uid }) => !own.has(uid)) };
}

async function gatherGates(namespace: string, group: string, reader: Reader): Promise<readonly Gate[]> {
  const list = await createGateLister(reader.clock, QUIET)(namespace, reader);
  if ("error" in list) throw list.error;
  return list.gates.filter((gate) => gate.group === group);
}

const needsTimes = (zones: readonly Zone[]): boolean =>
  zones.some(({ scaling }) => scaling.leader !== undefined || scaling.mirror !== undefined);

async function gatherReferences(
  zones: readonly Zone[],
  { cluster }: Reader,
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
