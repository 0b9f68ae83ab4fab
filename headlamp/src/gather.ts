/** Reads the data that the plugin shows of one cluster, each part separately. */
import { explainError } from "../../cli/decide/explain-error.ts";
import { createSettings, CRON_JOB, HOME, type ReadSettings } from "../../cli/gather/settings.ts";
import { findPlaces, gatherTicking } from "../../cli/gather/ticking.ts";
import type { Phased } from "../../cli/decide/explain-phased.ts";
import {
  describeLease,
  eachNamespace,
  type Focus,
  gatherRecords,
  listAll,
  readParts,
} from "../../functions/status/gather.ts";
import type { ReconcilerRecord } from "../../functions/status/view/records.ts";
import type { Clock } from "../../infra/clock.ts";
import { absent } from "../../infra/errors.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import { nodeUpdatePolicies, rolloutGates } from "../../infra/kubernetes/custom-resources.ts";
import { createFreshness } from "../../infra/kubernetes/freshness.ts";
import { leases } from "../../infra/kubernetes/resources.ts";
import { type Gate, readGate } from "../../reconciler/gates/gate.ts";
import { readPolicy } from "../../reconciler/nodes/policy.ts";
import { gatherRollouts } from "../../reconciler/phased/act/gather-rollouts.ts";
import { notKnown, type NoTick } from "../../reconciler/report/ticking.ts";
import { type ClusterRecords, NOTHING_READ } from "./records.ts";

export interface ReadOptions {
  /** A port for one reading. */
  readonly open: () => Cluster;
  /** Its `now` is the cluster's. */
  readonly clock: Clock;
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
}

/** Milliseconds for which the places and the settings of installations count as known. */
const KNOWN_MS = 60_000;

interface Places {
  readonly readAt: number;
  /** The namespaces, or the reason why there are none. */
  readonly namespaces: readonly string[] | string;
  readonly settings: ReadSettings;
}

/**
 * Resolves with the records; a part that cannot be read has its last known records. Never rejects. `focus`: a group
 * that is shown alone.
 */
export function createReading({ open, clock, namespaces }: ReadOptions): (focus: Focus) => Promise<ClusterRecords> {
  let earlier = NOTHING_READ;
  let places: Places | undefined;

  async function findInstallations(): Promise<Places> {
    if (places && clock.monotonic() - places.readAt < KNOWN_MS) return places;
    const cluster = open();
    const found = namespaces.includes("") ? await findPlaces({ cluster, clock, namespace: "" }) : namespaces;
    const fresh = { readAt: clock.monotonic(), namespaces: found, settings: createSettings({ cluster }) };
    if (typeof found !== "string") places = fresh;
    return fresh;
  }

  return async (focus) => {
    const cluster = open();
    const more: string[] = [];
    const part = readParts(more, describeError);
    const each = eachNamespace(namespaces, part);
    const noTicks: NoTick[] = [];
    const reconciler = async (): Promise<ReconcilerRecord> => {
      const found = await readReconcilers({ cluster, clock }, await findInstallations());
      noTicks.push(...found.noTicks.slice(1));
      return found.record;
    };
    const [page, gates, phased, policies] = await Promise.all([
      gatherRecords({ cluster, now: clock.now, namespaces, reconciler, describe: describeError }, focus, earlier.page),
      each("the gates", readGates(cluster), { items: earlier.gates, namespaceOf: ({ ref }) => ref.namespace }),
      each("the PhasedRollouts", readPhased({ cluster, clock }), {
        items: earlier.phased,
        namespaceOf: ({ rollout }) => rollout.namespace,
      }),
      part("the node update policies", readPolicies(cluster), earlier.policies),
    ]);
    const problems = [...noTicks.map(sayNoTick), ...page.problems, ...more];
    const asAdvised = problems.some((problem) => problem.includes(IN_ALL)) ? [...problems, ADVICE] : problems;
    earlier = { page: { ...page, problems: asAdvised }, gates: gates.items, phased: phased.items, policies };
    return earlier;
  };
}

/** The words of `explainError` for a list of all namespaces that is not permitted. */
const IN_ALL = "in the whole cluster";
const ADVICE =
  "With rights in some namespaces alone, choose these in Headlamp's namespace filter, or as allowed namespaces in its settings of the cluster.";

function describeError(error: unknown): string {
  const { message, hint } = explainError(error);
  return hint === undefined ? message : `${message}: ${hint}`;
}

const sayNoTick = ({ message, remedy }: NoTick): string => `Reconciler: ${message}. ${remedy}`;

type Reader = Pick<ReadOptions, "clock"> & { readonly cluster: Cluster };

interface Reconcilers {
  /** The reconciler that has not ticked for the longest time, with the first of `noTicks`. */
  readonly record: ReconcilerRecord;
  /** Reconcilers that do not tick come first. */
  readonly noTicks: readonly NoTick[];
}

async function readReconcilers({ cluster, clock }: Reader, { namespaces, settings }: Places): Promise<Reconcilers> {
  if (typeof namespaces === "string") {
    const noTick = notKnown({ namespace: HOME, lease: CRON_JOB }, namespaces);
    return { record: { noTick }, noTicks: [noTick] };
  }
  const found = await gatherTicking({ cluster, clock, namespace: "", settings }, namespaces);
  const noTicks = found.toSorted((a, b) => rankOf(a) - rankOf(b));
  const records = await readLeases(cluster, await Promise.all(namespaces.map((namespace) => settings(namespace))));
  const [record = {}] = records.toSorted((a, b) => ((a.lastTick ?? "") < (b.lastTick ?? "") ? -1 : 1));
  const [noTick] = noTicks;
  return { record: { ...record, ...(noTick && { noTick }) }, noTicks };
}

const rankOf = ({ state }: NoTick): number => (state === "stopped" ? 0 : 1);

type Installed = Awaited<ReturnType<ReadSettings>>;

/** `gatherTicking` reports the Leases that cannot be read. */
async function readLeases(cluster: Cluster, installed: readonly Installed[]): Promise<readonly ReconcilerRecord[]> {
  const keys = installed.flatMap(({ homes, lease }) => homes.map((home) => `${home}/${lease}`));
  const found = await Promise.all(
    [...new Set(keys)].map(async (key) => {
      const [namespace = "", name = ""] = key.split("/");
      return namespace === "" ? undefined : await cluster.get(leases, { namespace, name }).catch(() => undefined);
    }),
  );
  return found.flatMap((lease) => (lease ? [describeLease(lease)] : []));
}

const readGates =
  (cluster: Cluster) =>
  async (namespace: string): Promise<readonly Gate[] | undefined> => {
    const found = await listAll({ cluster, namespaces: [namespace] }, rolloutGates).catch(absent);
    return found?.flatMap((gate) => readGate(gate) ?? []);
  };

/** The default is enough: the meaning of a check's answer is not shown. */
const readPhased =
  ({ cluster, clock }: Reader) =>
  async (namespace: string): Promise<readonly Phased[] | undefined> => {
    const freshness = createFreshness(clock, { warn: () => {} });
    return (await gatherRollouts(namespace, "NoData", { cluster, freshness }).catch(absent))?.rollouts;
  };

async function readPolicies(cluster: Cluster): Promise<ClusterRecords["policies"]> {
  const found = await collect(cluster.list(nodeUpdatePolicies, {})).catch(absent);
  return found?.map(readPolicy);
}
