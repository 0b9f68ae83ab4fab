/**
 * The one door to the decisions of a budget: facts in, as the objects that a cluster has; a decision out. Whoever
 * rewrites how they are read, queued and decided has this file to keep, and no case.
 */
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { DisruptionBudget } from "../../../infra/kubernetes/custom-resources.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { PodObject, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { createReserver } from "../../../reconciler/budget/act/reserve.ts";
import type { Verdict } from "../../../reconciler/budget/verdict.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { labelSelector } from "../../emulator/selectors.ts";

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

type Kept = Record<string, readonly { readonly metadata?: { name?: string; labels?: Record<string, string> } }[]>;

export function startProcess(facts: Facts, by = "test"): Process {
  const calls: string[] = [];
  let { now } = facts;
  let kept: Kept = {};
  let sets: readonly StatefulSet[] = [];
  const change = ({ budgets, statefulSets, pods, ...more }: Facts): void => {
    now = more.now;
    sets = statefulSets;
    kept = { zoneawarepoddisruptionbudgets: budgets, statefulsets: statefulSets, pods };
  };
  change(facts);
  const cluster = {
    async *list({ plural }, query) {
      calls.push(`list ${plural}`);
      const matches = labelSelector(query.labelSelector ?? "");
      const items = (kept[plural] ?? []).filter(({ metadata }) => matches(metadata?.labels ?? {}));
      yield { items: structuredClone(items), resourceVersion: "1" };
    },
    async get({ plural }, { name }) {
      calls.push(`get ${plural}`);
      const found = kept[plural]?.find(({ metadata }) => metadata?.name === name);
      if (!found) throw new RolloutError("NotFound", `${plural} ${name}`);
      return structuredClone(found);
    },
    async replace({ plural }, { name, body }) {
      calls.push(`replace ${plural}`);
      kept = {
        ...kept,
        [plural]: (kept[plural] ?? []).map((one) => (one.metadata?.name === name ? (body as object) : one)),
      };
      return body;
    },
  } as Pick<Cluster, "list" | "get" | "replace"> as Cluster;
  const clock = { now: () => now, monotonic: () => now, sleep: async () => {} };
  const reserver = createReserver({ cluster, clock, by, random: () => 0, noteKind: () => {} });
  const time = (): { deadlineAt: number } => ({ deadlineAt: now + 5000 });
  const namespace = facts.budgets[0]?.metadata.namespace ?? "";

  return {
    calls,
    change,
    reserved: () => (kept["zoneawarepoddisruptionbudgets"]?.[0] as DisruptionBudget).status?.disruptedPods ?? {},
    async evict({ pod: name, rollout, dryRun = false, ...asked }) {
      const limit = rollout === undefined ? {} : { rollout: { maxUnavailable: rollout } };
      const result = await reserver.reserve({ namespace, name, dryRun, ...limit, ...asked, ...time() });
      return result.verdict;
    },
    async downscale({ statefulSet, to, forced = false }) {
      const object = sets.find(({ metadata }) => metadata?.name === statefulSet);
      const zone = readZone(object ?? {});
      return (await reserver.reserveDownscale({ zone, to, forced, ...time() })).verdict;
    },
  };
}
