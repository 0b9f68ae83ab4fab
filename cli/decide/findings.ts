/** What `zonewise doctor` finds wrong with objects that the API server has accepted. Pure. */
import type { PodDisruptionBudget, StatefulSet, WebhookConfiguration } from "../../infra/kubernetes/resources.ts";
import { matchesLabels } from "../../reconciler/budget/selector.ts";
import type { StoredBudget } from "../../reconciler/budget/scope.ts";
import { ANNOTATIONS, LABELS } from "../../reconciler/model/annotations.ts";
import { checkServiceName } from "../../reconciler/model/fqdn.ts";
import { groupBy } from "../../reconciler/model/order.ts";
import { groupKey, readZone, type Zone } from "../../reconciler/model/zone.ts";

export interface Finding {
  /** `error`: it does not work, or does what nobody wants. `warning`: it may be meant. */
  readonly level: "error" | "warning";
  /** Name of the check. */
  readonly check: string;
  /** `statefulset/zone-a`. */
  readonly object: string;
  readonly message: string;
  readonly fix: string;
}

type Strings = Readonly<Record<string, string>> | undefined;

/** Either is read: as newer and older versions of the original have it. */
const EITHER: ReadonlySet<string> = new Set([LABELS.minTimeBetweenZonesDownscale]);
const ONLY_LABELS = Object.values(LABELS).filter((key) => key !== LABELS.revision && !EITHER.has(key));
const OURS = [...Object.values(ANNOTATIONS), ...ONLY_LABELS.filter((key) => key !== LABELS.rolloutGroup)];

/** Findings of all StatefulSets of a namespace, in a group or not. */
export function examineStatefulSets(objects: readonly StatefulSet[]): Finding[] {
  const grouped = objects.filter(({ metadata }) => metadata?.labels?.[LABELS.rolloutGroup] !== undefined).map(readZone);
  return [...objects.flatMap(examineMetadata), ...grouped.flatMap(examineZone), ...examineGroups(grouped)];
}

function examineMetadata({ metadata = {} }: StatefulSet): Finding[] {
  const { labels, annotations, name = "", namespace = "" } = metadata;
  const object = `statefulset/${name}`;
  const move = (verb: string, key: string): string => `kubectl -n ${namespace} ${verb} statefulset ${name} ${key}`;
  const asLabels = keysIn(labels, Object.values(ANNOTATIONS)).map((key) => ({
    level: "error" as const,
    check: "label-for-annotation",
    object,
    message: `${key} is a label; it is read as an annotation only`,
    fix: `${move("annotate", `${key}=${labels?.[key]}`)} && ${move("label", `${key}-`)}`,
  }));
  const asAnnotations = keysIn(annotations, ONLY_LABELS).map((key) => ({
    level: "error" as const,
    check: "annotation-for-label",
    object,
    message: `${key} is an annotation; it is read as a label only`,
    fix: `${move("label", `${key}=${annotations?.[key]}`)} && ${move("annotate", `${key}-`)}`,
  }));
  return [
    ...asLabels,
    ...asAnnotations,
    ...examineMissingGroup({ labels, annotations, object, fix: move("label", `${LABELS.rolloutGroup}=GROUP`) }),
  ];
}

const keysIn = (strings: Strings, keys: readonly string[]): string[] =>
  keys.filter((key) => strings?.[key] !== undefined);

interface Marks {
  readonly labels: Strings;
  readonly annotations: Strings;
  readonly object: string;
  readonly fix: string;
}

/** Some of ours need no group: no-downscale, and what phased rollouts write. */
const GROUPLESS = /no-downscale|prepare-downscale|^sts\.plus|last-downscale/;

function examineMissingGroup({ labels, annotations, object, fix }: Marks): Finding[] {
  const used = [...keysIn(annotations, OURS), ...keysIn(labels, OURS)].find((key) => !GROUPLESS.test(key));
  if (used === undefined || labels?.[LABELS.rolloutGroup] !== undefined) return [];
  return [
    {
      level: "warning",
      check: "no-group",
      object,
      message: `it has ${used} and no label ${LABELS.rolloutGroup}: nobody reads that`,
      fix,
    },
  ];
}

function examineZone(zone: Zone): Finding[] {
  const { name, namespace, updateStrategy, scaling, serviceName } = zone;
  const object = `statefulset/${name}`;
  const problems = zone.problems.map((message): Finding => ({
    level: "error",
    check: "unreadable",
    object,
    message,
    fix: `kubectl -n ${namespace} edit statefulset ${name}`,
  }));
  const wrong = scaling.judgedByWebhook || scaling.delay !== "" ? checkServiceName(serviceName) : undefined;
  return [
    ...problems,
    ...(updateStrategy === "OnDelete" ? [] : [notOnDelete(zone)]),
    ...(wrong === undefined ? [] : [noService(object, wrong)]),
  ];
}

const notOnDelete = ({ name, namespace, updateStrategy }: Zone): Finding => ({
  level: "error",
  check: "not-on-delete",
  object: `statefulset/${name}`,
  message: `its update strategy is ${updateStrategy}: the StatefulSet controller replaces pods itself, whatever the other zones do`,
  fix: `kubectl -n ${namespace} patch statefulset ${name} --type=merge -p '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}'`,
});

const noService = (object: string, wrong: string): Finding => ({
  level: "error",
  check: "no-service-name",
  object,
  message: `its ${wrong === 'serviceName "" is not a DNS label' ? "serviceName is missing" : wrong}: its pods cannot be prepared for a downscale`,
  fix: "create it anew with a serviceName; the field cannot be changed",
});

function examineGroups(zones: readonly Zone[]): Finding[] {
  return [...groupBy(zones, groupKey).values()].flatMap(([zone, ...others]): Finding[] => {
    if (!zone || others.length > 0) return [];
    const message = "it is the only zone of its group: nothing is kept whole while it rolls out";
    const fix = `give the other zones the same ${LABELS.rolloutGroup}`;
    return [{ level: "warning", check: "single-zone", object: `statefulset/${zone.name}`, message, fix }];
  });
}

/** Findings of all budgets of a namespace, with its StatefulSets and its PodDisruptionBudgets. */
export function examineBudgets(
  budgets: readonly StoredBudget[],
  zones: readonly Zone[],
  others: readonly PodDisruptionBudget[],
): Finding[] {
  return [
    ...budgets.flatMap((budget) => examineBudget(budget, zones)),
    ...examineOverlaps(budgets, zones),
    ...examineOthers(budgets, zones, others),
  ];
}

const selects = ({ matchLabels, ref }: StoredBudget, { namespace, podLabels }: Zone): boolean =>
  matchLabels !== undefined && ref.namespace === namespace && matchesLabels(matchLabels, podLabels);

function examineBudget(budget: StoredBudget, zones: readonly Zone[]): Finding[] {
  const { ref, content, matchLabels } = budget;
  const object = `zpdb/${ref.name}`;
  const fix = `kubectl -n ${ref.namespace} edit zpdb ${ref.name}`;
  if ("problem" in content) return [{ level: "error", check: "budget-invalid", object, message: content.problem, fix }];
  const found = zones.filter(
    (zone) => zone.namespace === ref.namespace && matchLabels && matchesLabels(matchLabels, zone.labels),
  );
  if (found.length >= 2) return [];
  const what = found.length === 0 ? "it selects no StatefulSet by its labels" : `it selects ${found[0]?.name} alone`;
  return [
    { level: "error", check: "budget-selects", object, message: `${what}: every eviction of its pods is refused`, fix },
  ];
}

function examineOverlaps(budgets: readonly StoredBudget[], zones: readonly Zone[]): Finding[] {
  return zones.flatMap((zone): Finding[] => {
    const names = budgets.filter((budget) => selects(budget, zone)).map(({ ref }) => ref.name);
    if (names.length < 2) return [];
    const message = `several budgets select its pods: ${names.join(", ")}; every eviction of them is refused, and its group fails`;
    const fix = `kubectl -n ${zone.namespace} edit zpdb ${names.at(-1)}`;
    return [{ level: "error", check: "budgets-overlap", object: `statefulset/${zone.name}`, message, fix }];
  });
}

/** A PodDisruptionBudget counts pods of all zones together: it refuses what the zone-aware one allows. */
function examineOthers(
  budgets: readonly StoredBudget[],
  zones: readonly Zone[],
  others: readonly PodDisruptionBudget[],
): Finding[] {
  return others.flatMap(({ metadata, spec }): Finding[] => {
    const matchLabels = spec?.selector?.matchLabels;
    if (!matchLabels) return [];
    const both = zones.find((zone) => {
      const isGuarded = budgets.some((budget) => selects(budget, zone));
      return isGuarded && zone.namespace === metadata?.namespace && matchesLabels(matchLabels, zone.podLabels);
    });
    if (!both) return [];
    const message = `it selects pods of ${both.name} beside a zone-aware budget: an eviction needs both`;
    const fix = `kubectl -n ${both.namespace} delete pdb ${metadata?.name}`;
    return [{ level: "warning", check: "pdb-beside-zpdb", object: `pdb/${metadata?.name}`, message, fix }];
  });
}

/** Of any namespace, which is a part of the names, too. */
const isOurs = ({ metadata }: WebhookConfiguration): boolean =>
  metadata?.labels?.["grafana.com/namespace"] !== undefined || /zonewise/.test(metadata?.name ?? "");

/** Findings of all webhook configurations of the cluster. */
export function examineWebhooks(configurations: readonly WebhookConfiguration[]): Finding[] {
  return configurations.filter(isOurs).flatMap(({ metadata, webhooks = [] }) => {
    const without = webhooks.filter(({ clientConfig }) => !clientConfig.caBundle && clientConfig.service);
    return without.map(({ name }): Finding => ({
      level: "error",
      check: "webhook-without-ca",
      object: `webhookconfiguration/${metadata?.name}`,
      message: `${name} has no caBundle: the API server cannot call it`,
      fix: "let the reconciler run: it injects the CA; see docs/certificates.md",
    }));
  });
}
