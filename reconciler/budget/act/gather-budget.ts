/**
 * Reads the facts for decisions on evictions: the budgets first, then StatefulSets and pods, so that the write to the
 * budget proves them fresh (§13.1).
 */
import type { Source } from "../../../infra/kubernetes/context.ts";
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import { absent } from "../../../infra/errors.ts";
import { disruptionBudgets, type DisruptionBudget } from "../../../infra/kubernetes/custom-resources.ts";
import { type ObjectMeta, pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { readPod, type Pod } from "../../model/pod.ts";
import { selectorText } from "../../model/label-selector.ts";
import { readZone, type Zone, type ZoneWithPods } from "../../model/zone.ts";
import type { CompilePartition } from "../partition.ts";
import type { StoredBudget } from "../scope.ts";
import { missingPods } from "../unavailability.ts";
import { BUDGET_KIND, parseBudget, selectorOf, type Budget } from "../zpdb.ts";
import { findOrphans, readAll } from "../../snapshot/gather.ts";
import { byName, byOrdinal } from "../../model/order.ts";

/** A budget with the object that it was read from. */
export interface ListedBudget extends StoredBudget {
  readonly object: DisruptionBudget;
}

/** Receives all budgets of a namespace as they were read; undefined if the API server does not know the kind. */
export type OnBudgets = (namespace: string, budgets: readonly ListedBudget[] | undefined) => void;

export interface BudgetSource extends Source {
  /** Keeps compiled patterns from one list to the next; each list compiles them unless given. */
  readonly compilePartition?: CompilePartition;
}

/** All budgets of the namespace ("" for all), valid or not; undefined if the cluster does not know the kind. */
export async function listBudgets(
  namespace: string,
  source: BudgetSource,
  call?: Call,
): Promise<ListedBudget[] | undefined> {
  const query = namespace === "" ? {} : { namespace };
  const read = (object: DisruptionBudget): ListedBudget => readBudget(object, source.compilePartition);
  const list = await readAll({ resource: disruptionBudgets, query, read }, source, call).catch(absent);
  return list?.items;
}

/**
 * Its content is read on its first use: compiling the pattern takes milliseconds, and only one budget of a list
 * decides.
 */
function readBudget({ metadata, ...rest }: DisruptionBudget, compile?: CompilePartition): ListedBudget {
  const object = { ...rest, metadata: withoutNotes(metadata) };
  const { namespace = "", name = "", uid = "" } = metadata;
  let content: ListedBudget["content"] | undefined;
  return {
    ref: { kind: BUDGET_KIND, namespace, name, uid },
    matchLabels: selectorOf(object),
    object,
    get content() {
      // Items of a list may come without their kind.
      return (content ??= parseBudget({ kind: BUDGET_KIND, ...object }, compile));
    },
  };
}

/** What else its metadata has may be large, and a write of the status leaves it as it is. */
function withoutNotes({ namespace, name, uid, resourceVersion, generation }: ObjectMeta): ObjectMeta {
  const known = { namespace, name, uid, resourceVersion, generation };
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined));
}

export interface UnderBudget {
  /** In byte order of their names. */
  readonly zones: readonly ZoneWithPods[];
  /** All pods that the budget selects, of any owner, by name. */
  readonly pods: ReadonlyMap<string, Pod>;
}

/** Up to so many pods are read one by one rather than with a list. */
const MAX_GETS = 5;

/**
 * The StatefulSets and pods under a budget, with two concurrent lists. More is read if pods of a StatefulSet seem to
 * be missing: they may lack the budget's labels. Pods whose StatefulSet is gone, or not under the budget, count as a
 * zone, too (orphans.ts).
 */
export async function gatherUnderBudget(
  { namespace, matchLabels }: Pick<Budget, "namespace" | "matchLabels">,
  source: Source,
  call?: Call,
): Promise<UnderBudget> {
  const query = { namespace, labelSelector: selectorText({ matchLabels }) };
  const [sets, selected] = await Promise.all([
    readAll({ resource: statefulSets, query, read: readZone }, source, call),
    readAll({ resource: pods, query, read: readPod }, source, call),
  ]);
  const byOwner = Map.groupBy(selected.items, ({ owner = "" }) => owner);
  const orphans = await findOrphans(selected.items, sets.items, { ...source, call });
  const left = orphans.filter(({ orphaned }) => orphaned !== "outside");
  const outside = orphans.filter(({ orphaned }) => orphaned === "outside");
  const zones: ZoneWithPods[] = [];
  for (const zone of [...sets.items, ...outside]) {
    const own = (byOwner.get(zone.uid) ?? []).toSorted(byOrdinal);
    const missing = missingPods(zone, own, MAX_GETS + 1);
    const complete = missing.length === 0 ? own : (await readMissing(zone, own, missing)).toSorted(byOrdinal);
    zones.push({ ...zone, pods: complete });
  }
  // Of two zones of one name, the StatefulSet comes first.
  return { zones: [...zones, ...left].toSorted(byName), pods: new Map(selected.items.map((pod) => [pod.name, pod])) };

  async function readMissing(zone: Zone, own: readonly Pod[], missing: readonly string[]): Promise<Pod[]> {
    if (missing.length > MAX_GETS) {
      const all = await readAll(
        { resource: pods, query: { namespace, labelSelector: selectorText(zone.selector) }, read: readPod },
        source,
        call,
      );
      return all.items.filter((pod) => pod.owner === zone.uid);
    }
    const found = await Promise.all(
      missing.map((name) => source.cluster.get(pods, { namespace, name }, call).catch(absent)),
    );
    const more = found.filter((pod) => pod !== undefined).map(readPod);
    return [...own, ...more.filter((pod) => pod.owner === zone.uid)];
  }
}
