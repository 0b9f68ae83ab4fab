/**
 * Reads the objects that `zonewise doctor` checks. An object that the caller may not read becomes a finding, and the
 * rest is checked.
 */
import { absent, hasCode } from "../../infra/errors.ts";
import {
  definitions,
  mutatingWebhooks,
  podDisruptionBudgets,
  statefulSets,
  validatingWebhooks,
  type Resource,
} from "../../infra/kubernetes/resources.ts";
import { listBudgets } from "../../reconciler/budget/act/gather-budget.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { groupBy } from "../../reconciler/model/order.ts";
import { groupKey, readZone } from "../../reconciler/model/zone.ts";
import { readOriginal } from "../../reconciler/report/act/read-ticking.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { BUDGETS } from "../decide/doctor/budgets.ts";
import { type Finding, notChecked, runChecks, sortFindings } from "../decide/doctor/check.ts";
import {
  ACCOUNTS,
  CLUSTER,
  DEFINED_KINDS,
  DEFINITIONS,
  DELETIONS,
  OWNERS,
  PROTECTION,
  SHARED_DEFINITIONS,
  TEMPLATES,
  TICKS,
  WEBHOOKS,
} from "../decide/doctor/installation.ts";
import { INSTALL_RIGHTS, RECONCILER_RIGHTS } from "../decide/doctor/rights.ts";
import { examineStatefulSets, isGrouped, ORPHANS } from "../decide/doctor/zones.ts";
import type { NoTick } from "../../reconciler/report/ticking.ts";
import type { Session } from "../session.ts";
import { findDenied } from "./denied-rights.ts";
import { examineNodeUpdates, examineRollouts, examineSecrets } from "./examine-checks.ts";
import { examineReferences } from "./examine-references.ts";
import { createDeletionGuards, createGuards } from "./guard.ts";
import { gatherOrphans } from "./orphans.ts";

type Examination = (session: Session) => Promise<Finding[]>;

async function listAll<T>(session: Session, resource: Resource<T>, isClusterWide = false): Promise<T[]> {
  const query = isClusterWide || session.namespace === "" ? {} : { namespace: session.namespace };
  return (await readAll({ resource, query, read: (object: T) => object }, session)).items;
}

const examineZones: Examination = async (session) => {
  const objects = await listAll(session, statefulSets);
  return [...examineStatefulSets(objects, session.clock.now()), ...runChecks(TEMPLATES, objects)];
};

const examineBudgets: Examination = async (session) => {
  const budgets = await listBudgets(session.namespace, session);
  if (!budgets) return [];
  const zones = (await listAll(session, statefulSets)).map(readZone);
  if (zones.length === 0) return runChecks(BUDGETS, { budgets, zones, others: [] });
  try {
    return runChecks(BUDGETS, { budgets, zones, others: await listAll(session, podDisruptionBudgets) });
  } catch (error) {
    const unread = toFinding("PodDisruptionBudgets, and groups without a budget")(error);
    return [...runChecks(BUDGETS, { budgets, zones, others: undefined }), ...unread];
  }
};

const examineOrphans: Examination = async (session) => {
  const zones = (await listAll(session, statefulSets)).map(readZone).filter(isGrouped);
  const groups = [...groupBy(zones, groupKey).values()].flatMap((own) => (own[0] ? [{ ...own[0], zones: own }] : []));
  const found = groups.length > 0 ? await gatherOrphans(groups, session) : [];
  return runChecks(
    ORPHANS,
    found.flatMap(({ group, orphans }) => orphans.map((zone) => ({ group, zone }))),
  );
};

/**
 * Asks in each namespace with a budget once whether the webhook judges evictions, and looks for the guards of deletions
 * there, by the label that they select.
 */
const examineGuards: Examination = async (session) => {
  const budgets = (await listBudgets(session.namespace, session)) ?? [];
  const guards = createGuards(session);
  const deletionGuards = createDeletionGuards(session, guards);
  const places = [...Map.groupBy(budgets, ({ ref }) => ref.namespace)];
  const evictions = places.map(async ([namespace, own]) => {
    const guard = await guards(namespace);
    return own.flatMap(({ ref, matchLabels }) => (matchLabels ? [{ budget: ref.name, guard }] : []));
  });
  const deletions = places.map(async ([namespace]) => ({
    namespace,
    guard: await deletionGuards(namespace, { [LABELS.rolloutGroup]: "" }),
  }));
  return [
    ...runChecks(PROTECTION, (await Promise.all(evictions)).flat()),
    ...runChecks(DELETIONS, await Promise.all(deletions)),
  ];
};

const examineHooks: Examination = async (session) =>
  runChecks(WEBHOOKS, [
    ...(await listAll(session, validatingWebhooks, true)),
    ...(await listAll(session, mutatingWebhooks, true)),
  ]);

const examineDefinitions: Examination = async ({ cluster }) => {
  const isMissing = await Promise.all(
    DEFINED_KINDS.map(async ({ group, kind }) => (await cluster.discover(group, kind)).length === 0),
  );
  return runChecks(
    DEFINITIONS,
    DEFINED_KINDS.filter((_, i) => isMissing[i]),
  );
};

const examineOwners: Examination = async ({ cluster }) => {
  const found = await Promise.all(
    SHARED_DEFINITIONS.map(async (name) => await cluster.get(definitions, { name }).catch(absent)),
  );
  return runChecks(
    OWNERS,
    found.filter((one) => one !== undefined),
  );
};

/**
 * Finds the reconciler's account by its name in the namespace that it serves, or in that of an installation for all.
 */
const examineReconcilerRights: Examination = async (session) => {
  const { namespace } = session;
  const users = [namespace || "zonewise", "zonewise"].map((one) => `system:serviceaccount:${one}:zonewise-reconciler`);
  const missing = await Promise.all(
    [...new Set(users)].map(async (user) => await findDenied(session, RECONCILER_RIGHTS, user)),
  );
  return runChecks(ACCOUNTS, {
    who: "serviceaccount/zonewise-reconciler",
    missing: missing.toSorted((a, b) => a.length - b.length)[0] ?? [],
    all: RECONCILER_RIGHTS,
    fix: "install it for this namespace: kubectl apply -k infra/manifests/reconciler",
  });
};

const examineInstaller: Examination = async (session) =>
  runChecks(ACCOUNTS, {
    who: "you",
    missing: await findDenied(session, INSTALL_RIGHTS),
    all: INSTALL_RIGHTS,
    fix: "install as an administrator of the cluster",
  });

const examineOriginal: Examination = async ({ cluster, namespace }) =>
  runChecks(CLUSTER, {
    hasOriginal: await readOriginal({ cluster, namespace: namespace || "default" }),
    isRecent: true,
  });

const examineVersion: Examination = async ({ cluster }) => {
  const policies = await cluster.discover("admissionregistration.k8s.io", "ValidatingAdmissionPolicy");
  return runChecks(CLUSTER, { hasOriginal: false, isRecent: policies.some(({ version }) => version === "v1") });
};

/** Each part has a subject, for the finding that it could not be read. */
type Part = readonly [subject: string, examine: Examination];

/** The gravest first: in this order the findings of a level are shown. */
const INSTALLED: readonly Part[] = [
  ["what guards pods", examineGuards],
  ["webhook configurations", examineHooks],
  ["rights of the reconciler", examineReconcilerRights],
  ["definitions", examineDefinitions],
  ["disruption budgets", examineBudgets],
  ["pods that StatefulSets have left behind", examineOrphans],
  ["StatefulSets", examineZones],
  ["what zones mirror", examineReferences],
  ["PhasedRollouts and gates", examineRollouts],
  ["rights to the Secrets of checks", examineSecrets],
  ["node updates", examineNodeUpdates],
  ["owners of definitions", examineOwners],
];
const BEFORE: readonly Part[] = [
  ["your rights", examineInstaller],
  ["version of the cluster", examineVersion],
  ["the original", examineOriginal],
  ["StatefulSets", examineZones],
];

/**
 * All findings, the gravest first; before an installation nothing is to tick. Throws the error of the API server, except
 * for a missing right.
 */
export async function examine(session: Session, noTicks: readonly NoTick[] | "before"): Promise<Finding[]> {
  const parts = noTicks === "before" ? BEFORE : INSTALLED;
  const found = await Promise.all(parts.map(async ([subject, one]) => await one(session).catch(toFinding(subject))));
  return sortFindings([...(noTicks === "before" ? [] : runChecks(TICKS, noTicks)), ...found.flat()]);
}

const toFinding =
  (subject: string) =>
  (error: unknown): Finding[] => {
    if (!hasCode(error, "Forbidden")) throw error;
    return [notChecked(subject, error)];
  };
