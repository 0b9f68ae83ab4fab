/**
 * Reads the objects that `zonewise doctor` examines. An object that the caller may not read becomes a finding, and the
 * rest is examined.
 */
import { hasCode } from "../../infra/errors.ts";
import {
  definitions,
  mutatingWebhooks,
  podDisruptionBudgets,
  pods,
  statefulSets,
  validatingWebhooks,
  type Resource,
  type StatefulSet,
} from "../../infra/kubernetes/resources.ts";
import { absent } from "../../infra/errors.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { readZone, selectorText } from "../../reconciler/model/zone.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { readBudgetPod, type BudgetPod } from "../../reconciler/budget/budget-pod.ts";
import { listBudgets } from "../../reconciler/budget/act/gather-budget.ts";
import { examineDefinitionOwners, SHARED_DEFINITIONS } from "../decide/definition-owners.ts";
import { readOriginal } from "../../reconciler/report/act/read-ticking.ts";
import { ORIGINAL } from "../../reconciler/report/ticking.ts";
import { examineStatefulSets, notChecked, type Finding } from "../decide/findings.ts";
import { examineMinTimes, hasOldLabel } from "../decide/min-time-findings.ts";
import {
  examineBudgets,
  examineDeletions,
  examineGuard,
  examineTemplates,
  examineWebhooks,
} from "../decide/protection-findings.ts";
import { findMissingRights, INSTALL_RIGHTS, RECONCILER_RIGHTS } from "../decide/reconciler-rights.ts";
import { examineWindows } from "../decide/window-findings.ts";
import type { Session } from "../session.ts";
import { createDeletionGuards, createGuards } from "./guard.ts";
import { findDenied } from "./denied-rights.ts";
import { examineNodeUpdates, examineRollouts, examineSecrets } from "./examine-checks.ts";
import { examineReferences } from "./examine-references.ts";

export type Examination = (session: Session) => Promise<Finding[]>;

async function listAll<T>(session: Session, resource: Resource<T>, isClusterWide = false): Promise<T[]> {
  const query = isClusterWide || session.namespace === "" ? {} : { namespace: session.namespace };
  return (await readAll({ resource, query, read: (object: T) => object }, session)).items;
}

const examineZones =
  (isBefore: boolean): Examination =>
  async (session) => {
    const objects = await listAll(session, statefulSets);
    const served = isBefore ? undefined : await findServed(session, objects);
    const mayServe = (namespace: string): boolean => served?.has(namespace) ?? true;
    return [
      ...examineStatefulSets(objects),
      ...examineTemplates(objects),
      ...examineWindows(objects, session.clock.now()),
      ...examineMinTimes(objects, mayServe),
    ];
  };

/**
 * The namespaces in which the original may serve one of the StatefulSets: its Deployment serves it, or may not be read.
 */
async function findServed({ cluster }: Session, objects: readonly StatefulSet[]): Promise<ReadonlySet<string>> {
  const places = [...new Set(objects.filter(hasOldLabel).map(({ metadata }) => metadata?.namespace ?? ""))];
  const isServed = await Promise.all(
    places.map(async (namespace) =>
      readOriginal({ cluster, namespace }).catch((error: unknown) => {
        if (!hasCode(error, "Forbidden")) throw error;
        return true;
      }),
    ),
  );
  return new Set(places.filter((_, i) => isServed[i]));
}

const examineGuards: Examination = async (session) => {
  const budgets = await listBudgets(session.namespace, session);
  if (!budgets) return [];
  const zones = (await listAll(session, statefulSets)).map(readZone);
  if (zones.length === 0) return examineBudgets(budgets, zones, []);
  try {
    return examineBudgets(budgets, zones, await listAll(session, podDisruptionBudgets));
  } catch (error) {
    const unread = toFinding("PodDisruptionBudgets, and groups without a budget")(error);
    return [...examineBudgets(budgets, zones, undefined), ...unread];
  }
};

/** Tries each namespace with a budget once, by a dry-run eviction of a pod that one of its budgets selects, if there is one. */
const examineProtection: Examination = async (session) => {
  const budgets = (await listBudgets(session.namespace, session)) ?? [];
  const guards = createGuards(session);
  const places = Map.groupBy(budgets, ({ ref }) => ref.namespace);
  const seen = [...places].map(async ([namespace, own]): Promise<Finding[]> => {
    const selectors = own.flatMap(({ matchLabels }) => (matchLabels ? [selectorText({ matchLabels })] : []));
    if (selectors.length === 0) return [];
    const pod = await findOwnedPod(session, namespace, selectors);
    const guard = await guards(pod ?? { namespace });
    return own.flatMap(({ ref, matchLabels }) => (matchLabels ? examineGuard(ref.name, guard) : []));
  });
  return (await Promise.all(seen)).flat();
};

/**
 * Examines the deletion guards of groups' pods in each namespace with a budget, by the labels that the guards select.
 */
const examineDeletionGuards: Examination = async (session) => {
  const budgets = (await listBudgets(session.namespace, session)) ?? [];
  const guards = createDeletionGuards(session);
  const places = [...new Set(budgets.map(({ ref }) => ref.namespace))];
  const seen = places.map(async (one) => examineDeletions(one, await guards(one, { [LABELS.rolloutGroup]: "" })));
  return (await Promise.all(seen)).flat();
};

/** The first pod of a StatefulSet that one of the selectors selects. */
async function findOwnedPod(
  session: Session,
  namespace: string,
  selectors: readonly string[],
): Promise<BudgetPod | undefined> {
  for (const labelSelector of selectors) {
    const { items } = await readAll(
      { resource: pods, query: { namespace, labelSelector }, read: readBudgetPod },
      session,
    );
    const pod = items.find(({ controller }) => controller?.kind === "StatefulSet");
    if (pod) return pod;
  }
  return undefined;
}

const examineHooks: Examination = async (session) =>
  examineWebhooks([
    ...(await listAll(session, validatingWebhooks, true)),
    ...(await listAll(session, mutatingWebhooks, true)),
  ]);

/** Definitions, by group and kind, and the capabilities that are off without them. */
const KINDS = [
  ["rollout-operator.grafana.com", "ZoneAwarePodDisruptionBudget", "disruption budgets are"],
  ["zonewise.dev", "RolloutGroup", "zonewise status, and kubectl wait on a group, are"],
  ["zonewise.dev", "RolloutGate", "gates are"],
  ["sts.plus", "PhasedRollout", "phased rollouts are"],
] as const;

const examineDefinitions: Examination = async ({ cluster }) => {
  const missing = await Promise.all(
    KINDS.map(async ([group, kind]) => (await cluster.discover(group, kind)).length === 0),
  );
  return KINDS.filter((_, i) => missing[i]).map(([group, kind, what]) => ({
    level: "warning",
    check: "definition-missing",
    object: `${kind}.${group}`,
    message: `the cluster has no such definition: ${what} off`,
    fix: "kubectl apply -k infra/manifests/crds",
  }));
};

const examineOwners: Examination = async ({ cluster }) => {
  const found = await Promise.all(
    SHARED_DEFINITIONS.map(async (name) => await cluster.get(definitions, { name }).catch(absent)),
  );
  return examineDefinitionOwners(found.filter((one) => one !== undefined));
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
  const fewest = missing.toSorted((a, b) => a.length - b.length)[0] ?? [];
  const fix = "install it for this namespace: kubectl apply -k infra/manifests/reconciler";
  return findMissingRights({ who: "serviceaccount/zonewise-reconciler", missing: fewest, all: RECONCILER_RIGHTS, fix });
};

const examineInstaller: Examination = async (session) =>
  findMissingRights({
    who: "you",
    missing: await findDenied(session, INSTALL_RIGHTS),
    all: INSTALL_RIGHTS,
    fix: "install as an administrator of the cluster",
  });

const examineOriginal: Examination = async ({ cluster, namespace }) => {
  if (!(await readOriginal({ cluster, namespace: namespace || "default" }))) return [];
  const message = "the original serves this namespace: both must not run at once";
  return [
    {
      level: "warning",
      check: "original",
      object: `deployment/${ORIGINAL}`,
      message,
      fix: "docs/migration.md has the steps",
    },
  ];
};

const examineVersion: Examination = async ({ cluster }) => {
  const policies = await cluster.discover("admissionregistration.k8s.io", "ValidatingAdmissionPolicy");
  if (policies.some(({ version }) => version === "v1")) return [];
  const message = "it has no ValidatingAdmissionPolicy of v1: it is older than Kubernetes 1.30";
  return [
    {
      level: "warning",
      check: "version",
      object: "apiserver",
      message,
      fix: "docs/install.md says how to install on older clusters",
    },
  ];
};

/** Each part has a subject, for the finding that it could not be read. */
type Part = readonly [subject: string, examine: Examination];

const INSTALLED: readonly Part[] = [
  ["StatefulSets", examineZones(false)],
  ["what zones mirror, and autoscalers", examineReferences],
  ["disruption budgets", examineGuards],
  ["whether evictions are judged", examineProtection],
  ["whether deletions of pods are guarded", examineDeletionGuards],
  ["webhook configurations", examineHooks],
  ["definitions", examineDefinitions],
  ["owners of definitions", examineOwners],
  ["rights of the reconciler", examineReconcilerRights],
  ["PhasedRollouts and gates", examineRollouts],
  ["rights to the Secrets of checks", examineSecrets],
  ["node updates", examineNodeUpdates],
];
const BEFORE: readonly Part[] = [
  ["your rights", examineInstaller],
  ["version of the cluster", examineVersion],
  ["the original", examineOriginal],
  ["StatefulSets", examineZones(true)],
];

/** All findings, errors first. Throws the error of the API server, except for a missing right. */
export async function examine(session: Session, isBefore: boolean): Promise<Finding[]> {
  const all = await Promise.all(
    (isBefore ? BEFORE : INSTALLED).map(async ([subject, one]) => await one(session).catch(toFinding(subject))),
  );
  const findings = all.flat();
  return (["error", "warning", "note"] as const).flatMap((level) => findings.filter((one) => one.level === level));
}

const toFinding =
  (subject: string) =>
  (error: unknown): Finding[] => {
    if (!hasCode(error, "Forbidden")) throw error;
    return [notChecked(subject, error)];
  };
