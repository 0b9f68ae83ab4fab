/** Reads the PhasedRollouts, gates and node updates that `zonewise doctor` examines. */
import type { Phased } from "../decide/explain-phased.ts";
import { absent } from "../../infra/errors.ts";
import { phasedRollouts, rolloutGates } from "../../infra/kubernetes/custom-resources.ts";
import { mutatingWebhooks, type ObjectMeta, statefulSets, type Resource } from "../../infra/kubernetes/resources.ts";
import { gatherZones, readAll } from "../../reconciler/snapshot/gather.ts";
import { readGate, type Gate } from "../../reconciler/gates/gate.ts";
import { gatherRollouts } from "../../reconciler/phased/act/gather-rollouts.ts";
import { readTarget } from "../../reconciler/phased/target.ts";
import { type Finding, runChecks } from "../decide/doctor/check.ts";
import { type Keyed, KEY_CHECKS } from "../decide/doctor/keys.ts";
import { GATES, listSecrets, PHASED, type PhasedFacts, POLICIES, rightOf, SECRETS } from "../decide/doctor/rollouts.ts";
import type { Session } from "../session.ts";
import { gatherPolicies } from "./node-update.ts";
import { findDenied } from "./denied-rights.ts";

const RAISES = /^raise-partition\b/;

interface Selecting {
  readonly namespaceSelector?: { readonly matchLabels?: Readonly<Record<string, string>> };
}

/** A policy, or a webhook configuration. */
interface Guard {
  readonly metadata?: { readonly name?: string };
  readonly spec?: { readonly matchConstraints?: Selecting };
  readonly webhooks?: readonly Selecting[];
}

const mutatingPolicies: Resource<Guard> = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  plural: "mutatingadmissionpolicies",
};

/** The only namespace that it guards; `undefined` if it selects namespaces in another way. */
function placeOf({ spec, webhooks = [] }: Guard): string | undefined {
  const { namespaceSelector } = spec?.matchConstraints ?? webhooks[0] ?? {};
  return namespaceSelector?.matchLabels?.["kubernetes.io/metadata.name"];
}

/**
 * Tells in which namespaces admission raises partitions: the policy or webhook of another namespace raises none here.
 */
async function gatherGuards(session: Session): Promise<(namespace: string) => boolean> {
  const read = (guard: Guard): Guard => guard;
  const lists = await Promise.all(
    [mutatingPolicies, mutatingWebhooks as Resource<Guard>].map((resource) =>
      readAll({ resource, query: {}, read }, session).catch(absent),
    ),
  );
  const guards = lists.flatMap((list) => list?.items ?? []).filter(({ metadata }) => RAISES.test(metadata?.name ?? ""));
  const places = new Set(guards.map(placeOf));
  return (namespace) => places.has(namespace) || places.has(undefined);
}

async function gatherGates(session: Session): Promise<readonly Gate[]> {
  const query = session.namespace === "" ? {} : { namespace: session.namespace };
  const list = await readAll({ resource: rolloutGates, query, read: readGate }, session).catch(absent);
  return (list?.items ?? []).filter((gate) => gate !== undefined);
}

async function gather(session: Session): Promise<[phased: readonly Phased[], gates: readonly Gate[]]> {
  const finding = gatherRollouts(session.namespace, "NoData", session).catch(absent);
  const [phased, gates] = await Promise.all([finding, gatherGates(session)]);
  return [phased?.rollouts ?? [], gates];
}

export async function examineRollouts(session: Session): Promise<Finding[]> {
  const [phased, gates] = await gather(session);
  const { groups } = await gatherZones([session.namespace], session);
  const isGuarded = phased.length === 0 ? () => true : await gatherGuards(session);
  return [
    ...runChecks(PHASED, { phased, isGuarded, ...(await gatherTargets(session)) }),
    ...runChecks(GATES, { gates, groups, now: session.clock.now() }),
    ...runChecks(KEY_CHECKS, await gatherKeyed(session)),
  ];
}

/** Gates and PhasedRollouts with their annotations. */
async function gatherKeyed(session: Session): Promise<readonly Keyed[]> {
  const query = session.namespace === "" ? {} : { namespace: session.namespace };
  const kinds: readonly (readonly [kind: string, resource: Resource<{ readonly metadata: ObjectMeta }>])[] = [
    ["rolloutgate", rolloutGates],
    ["phasedrollout", phasedRollouts],
  ];
  const lists = kinds.map(async ([kind, resource]) => {
    const read = ({
      metadata: { namespace = "", name = "", labels = {}, annotations = {} },
    }: {
      readonly metadata: ObjectMeta;
    }): Keyed => ({ kind, namespace, name, labels, annotations });
    return (await readAll({ resource, query, read }, session).catch(absent))?.items ?? [];
  });
  return (await Promise.all(lists)).flat();
}

/** The StatefulSets that a PhasedRollout could manage and that none does, by their namespace; and those that one claims. */
async function gatherTargets(session: Session): Promise<Pick<PhasedFacts, "targetsOf" | "claimed">> {
  const query = session.namespace === "" ? {} : { namespace: session.namespace };
  const { items } = await readAll({ resource: statefulSets, query, read: readTarget }, session);
  const claimed = items.filter(({ owner }) => owner !== undefined);
  const free = items.filter(
    ({ isZone, owner, updateStrategy }) => !isZone && owner === undefined && updateStrategy === "RollingUpdate",
  );
  const targetsOf = (namespace: string): string[] =>
    free.flatMap((one) => (one.namespace === namespace ? [one.name] : []));
  return { targetsOf, claimed };
}

/** Reads Secrets only if a check names one. */
export async function examineSecrets(session: Session): Promise<Finding[]> {
  const [phased, gates] = await gather(session);
  const forbidden = listSecrets(phased, gates).map(async (secret) => {
    const { namespace } = secret;
    const users = [...new Set([namespace, "zonewise"])].map(
      (one) => `system:serviceaccount:${one}:zonewise-reconciler`,
    );
    const denied = await Promise.all(
      users.map(async (user) => await findDenied({ ...session, namespace }, [rightOf(secret)], user)),
    );
    return denied.every(({ length }) => length > 0) ? [secret] : [];
  });
  return runChecks(SECRETS, (await Promise.all(forbidden)).flat());
}

export const examineNodeUpdates = async (session: Session): Promise<Finding[]> =>
  runChecks(POLICIES, await gatherPolicies(session));
