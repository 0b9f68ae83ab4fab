/** Checks of `zonewise doctor`: does anything tick, judge evictions, have its rights and its definitions. Pure. */
import { isInjected } from "../../../infra/certs/configurations.ts";
import type { Definition, StatefulSet, WebhookConfiguration } from "../../../infra/kubernetes/resources.ts";
import { EVICTION_PATHS, type Guard } from "../../../reconciler/budget/guard.ts";
import { ANNOTATIONS } from "../../../reconciler/model/annotations.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { kubectl } from "../../../reconciler/remedies/cures.ts";
import type { NoTick } from "../../../reconciler/report/ticking.ts";
import { ORIGINAL } from "../../../reconciler/report/ticking.ts";
import type { DeletionGuard } from "../deletion-guard.ts";
import { type Check, row } from "./check.ts";
import { describeRight, type Right } from "./rights.ts";
import { isGrouped } from "./zones.ts";

const isStopped = ({ state }: NoTick): boolean => state === "stopped";

/** Until the reconciler ticks, nothing else is carried out. */
export const TICKS: readonly Check<readonly NoTick[]>[] = [
  row({
    check: "no-tick",
    level: "error",
    when: (noTicks) => noTicks.filter(isStopped),
    object: () => "reconciler",
    message: ({ message }) => `${message}; nothing is rolled out, scaled or recorded`,
    fix: ({ remedy }) => remedy,
  }),
  row({
    check: "not-checked",
    level: "warning",
    when: (noTicks) => noTicks.filter((one) => !isStopped(one)),
    object: () => "reconciler",
    message: ({ message }) => message,
    fix: ({ remedy }) => remedy,
  }),
];

/** A budget, and the webhook that asks it about evictions. */
interface GuardedBudget {
  readonly budget: string;
  readonly guard: Guard;
}

const objectOfBudget = ({ budget }: GuardedBudget): string => `zpdb/${budget}`;
const unseen = (isTried: boolean) => (budgets: readonly GuardedBudget[]) =>
  budgets.filter(({ guard }) => guard.reason === "NotSeen" && (guard.notTried === undefined) === isTried);

export const PROTECTION: readonly Check<readonly GuardedBudget[]>[] = [
  row({
    check: "not-guarded",
    level: "error",
    when: (budgets) => budgets.filter(({ guard }) => guard.reason === "NoWebhook" || guard.reason === "WebhookDown"),
    object: objectOfBudget,
    message: ({ guard }) => guard.message,
    fix: ({ guard }) => guard.remedy,
  }),
  row({
    check: "not-checked",
    level: "warning",
    when: unseen(true),
    object: objectOfBudget,
    message: ({ guard }) => guard.message,
    fix: ({ guard }) => guard.remedy,
  }),
  row({
    check: "not-tried",
    level: "warning",
    when: unseen(false),
    object: objectOfBudget,
    message: ({ guard }) => guard.message,
    fix: () => "run it as a user who may create pods/eviction",
  }),
];

/** What guards deletions of pods in a namespace with budgets: it is opt-in, so that a missing one is no fault. */
interface GuardedNamespace {
  readonly namespace: string;
  readonly guard: DeletionGuard;
}

const objectOfNamespace = ({ namespace }: GuardedNamespace): string => `namespace/${namespace}`;

export const DELETIONS: readonly Check<readonly GuardedNamespace[]>[] = [
  row({
    check: "deletions-refused",
    level: "error",
    when: (namespaces) => namespaces.filter(({ guard }) => guard.by === "down"),
    object: objectOfNamespace,
    message: ({ guard }) => guard.message,
    fix: ({ guard }) => guard.remedy,
  }),
  row({
    check: "not-checked",
    level: "warning",
    when: (namespaces) => namespaces.filter(({ guard }) => guard.by === "unknown"),
    object: objectOfNamespace,
    message: ({ guard }) => guard.message,
    fix: ({ guard }) => guard.remedy,
  }),
];

/** StatefulSets by whose template no guard refuses a deletion of any of their pods, also of later ones. */
export const TEMPLATES: readonly Check<readonly StatefulSet[]>[] = [
  row({
    check: "delete-by-hand-in-template",
    level: "warning",
    when: (objects) =>
      objects.flatMap((object) => {
        const annotations = object.spec?.template.metadata?.annotations ?? {};
        const zone = readZone(object);
        return isGrouped(zone) && annotations[ANNOTATIONS.deleteByHand] === "true" ? [zone] : [];
      }),
    object: ({ name }) => `statefulset/${name}`,
    message: () => `its template carries ${ANNOTATIONS.deleteByHand}: no guard refuses a deletion of any of its pods`,
    fix: (zone) => {
      const path = `/spec/template/metadata/annotations/${ANNOTATIONS.deleteByHand.replace("/", "~1")}`;
      const patch = JSON.stringify([{ op: "remove", path }]);
      return `take it out, which rolls the zone out: ${kubectl(zone, `patch statefulset ${zone.name} --type=json -p '${patch}'`)}`;
    },
  }),
];

/** True for our configurations of any namespace: their names contain the namespace as well. */
const isOurs = ({ metadata }: WebhookConfiguration): boolean =>
  metadata?.labels?.["grafana.com/namespace"] !== undefined || /zonewise/.test(metadata?.name ?? "");

const webhooksOf = (configurations: readonly WebhookConfiguration[]) =>
  configurations.flatMap((configuration) =>
    (configuration.webhooks ?? []).map((webhook, index) => {
      const { service, url = "" } = webhook.clientConfig;
      const path = service?.path ?? URL.parse(url)?.pathname ?? "";
      return { configuration, webhook, index, path, name: configuration.metadata?.name ?? "" };
    }),
  );

const objectOfWebhook = ({ name }: { readonly name: string }): string => `webhookconfiguration/${name}`;

export const WEBHOOKS: readonly Check<readonly WebhookConfiguration[]>[] = [
  row({
    check: "webhook-without-ca",
    level: "error",
    when: (configurations) =>
      webhooksOf(configurations.filter(isOurs)).filter(
        ({ webhook: { clientConfig } }) => !clientConfig.caBundle && clientConfig.service,
      ),
    object: objectOfWebhook,
    message: ({ webhook }) => `${webhook.name} has no caBundle: the API server cannot call it`,
    fix: ({ configuration }) =>
      isInjected(configuration)
        ? "let the reconciler run: it injects the CA by the roles of infra/manifests/certificates, and without them nobody does; see docs/operate/certificates.md"
        : "give it the label grafana.com/inject-rollout-operator-ca=true, and the reconciler injects the CA, unless an annotation leaves it to another injector, such as cert-manager; see docs/operate/certificates.md",
  }),
  row({
    check: "webhook-fails-open",
    level: "warning",
    when: (configurations) =>
      webhooksOf(configurations).filter(
        ({ webhook, path }) => webhook.failurePolicy === "Ignore" && EVICTION_PATHS.includes(path),
      ),
    object: objectOfWebhook,
    message: () =>
      "it fails open: an eviction that the functions do not answer in time is executed, whatever the budget says",
    fix: ({ index, path, name }) => {
      const patch = JSON.stringify([{ op: "replace", path: `/webhooks/${index}/failurePolicy`, value: "Fail" }]);
      const resource = path.includes("mutate") ? "mutatingwebhookconfiguration" : "validatingwebhookconfiguration";
      return `once the functions run: kubectl patch ${resource} ${name} --type=json -p '${patch}'`;
    },
  }),
];

/** An account, the rights that it lacks, and the command that grants them. */
interface Lacking {
  /** `serviceaccount/zonewise-reconciler` */
  readonly who: string;
  readonly missing: readonly Right[];
  /** The rights that are needed. */
  readonly all: readonly Right[];
  readonly fix: string;
}

export const ACCOUNTS: readonly Check<Lacking>[] = [
  row({
    check: "rbac",
    level: "error",
    // One finding for all rights: an account without any of them is most likely not installed.
    when: (lacking) => (lacking.missing.length === 0 ? [] : [lacking]),
    object: ({ who }) => who,
    message: ({ missing, all }) =>
      missing.length === all.length
        ? "it has none of the rights that it needs"
        : `it may not ${missing.map(describeRight).join(", ")}`,
    fix: ({ fix }) => fix,
  }),
];

interface Kind {
  readonly group: string;
  readonly kind: string;
  /** The capabilities that are off without it. */
  readonly what: string;
}

export const DEFINED_KINDS: readonly Kind[] = [
  { group: "rollout-operator.grafana.com", kind: "ZoneAwarePodDisruptionBudget", what: "disruption budgets are" },
  { group: "zonewise.dev", kind: "RolloutGroup", what: "zonewise status, and kubectl wait on a group, are" },
  { group: "zonewise.dev", kind: "RolloutGate", what: "gates are" },
  { group: "sts.plus", kind: "PhasedRollout", what: "phased rollouts are" },
];

/** Of kinds that the cluster does not know. */
export const DEFINITIONS: readonly Check<readonly Kind[]>[] = [
  row({
    check: "definition-missing",
    level: "warning",
    when: (missing) => missing,
    object: ({ group, kind }) => `${kind}.${group}`,
    message: ({ what }) => `the cluster has no such definition: ${what} off`,
    fix: () => "kubectl apply -k infra/manifests/crds",
  }),
];

interface Marks {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const NAMED = /zonewise/;

/** The marks of tools on the objects that they may delete one day. */
const MARKS: readonly ((marks: Marks) => string | undefined)[] = [
  ({ annotations }) => {
    const release = annotations["meta.helm.sh/release-name"];
    return (
      release &&
      `the Helm release ${annotations["meta.helm.sh/release-namespace"] ?? ""}/${release}: its removal deletes it`
    );
  },
  ({ annotations, labels }) => {
    const id = annotations["argocd.argoproj.io/tracking-id"] ?? labels["argocd.argoproj.io/instance"];
    return id && `the Argo CD application ${id.split(":")[0]}: it prunes it`;
  },
  ({ labels }) => {
    const tool = ["kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"].find(
      (name) => labels[`${name}/name`] !== undefined,
    );
    return tool && `the Flux object ${labels[`${tool}/namespace`] ?? ""}/${labels[`${tool}/name`]}: it prunes it`;
  },
  // The generator of the original's definitions writes this annotation. An apply of ours removes it.
  ({ annotations }) =>
    annotations["controller-gen.kubebuilder.io/version"] === undefined
      ? undefined
      : "the original's manifests, which were applied: kubectl delete -f of these deletes it",
];

/** The kinds that the original systems define by the same names. Only Zonewise defines the others. */
export const SHARED_DEFINITIONS = [
  "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com",
  "replicatemplates.rollout-operator.grafana.com",
  "phasedrollouts.sts.plus",
] as const;

/** Of definitions whose removal by another installation deletes every object of their kind in the cluster. */
export const OWNERS: readonly Check<readonly Definition[]>[] = [
  row({
    check: "definition-owner",
    level: "warning",
    when: (definitions) =>
      definitions.flatMap(({ metadata: { name = "", labels = {}, annotations = {} } = {} }) => {
        const owner = MARKS.map((find) => find({ labels, annotations })).find(
          (text) => text !== undefined && !NAMED.test(text),
        );
        return owner === undefined ? [] : [{ name, owner }];
      }),
    object: ({ name }) => `customresourcedefinition/${name}`,
    message: ({ owner }) => `it belongs to ${owner}, and with it every object of this kind in the cluster`,
    fix: () =>
      "docs/migrate/rollout-operator.md#what-to-delete-and-what-not says how to take it over before you remove the original",
  }),
];

/** What an installation meets in the cluster. */
interface Cluster {
  readonly hasOriginal: boolean;
  /** It knows ValidatingAdmissionPolicies of v1. */
  readonly isRecent: boolean;
}

export const CLUSTER: readonly Check<Cluster>[] = [
  row({
    check: "original",
    level: "warning",
    when: ({ hasOriginal }) => (hasOriginal ? [ORIGINAL] : []),
    object: (name) => `deployment/${name}`,
    message: () => "the original serves this namespace: both must not run at once",
    fix: () => "docs/migrate/rollout-operator.md has the steps",
  }),
  row({
    check: "version",
    level: "warning",
    when: ({ isRecent }) => (isRecent ? [] : ["apiserver"]),
    object: (name) => name,
    message: () => "it has no ValidatingAdmissionPolicy of v1: it is older than Kubernetes 1.30",
    fix: () => "docs/start/install.md says how to install on older clusters",
  }),
];
