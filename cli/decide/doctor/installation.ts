/** Checks of `zonewise doctor`: does anything tick, ask the budgets about evictions, and have its definitions. Pure. */
import { EVICTION_PATHS } from "../../../reconciler/budget/guard.ts";
import { how } from "../../../reconciler/model/remedy.ts";
import { type NoTick, ORIGINAL } from "../../../reconciler/report/ticking.ts";
import { consequenceOf } from "../answer.ts";
import { type Check, type DoctorFacts, row } from "./facts.ts";

export const INSTALLATION: readonly Check[] = [
  row({
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
    when: ({ noTicks, unread, guards }) => [
      ...noTicks.filter((one) => !isStopped(one)).map((one) => ({ object: "reconciler", ...one, fix: one.remedy })),
      ...unread,
      ...guards
        .filter(({ guard }) => guard.reason === "NotSeen")
        .map(({ budget, guard }) => ({ object: `zpdb/${budget}`, ...guard, fix: guard.remedy })),
    ],
    object: ({ object }) => object,
    message: ({ message }) => message,
    fix: ({ fix }) => fix,
  }),
  row({
    check: "not-guarded",
    level: "error",
    when: ({ guards }) => guards.filter(({ guard }) => guard.reason === "NoWebhook" || guard.reason === "WebhookDown"),
    object: ({ budget }) => `zpdb/${budget}`,
    message: ({ guard }) => guard.message,
    fix: ({ guard }) => guard.remedy,
  }),
  row({
    check: "webhook-without-ca",
    level: "error",
    when: (facts) =>
      hooksOf(facts).filter(
        ({ isOurs, hook: { clientConfig } }) => isOurs && clientConfig.service && !clientConfig.caBundle,
      ),
    object: ({ name }) => `webhookconfiguration/${name}`,
    message: ({ hook }) => `${hook.name} has no caBundle: the API server cannot call it`,
    fix: () =>
      "the reconciler injects the CA where the label grafana.com/inject-rollout-operator-ca is true, by the roles of infra/manifests/certificates; for another injector, such as cert-manager, see docs/operate/certificates.md",
  }),
  row({
    check: "webhook-fails-open",
    level: "warning",
    when: (facts) =>
      hooksOf(facts).filter(({ hook, path }) => hook.failurePolicy === "Ignore" && EVICTION_PATHS.includes(path)),
    object: ({ name }) => `webhookconfiguration/${name}`,
    message: () => "it fails open: while the functions do not answer, evictions ignore the budgets",
    fix: ({ name, hook, path }) => {
      const patch = JSON.stringify({ webhooks: [{ name: hook.name, failurePolicy: "Fail" }] });
      const resource = `${path.includes("mutate") ? "mutating" : "validating"}webhookconfiguration`;
      return how("once the functions run", `kubectl patch ${resource} ${name} -p '${patch}'`);
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

function isStopped({ state }: NoTick): boolean {
  return state === "stopped";
}

/** The entries of webhook configurations. Ours are known by a label, or by a name that contains the namespace, too. */
function hooksOf({ webhooks }: DoctorFacts) {
  return webhooks.flatMap((configuration) => {
    const { labels, name = "" } = configuration.metadata ?? {};
    const isOurs = labels?.["grafana.com/namespace"] !== undefined || name.includes("zonewise");
    return (configuration.webhooks ?? []).map((hook) => {
      const { service, url = "" } = hook.clientConfig;
      return { name, isOurs, hook, path: service?.path ?? URL.parse(url)?.pathname ?? "" };
    });
  });
}

export const DEFINED_KINDS: DoctorFacts["missingKinds"] = [
  { group: "rollout-operator.grafana.com", kind: "ZoneAwarePodDisruptionBudget", what: "disruption budgets are" },
  { group: "zonewise.dev", kind: "RolloutGroup", what: "zonewise status, and kubectl wait on a group, are" },
  { group: "zonewise.dev", kind: "RolloutGate", what: "gates are" },
  { group: "sts.plus", kind: "PhasedRollout", what: "phased rollouts are" },
];

/**
 * The kinds that the original systems define by the same names: to remove their definitions with another installation
 * deletes every object of these kinds in the cluster.
 */
export const SHARED_DEFINITIONS = [
  "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com",
  "replicatemplates.rollout-operator.grafana.com",
  "phasedrollouts.sts.plus",
] as const;

/** Labels and annotations by which tools know what they delete one day; the last is of the original's manifests. */
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
