/**
 * The one door to the decisions of a budget: facts in, as the objects that a cluster has; a decision out. Whoever
 * rewrites how they are read, queued and decided has this file to keep, and no case.
 */
import type { DisruptionBudget } from "../../../infra/kubernetes/custom-resources.ts";
import type { PodObject, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { createReserver } from "../../../reconciler/budget/act/reserve.ts";
import type { Verdict } from "../../../reconciler/budget/verdict.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { keepObjects, type Objects } from "../kept-objects.ts";

/** All objects are in one namespace. */
export interface Facts {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** With what is reserved on them. */
  readonly budgets: readonly DisruptionBudget[];
  readonly statefulSets: readonly StatefulSet[];
  readonly pods: readonly PodObject[];
}

export interface AskedEviction {
  /** The name of the pod. */
  readonly pod: string;
  /** The rollout asks, with so many pods of a zone at once. */
  readonly rollout?: number | undefined;
  readonly unpinned?: boolean | undefined;
  readonly uid?: string | undefined;
  readonly dryRun?: boolean | undefined;
}

interface AskedDownscale {
  readonly statefulSet: string;
  readonly to: number;
  readonly forced?: boolean | undefined;
}

/** A process on objects that change only between its decisions, or as it writes them. */
interface Process {
  /** As the webhook does, or the rollout. */
  readonly evict: (asked: AskedEviction) => Promise<Verdict>;
  readonly downscale: (asked: AskedDownscale) => Promise<Verdict>;
  /** Puts others in the place of all objects, as if time had passed. */
  readonly change: (facts: Facts) => void;
  /** What is reserved on the first budget. */
  readonly reserved: () => object;
  /** Calls to the API server, such as `list pods`. */
  readonly calls: readonly string[];
}

const BUDGETS = "zoneawarepoddisruptionbudgets";

const objectsOf = ({ budgets, statefulSets, pods }: Facts): Objects => ({
  [BUDGETS]: budgets,
  statefulsets: statefulSets,
  pods,
});

export function startProcess(facts: Facts, by = "test"): Process {
  let { now } = facts;
  const { cluster, calls, get, change } = keepObjects(objectsOf(facts));
  const clock = { now: () => now, monotonic: () => now, sleep: async () => {} };
  const reserver = createReserver({ cluster, clock, by, random: () => 0, noteKind: () => {} });
  const time = (): { deadlineAt: number } => ({ deadlineAt: now + 5000 });
  const namespace = facts.budgets[0]?.metadata.namespace ?? "";

  return {
    calls,
    change: (next) => {
      ({ now } = next);
      change(objectsOf(next));
    },
    reserved: () => {
      const budget = get(BUDGETS, facts.budgets[0]?.metadata.name ?? "") as DisruptionBudget | undefined;
      return budget?.status?.disruptedPods ?? {};
    },
    async evict({ pod: name, rollout, dryRun = false, ...asked }) {
      const limit = rollout === undefined ? {} : { rollout: { maxUnavailable: rollout } };
      const result = await reserver.reserve({ namespace, name, dryRun, ...limit, ...asked, ...time() });
      return result.verdict;
    },
    async downscale({ statefulSet, to, forced = false }) {
      const zone = readZone(get("statefulsets", statefulSet) ?? {});
      return (await reserver.reserveDownscale({ zone, to, forced, ...time() })).verdict;
    },
  };
}
