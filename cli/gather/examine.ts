/**
 * Reads the objects that `zonewise doctor` checks. An object that the caller may not read becomes a finding, and the
 * rest is checked.
 */
import { absent, hasCode } from "../../infra/errors.ts";
import { phasedRollouts, rolloutGates } from "../../infra/kubernetes/custom-resources.ts";
import {
  definitions,
  mutatingWebhooks,
  type ObjectMeta,
  podDisruptionBudgets,
  statefulSets,
  validatingWebhooks,
  type Resource,
} from "../../infra/kubernetes/resources.ts";
import { listBudgets } from "../../reconciler/budget/act/budget-store.ts";
import type { StoredBudget } from "../../reconciler/budget/zpdb.ts";
import { readGate } from "../../reconciler/gates/gate.ts";
import { groupKey, readZone } from "../../reconciler/model/zone.ts";
import { gatherRollouts } from "../../reconciler/phased/act/gather-rollouts.ts";
import { readTarget } from "../../reconciler/phased/target.ts";
import { readOriginal } from "../../reconciler/report/act/read-ticking.ts";
import { isGrouped } from "../../reconciler/remedies/leader.ts";
import { concerns, type NoTick, ORIGINAL } from "../../reconciler/report/ticking.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { diagnose } from "../decide/doctor/checks.ts";
import type { Finding, Found, Keyed, StoredZone } from "../decide/doctor/facts.ts";
import { DEFINED_KINDS, SHARED_DEFINITIONS } from "../decide/doctor/installation.ts";
import { explainError } from "../decide/explain-error.ts";
import type { Session } from "../session.ts";
import { createGuards } from "./guard.ts";
import { gatherOrphanedGroups } from "./groups.ts";

async function listAll<T>(session: Session, resource: Resource<T>, isClusterWide = false): Promise<T[]> {
  const query = isClusterWide || session.namespace === "" ? {} : { namespace: session.namespace };
  return (await readAll({ resource, query, read: (object: T) => object }, session)).items;
}

const listDefined = async <T>(session: Session, resource: Resource<T>): Promise<T[]> =>
  (await listAll(session, resource).catch(absent)) ?? [];

/** Asks in each namespace with a budget once whether the webhook judges evictions. */
async function gatherGuards(session: Session, budgets: readonly StoredBudget[]): Promise<Found["guards"]> {
  const guards = createGuards(session);
  const selecting = budgets.filter(({ matchLabels }) => matchLabels);
  return await Promise.all(
    selecting.map(async ({ ref }) => ({ budget: ref.name, guard: await guards(ref.namespace) })),
  );
}

async function gatherMissingKinds({ cluster }: Session): Promise<Found["missingKinds"]> {
  const isMissing = await Promise.all(
    DEFINED_KINDS.map(async ({ group, kind }) => (await cluster.discover(group, kind)).length === 0),
  );
  return DEFINED_KINDS.filter((_, i) => isMissing[i]);
}

async function gatherDefinitions({ cluster }: Session): Promise<Found["definitions"]> {
  const found = SHARED_DEFINITIONS.map(async (name) => await cluster.get(definitions, { name }).catch(absent));
  return (await Promise.all(found)).filter((one) => one !== undefined);
}

async function gatherOrphansOf(session: Session, sets: readonly StoredZone[]): Promise<Found["orphans"]> {
  const zones = sets.map(({ zone }) => zone).filter(isGrouped);
  const living = [...Map.groupBy(zones, groupKey).values()].flatMap((own) =>
    own.slice(0, 1).map(({ namespace, group }) => ({ namespace, group, zones: own, status: undefined, generation: 0 })),
  );
  const found = await gatherOrphanedGroups(living, session);
  return found.flatMap(({ group, orphans = [] }) => orphans.map((zone) => ({ group, zone })));
}

const keysOf =
  (kind: string) =>
  ({ metadata: { namespace = "", name = "", labels = {}, annotations = {} } = {} }: Described): Keyed => ({
    kind,
    namespace,
    name,
    keys: { label: Object.keys(labels), annotation: Object.keys(annotations) },
  });

type Described = { readonly metadata?: ObjectMeta | undefined };

const keysOfZone = ({ object, zone: { problems } }: StoredZone): Keyed => ({
  ...keysOf("statefulset")(object),
  problems,
});

/** What protects the pods of these StatefulSets, or replaces them. */
async function gatherUsers(session: Session, objects: readonly StoredZone[], tell: Tell): Promise<Partial<Found>> {
  const noBudgets = "PodDisruptionBudgets, and groups without a budget";
  const [budgets, others, orphans, gates, guarded] = await Promise.all([
    tell("disruption budgets, and groups without one", listBudgets(session.namespace, session), undefined),
    tell(noBudgets, listAll(session, podDisruptionBudgets), undefined),
    tell("pods that StatefulSets have left behind", gatherOrphansOf(session, objects), []),
    tell("gates", listDefined(session, rolloutGates), []),
    tell("PhasedRollouts", listDefined(session, phasedRollouts), undefined),
  ]);
  const [guards, phased] = await Promise.all([
    gatherGuards(session, budgets ?? []),
    guarded?.length ? gatherRollouts(session.namespace, "NoData", session) : { rollouts: [] },
  ]);
  return {
    budgets: budgets ?? [],
    guards,
    // A group that no PodDisruptionBudget guards may have a budget that could not be read.
    others: budgets && others,
    orphans,
    phased: phased.rollouts,
    // A PhasedRollout that could not be read may exist.
    claimed: guarded ? objects.map(({ object }) => readTarget(object)).filter(({ owner }) => owner !== undefined) : [],
    gates: gates.flatMap((gate) => readGate(gate) ?? []),
    keyed: [
      ...objects.map(keysOfZone),
      ...gates.map(keysOf("rolloutgate")),
      ...(guarded ?? []).map(keysOf("phasedrollout")),
    ],
  };
}

/** Resolves with `otherwise` if the caller may not read it, which becomes a finding. Rejects with any other error. */
type Tell = <T, U>(subject: string, read: Promise<T>, otherwise: U) => Promise<T | U>;

/** All findings. Rejects with the error of the API server. */
export async function examine(session: Session, noTicks: readonly NoTick[]): Promise<Finding[]> {
  const unread: Found["unread"][number][] = [];
  const tell: Tell = async (subject, read, otherwise) => {
    try {
      return await read;
    } catch (error) {
      if (!hasCode(error, "Forbidden")) throw error;
      const { message, hint: fix = "run the command again" } = explainError(error);
      unread.push({ object: "you", message: `${message}: not checked: ${subject}`, fix });
      return otherwise;
    }
  };
  const subject = "StatefulSets, and what protects or replaces their pods";
  const found = await tell(subject, listAll(session, statefulSets), undefined);
  const sets = (found ?? []).map((object) => ({ object, zone: readZone(object) }));
  const common = { unread, sets, keyed: sets.map(keysOfZone), now: session.clock.now() };
  const hooks = [validatingWebhooks, mutatingWebhooks].map(async (resource) => await listAll(session, resource, true));
  const [originals, webhooks, missingKinds, owned, users] = await Promise.all([
    gatherOriginals(session, { sets, noTicks, tell }),
    tell("webhook configurations", Promise.all(hooks), []),
    tell("definitions", gatherMissingKinds(session), []),
    tell("owners of definitions", gatherDefinitions(session), []),
    found && gatherUsers(session, sets, tell),
  ]);
  return diagnose({
    ...common,
    noTicks,
    originals,
    webhooks: webhooks.flat(),
    missingKinds,
    definitions: owned,
    ...users,
  });
}

interface Served {
  readonly sets: readonly StoredZone[];
  readonly noTicks: readonly NoTick[];
  readonly tell: Tell;
}

/** The namespaces that the original serves beside our reconciler: where that is stopped, it says so itself. */
async function gatherOriginals({ cluster, namespace }: Session, { sets, noTicks, tell }: Served): Promise<string[]> {
  const zones = sets.map(({ zone }) => zone).filter(isGrouped);
  const places = namespace === "" ? [...new Set(zones.map((zone) => zone.namespace))] : [namespace];
  const stopped = noTicks.filter(({ state }) => state === "stopped");
  const asked = places.filter((place) => !stopped.some((one) => concerns(one, place)));
  const found = asked.map(async (place) => {
    const reading = readOriginal({ cluster, namespace: place });
    return (await tell(`${ORIGINAL} in namespace ${place}`, reading, false)) ? [place] : [];
  });
  return (await Promise.all(found)).flat();
}
