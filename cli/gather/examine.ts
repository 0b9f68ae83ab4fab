/**
 * Reads what `zonewise doctor` examines. An object that the caller may not read becomes a finding, and the rest is
 * examined.
 */
import { hasCode } from "../../infra/errors.ts";
import {
  definitions,
  deployments,
  mutatingWebhooks,
  podDisruptionBudgets,
  statefulSets,
  validatingWebhooks,
  type Resource,
} from "../../infra/kubernetes/resources.ts";
import { absent } from "../../infra/errors.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { readZone } from "../../reconciler/model/zone.ts";
import { listBudgets } from "../../reconciler/budget/act/gather-budget.ts";
import { examineDefinitionOwners, SHARED_DEFINITIONS } from "../decide/definition-owners.ts";
import { explainError } from "../decide/explain-error.ts";
import { examineBudgets, examineStatefulSets, examineWebhooks, type Finding } from "../decide/findings.ts";
import { findMissingRights, INSTALL_RIGHTS, RECONCILER_RIGHTS } from "../decide/reconciler-rights.ts";
import type { Session } from "../session.ts";
import { findDenied } from "./denied-rights.ts";
import { examineNodeUpdates, examineRollouts, examineSecrets } from "./examine-checks.ts";

export type Examination = (session: Session) => Promise<Finding[]>;

async function listAll<T>(session: Session, resource: Resource<T>, isClusterWide = false): Promise<T[]> {
  const query = isClusterWide || session.namespace === "" ? {} : { namespace: session.namespace };
  return (await readAll({ resource, query, read: (object: T) => object }, session)).items;
}

const examineZones: Examination = async (session) => examineStatefulSets(await listAll(session, statefulSets));

const examineGuards: Examination = async (session) => {
  const budgets = (await listBudgets(session.namespace, session)) ?? [];
  const zones = (await listAll(session, statefulSets)).map(readZone);
  return examineBudgets(budgets, zones, budgets.length > 0 ? await listAll(session, podDisruptionBudgets) : []);
};

const examineHooks: Examination = async (session) =>
  examineWebhooks([
    ...(await listAll(session, validatingWebhooks, true)),
    ...(await listAll(session, mutatingWebhooks, true)),
  ]);

/** Definitions, by group and kind, and what is off without them. */
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

/** By its name in the namespace that it serves, or in that of an installation for all. */
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

const examineOriginal: Examination = async (session) => {
  const { cluster, namespace } = session;
  const found = await cluster
    .get(deployments, { namespace: namespace || "default", name: "rollout-operator" })
    .catch(absent);
  if (!found) return [];
  const message = "the original serves this namespace: both must not run at once";
  return [
    {
      level: "warning",
      check: "original",
      object: "deployment/rollout-operator",
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

const INSTALLED: readonly Examination[] = [
  examineZones,
  examineGuards,
  examineHooks,
  examineDefinitions,
  examineOwners,
  examineReconcilerRights,
  examineRollouts,
  examineSecrets,
  examineNodeUpdates,
];
const BEFORE: readonly Examination[] = [examineInstaller, examineVersion, examineOriginal, examineZones];

/** All findings, errors first. Throws the error of the API server, but for a missing right. */
export async function examine(session: Session, isBefore: boolean): Promise<Finding[]> {
  const all = await Promise.all(
    (isBefore ? BEFORE : INSTALLED).map(async (one) => await one(session).catch(toFinding)),
  );
  const findings = all.flat();
  return [...findings.filter(({ level }) => level === "error"), ...findings.filter(({ level }) => level === "warning")];
}

function toFinding(error: unknown): Finding[] {
  if (!hasCode(error, "Forbidden")) throw error;
  const { message, hint = "" } = explainError(error);
  return [
    {
      level: "warning",
      check: "not-checked",
      object: "you",
      message: `${message}: what depends on it was not checked`,
      fix: hint,
    },
  ];
}
