/** Findings of `zonewise doctor` about StatefulSets and groups that the API server has accepted. Pure. */
import { findNear } from "../../infra/edit-distance.ts";
import { hasCode } from "../../infra/errors.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import type { NoTick } from "../../reconciler/report/ticking.ts";
import { ANNOTATIONS, LABELS } from "../../reconciler/model/annotations.ts";
import { describeTwoMinTimes } from "../../reconciler/model/scaling.ts";
import { checkServiceName } from "../../reconciler/model/fqdn.ts";
import { listSome } from "../../reconciler/model/list-some.ts";
import { leaderAmong, wouldCycle } from "../../reconciler/model/leaders.ts";
import { groupBy } from "../../reconciler/model/order.ts";
import { EMPTY_GROUP, hasEmptyGroup } from "../../reconciler/model/refused-group.ts";
import { groupKey, isSettledByStatus, readZone, type Zone } from "../../reconciler/model/zone.ts";
import { growZone, kubectl } from "../../reconciler/remedies/cures.ts";
import { explainError } from "./explain-error.ts";

export interface Finding {
  /**
   * `error`: it does not work, or does something that nobody wants. `warning`: it may be intended. `note`: nothing is
   * wrong.
   */
  readonly level: "error" | "warning" | "note";
  /** Name of the check. */
  readonly check: string;
  /** `statefulset/zone-a`. */
  readonly object: string;
  readonly message: string;
  readonly fix: string;
}

/** The finding that a reconciler does not tick comes first: until it does, nothing else is carried out. */
export const examineTicking = (noTicks: readonly NoTick[]): Finding[] =>
  noTicks.map(({ state, message, remedy }) => ({
    level: state === "stopped" ? "error" : "warning",
    check: state === "stopped" ? "no-tick" : "not-checked",
    object: "reconciler",
    message: state === "stopped" ? `${message}; nothing is rolled out, scaled or recorded` : message,
    fix: remedy,
  }));

/** The finding that something could not be read, and therefore was not examined. */
export function notChecked(subject: string, error: unknown): Finding {
  const { message, hint = "run the command again" } = explainError(error);
  const object = hasCode(error, "Forbidden") ? "you" : "apiserver";
  return { level: "warning", check: "not-checked", object, message: `${message}: not checked: ${subject}`, fix: hint };
}

type Strings = Readonly<Record<string, string>> | undefined;

/** Keys that are read as a label and as an annotation, as in older and newer versions of the original. */
const EITHER: ReadonlySet<string> = new Set([LABELS.minTimeBetweenZonesDownscale]);
const ONLY_LABELS = Object.values(LABELS).filter((key) => key !== LABELS.revision && !EITHER.has(key));
const OURS = [...Object.values(ANNOTATIONS), ...ONLY_LABELS.filter((key) => key !== LABELS.rolloutGroup)];

/** An annotation may contain any text: only text that is a valid label value is put into a command. */
export const LABEL_VALUE = /^([A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?)?$/;

/** Findings of all StatefulSets of a namespace, in a group or not. */
export function examineStatefulSets(objects: readonly StatefulSet[]): Finding[] {
  const all = objects.map(readZone);
  const grouped = all.filter(isGrouped);
  const own = objects.filter((_, i) => all[i] && isGrouped(all[i]));
  return [...objects.flatMap(examineMetadata), ...own.flatMap(examineZone), ...examineGroups(grouped, all)];
}

/** True if it is a zone of a rollout group. */
export const isGrouped = ({ labels }: Zone): boolean => labels[LABELS.rolloutGroup] !== undefined;

function examineMetadata({ metadata = {} }: StatefulSet): Finding[] {
  const { labels, annotations, name = "", namespace = "" } = metadata;
  const object = `statefulset/${name}`;
  const change = (verb: string): string => kubectl({ namespace }, `${verb} statefulset ${name}`);
  const move = (verb: string, key: string): string => `${change(verb)} ${key}`;
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
    fix: LABEL_VALUE.test(annotations?.[key] ?? "")
      ? `${move("label", `${key}=${annotations?.[key]}`)} && ${move("annotate", `${key}-`)}`
      : change("edit"),
  }));
  return [
    ...asLabels,
    ...asAnnotations,
    ...examineMissingGroup({
      labels,
      annotations,
      object,
      fix: move(hasEmptyGroup(labels) ? "label --overwrite" : "label", `${LABELS.rolloutGroup}=GROUP`),
    }),
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

/** Some of our keys need no group: no-downscale, and those that phased rollouts write. */
const GROUPLESS = /no-downscale|prepare-downscale|^sts\.plus|last-downscale/;

function examineMissingGroup({ labels, annotations, object, fix }: Marks): Finding[] {
  if (hasEmptyGroup(labels)) return [{ level: "error", check: "empty-group", object, message: EMPTY_GROUP, fix }];
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

function examineZone(set: StatefulSet): Finding[] {
  const zone = readZone(set);
  const { name, namespace, updateStrategy, scaling, serviceName } = zone;
  const object = `statefulset/${name}`;
  // Two different minimum times are no error: `examineMinTimes` reports them.
  const differing = describeTwoMinTimes(set.metadata?.labels, set.metadata?.annotations);
  const unreadable = zone.problems.filter((problem) => problem !== differing);
  const problems = unreadable.map((message): Finding => ({
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
  fix: "delete it and create it with a serviceName: the field cannot be changed",
});

function examineGroups(zones: readonly Zone[], all: readonly Zone[]): Finding[] {
  const groups = [...groupBy(zones, groupKey).values()];
  return groups.flatMap((own) => [
    ...examineSingle(own, groups),
    ...own.flatMap((zone) => examineLeader(zone, own, all)),
    ...examinePaused(own),
    ...examineEmpty(own),
  ]);
}

/** The command that gives a StatefulSet labels. */
export const label = (zone: Zone, pairs: string): string =>
  kubectl(zone, `label --overwrite statefulset ${zone.name} ${pairs}`);
/** The command that gives a StatefulSet an annotation, or takes it away. */
export const annotate = (zone: Zone, pair: string): string =>
  kubectl(zone, `annotate --overwrite statefulset ${zone.name} ${pair}`);

function examineSingle([zone, ...rest]: readonly Zone[], groups: readonly (readonly Zone[])[]): Finding[] {
  if (!zone || rest.length > 0 || hasEmptyGroup(zone.labels)) return [];
  const others = groups.filter(([first]) => first?.namespace === zone.namespace && first.group !== zone.group);
  const [near] = findNear(
    zone.group,
    others.flatMap(([first]) => first?.group ?? []),
  );
  const message = "it is the only zone of its group: nothing is kept whole while it rolls out";
  return [
    {
      level: "warning",
      check: "single-zone",
      object: `statefulset/${zone.name}`,
      message: near === undefined ? message : `${message}; is ${near} meant, and not ${zone.group}?`,
      fix:
        near === undefined
          ? `if there are other zones, give them the same ${LABELS.rolloutGroup}`
          : `if so: ${label(zone, `${LABELS.rolloutGroup}=${near}`)}`,
    },
  ];
}

/** A leader that is not in the group: it is in another group, is mistyped, or does not exist. */
function examineLeader(zone: Zone, own: readonly Zone[], all: readonly Zone[]): Finding[] {
  const { leader } = zone.scaling;
  if (leader === undefined || leaderAmong(own, zone)) return [];
  const found = all.find(({ namespace, name }) => namespace === zone.namespace && name === leader);
  const place = found ? `in ${isGrouped(found) ? `group ${found.group}` : "no group"}` : "not there";
  return [
    {
      level: "error",
      check: "leader-missing",
      object: `statefulset/${zone.name}`,
      message: `its annotation ${ANNOTATIONS.downscaleLeader} names ${leader}, which is ${place}: it is not scaled`,
      fix: found ? joinLeader(zone, found, { own, all }) : nameLeader(zone, leader, own),
    },
  ];
}

interface Surroundings {
  readonly own: readonly Zone[];
  readonly all: readonly Zone[];
}

/** The fix moves no zone out of a group with other zones, except into a larger one. */
function joinLeader(zone: Zone, leader: Zone, { own, all }: Surroundings): string {
  if (!isGrouped(leader))
    return `if it belongs to group ${zone.group}: ${label(leader, `${LABELS.rolloutGroup}=${zone.group}`)}`;
  const zonesOfLeader = all.filter((one) => isGrouped(one) && groupKey(one) === groupKey(leader)).length;
  if (own.length === 1 || zonesOfLeader > own.length) return label(zone, `${LABELS.rolloutGroup}=${leader.group}`);
  if (zonesOfLeader === 1) return label(leader, `${LABELS.rolloutGroup}=${zone.group}`);
  return kubectl(zone, `edit statefulset ${zone.name}`);
}

function nameLeader(zone: Zone, leader: string, own: readonly Zone[]): string {
  const names = own.map(({ name }) => name).filter((name) => !isOtherZone(leader, name));
  const [near] = findNear(leader, names);
  const isUsable = near !== undefined && !wouldCycle(zone, near, own);
  return annotate(zone, isUsable ? `${ANNOTATIONS.downscaleLeader}=${near}` : `${ANNOTATIONS.downscaleLeader}-`);
}

/** Names that differ only in the letter or number of a zone are two zones, not a typo. */
const isOtherZone = (one: string, other: string): boolean => withoutZone(one) === withoutZone(other);
const withoutZone = (name: string): string => name.replaceAll(/\d+[a-z]?(?=[-.]|$)|[a-z](?=[-.]|$)/g, "");

/** A forgotten pause: no rollout begins or goes on. */
function examinePaused(zones: readonly Zone[]): Finding[] {
  const [first] = zones;
  if (!first || !zones.every(({ paused }) => paused)) return [];
  const left = zones.filter((zone) => !isSettledByStatus(zone)).map(({ name }) => name);
  const state =
    left.length === 0
      ? "and its rollout is over: the next one does not begin"
      : `and ${left.join(", ")} ${left.length === 1 ? "is" : "are"} not done: nobody rolls them out`;
  return [
    {
      level: "warning",
      check: "all-paused",
      object: `group/${first.group}`,
      message: `all its zones are paused, ${state}`,
      fix: `zonewise -n ${first.namespace} resume ${first.group}`,
    },
  ];
}

/** A zone without pods counts as healthy: the others are evicted and rolled out as if it served (§1.14). */
function examineEmpty(zones: readonly Zone[]): Finding[] {
  const serving = zones.filter(({ replicas }) => replicas > 0);
  if (serving.length === 0) return [];
  const names = listSome(serving.map(({ name }) => name));
  const left =
    serving.length === 1
      ? `${names} alone serves, and nothing is kept whole while it rolls out or is drained`
      : `only ${names} serve, and it counts as healthy while one of them is down`;
  return zones
    .filter(({ replicas }) => replicas === 0)
    .map((zone) => ({
      level: "warning",
      check: "zone-empty",
      object: `statefulset/${zone.name}`,
      message: `it has 0 replicas, and ${serving.length === 1 ? "another zone" : "other zones"} of group ${zone.group} ${serving.length === 1 ? "has" : "have"} pods: ${left}`,
      fix: growZone(zone, Math.max(...serving.map(({ replicas }) => replicas))),
    }));
}
