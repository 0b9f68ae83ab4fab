/** Checks of `zonewise doctor`: does anything tick, judge evictions, have its rights and its definitions. Pure. */
import { isInjected } from "../../../infra/certs/configurations.ts";
import type { WebhookConfiguration } from "../../../infra/kubernetes/resources.ts";
import { EVICTION_PATHS } from "../../../reconciler/budget/guard.ts";
import { how } from "../../../reconciler/model/remedy.ts";
import { consequenceOf } from "../answer.ts";
import { type NoTick, ORIGINAL } from "../../../reconciler/report/ticking.ts";
import { type Check, type DoctorFacts, row } from "./check.ts";

const isStopped = ({ state }: NoTick): boolean => state === "stopped";

type GuardedBudget = DoctorFacts["guards"][number];

const objectOfBudget = ({ budget }: GuardedBudget): string => `zpdb/${budget}`;
const unseen =
  (isTried: boolean) =>
  ({ guards }: DoctorFacts): readonly GuardedBudget[] =>
    guards.filter(({ guard }) => guard.reason === "NotSeen" && (guard.notTried === undefined) === isTried);

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

export const DEFINED_KINDS: DoctorFacts["missingKinds"] = [
  { group: "rollout-operator.grafana.com", kind: "ZoneAwarePodDisruptionBudget", what: "disruption budgets are" },
  { group: "zonewise.dev", kind: "RolloutGroup", what: "zonewise status, and kubectl wait on a group, are" },
  { group: "zonewise.dev", kind: "RolloutGate", what: "gates are" },
  { group: "sts.plus", kind: "PhasedRollout", what: "phased rollouts are" },
];

/** Labels and annotations by which tools know the objects that they delete one day; the last is of the original's manifests. */
const MARKS = [
  "meta.helm.sh/release-name",
  "argocd.argoproj.io/tracking-id",
  "argocd.argoproj.io/instance",
  "kustomize.toolkit.fluxcd.io/name",
  "helm.toolkit.fluxcd.io/name",
  "controller-gen.kubebuilder.io/version",
];

/** The mark of an installation that is not Zonewise's. */
function findOwner({ metadata: { name = "", labels, annotations } = {} }: DoctorFacts["definitions"][number]) {
  const marks: Readonly<Record<string, string>> = { ...labels, ...annotations };
  const key = MARKS.find((one) => marks[one] !== undefined && !marks[one].includes("zonewise"));
  return key === undefined ? [] : [{ name, mark: `${key}=${marks[key]}` }];
}

/**
 * The kinds that the original systems define by the same names: to remove their definitions with another installation
 * deletes every object of these kinds in the cluster.
 */
export const SHARED_DEFINITIONS = [
  "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com",
  "replicatemplates.rollout-operator.grafana.com",
  "phasedrollouts.sts.plus",
] as const;

export const INSTALLATION: readonly Check[] = [
  row({
    // Until the reconciler ticks, nothing else is carried out.
    check: "no-tick",
    level: "error",
    when: ({ noTicks }) => noTicks.filter(isStopped),
    object: () => "reconciler",
    message: (noTick) => `${noTick.message}; ${consequenceOf(noTick)}`,
    fix: ({ remedy }) => remedy,
  }),
  row({
    check: "not-checked",
    level: "warning",
    when: ({ noTicks }) => noTicks.filter((one) => !isStopped(one)),
    object: () => "reconciler",
    message: ({ message }) => message,
    fix: ({ remedy }) => remedy,
  }),
  row({
    check: "not-checked",
    level: "warning",
    when: ({ unread }) => unread,
    object: ({ object }) => object,
    message: ({ message }) => message,
    fix: ({ fix }) => fix,
  }),
  row({
    check: "not-guarded",
    level: "error",
    when: ({ guards }) => guards.filter(({ guard }) => guard.reason === "NoWebhook" || guard.reason === "WebhookDown"),
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
  row({
    check: "webhook-without-ca",
    level: "error",
    when: ({ webhooks }) =>
      webhooksOf(webhooks.filter(isOurs)).filter(
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
    when: ({ webhooks }) =>
      webhooksOf(webhooks).filter(
        ({ webhook, path }) => webhook.failurePolicy === "Ignore" && EVICTION_PATHS.includes(path),
      ),
    object: objectOfWebhook,
    message: () => "it fails open: while the functions do not answer, evictions ignore the budgets",
    fix: ({ index, path, name }) => {
      const patch = JSON.stringify([{ op: "replace", path: `/webhooks/${index}/failurePolicy`, value: "Fail" }]);
      const resource = path.includes("mutate") ? "mutatingwebhookconfiguration" : "validatingwebhookconfiguration";
      return how("once the functions run", `kubectl patch ${resource} ${name} --type=json -p '${patch}'`);
    },
  }),
  row({
    check: "definition-missing",
    level: "warning",
    when: ({ missingKinds }) => missingKinds,
    object: ({ group, kind }) => `${kind}.${group}`,
    message: ({ what }) => `CRD not installed: ${what} off`,
    fix: () => "kubectl apply -k infra/manifests/crds",
  }),
  row({
    check: "definition-owner",
    level: "warning",
    when: ({ definitions }) => definitions.flatMap(findOwner),
    object: ({ name }) => `customresourcedefinition/${name}`,
    message: ({ mark }) =>
      `it belongs to another installation (${mark}), whose removal deletes it with every object of this kind in the cluster`,
    fix: () =>
      "take it over before you remove the original: docs/migrate/rollout-operator.md#what-to-delete-and-what-not",
  }),
  row({
    check: "original",
    level: "error",
    when: ({ originals }) => originals,
    object: () => `deployment/${ORIGINAL}`,
    message: (namespace) => `${ORIGINAL} serves namespace ${namespace}: never run it beside Zonewise`,
    fix: () => "follow docs/migrate/rollout-operator.md",
  }),
];
