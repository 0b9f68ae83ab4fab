/** Checks of `zonewise doctor`: StatefulSets, and the groups that they form. Pure. */
import { findNear } from "../../../infra/edit-distance.ts";
import { ANNOTATIONS, LABELS, describeTwoMinTimes } from "../../../reconciler/model/annotations.ts";
import { checkServiceName } from "../../../reconciler/model/fqdn.ts";
import { leaderAmong } from "../../../reconciler/model/leaders.ts";
import { listSome } from "../../../infra/cut.ts";
import { EMPTY_GROUP, hasEmptyGroup, MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { describeOrphaning, describeOrphans } from "../../../reconciler/model/orphans.ts";
import { isHealthy } from "../../../reconciler/model/readiness.ts";
import { findClosedWindow, findWindowProblem } from "../../../reconciler/model/rollout-window.ts";
import { isSettledByStatus, problemsOf, type Zone } from "../../../reconciler/model/zone.ts";
import { how, kubectl } from "../../../reconciler/model/remedy.ts";
import { growZone } from "../../../reconciler/remedies/cures.ts";
import { remedyFor } from "../../../reconciler/remedies/rules.ts";
import { cureLeader, isGrouped } from "../../../reconciler/remedies/leader.ts";
import { annotate, type Check, edit, type DoctorFacts, label, row, type StoredZone } from "./check.ts";
import { findMeantKey } from "./keys.ts";

const objectOf = ({ name }: { readonly name: string }): string => `statefulset/${name}`;
const objectOfSet = ({ zone }: { readonly zone: Pick<Zone, "name"> }): string => objectOf(zone);
const grouped = ({ sets }: Pick<DoctorFacts, "sets">): readonly StoredZone[] =>
  sets.filter(({ zone }) => isGrouped(zone));

/** Kubernetes writes the revision. */
const GROUP_LABELS = Object.values(LABELS).filter((key) => key !== LABELS.revision);
/** Some of our keys need no group: no-downscale, and those that phased rollouts write. */
const GROUPLESS = /^rollout-group$|no-downscale|prepare-downscale|^sts\.plus|last-downscale/;

/** The keys of these that a StatefulSet has there. */
const keysIn = (place: "labels" | "annotations", keys: readonly string[]) => (facts: DoctorFacts) =>
  facts.sets.flatMap(({ object, zone }) => {
    const strings = object.metadata?.[place] ?? {};
    return keys.flatMap((key) => (strings[key] === undefined ? [] : [{ zone, key }]));
  });

interface Alone {
  readonly zone: Zone;
  readonly meant: string | undefined;
}

/** Zones that are alone in their group; a group of nearly the same name that has more zones may be meant. */
function findAlone({ groups }: DoctorFacts): Alone[] {
  const large = [...groups.values()].flatMap(([zone, ...rest]) => (zone && rest.length > 0 ? [zone] : []));
  return [...groups.values()].flatMap(([zone, ...rest]) => {
    if (!zone || rest.length > 0 || hasEmptyGroup(zone.labels)) return [];
    const names = large.flatMap(({ namespace, group }) => (namespace === zone.namespace ? [group] : []));
    return [{ zone, meant: findNear(zone.group, names)[0] }];
  });
}

interface Lost {
  readonly zone: Zone;
  readonly leader: Zone | undefined;
  readonly own: readonly Zone[];
  readonly all: readonly Zone[];
}

const findLost = ({ zones, groups }: DoctorFacts): Lost[] =>
  [...groups.values()].flatMap((own) =>
    own
      .filter((zone) => zone.scaling.leader !== undefined && !leaderAmong(own, zone))
      .map((zone) => {
        const all = zones.filter(({ namespace }) => namespace === zone.namespace);
        return { zone, own, all, leader: all.find(({ name }) => name === zone.scaling.leader) };
      }),
  );

const whereIs = (leader: Zone | undefined): string =>
  !leader ? "not there" : isGrouped(leader) ? `in group ${leader.group}` : "in no group";

const MIN_TIME = LABELS.minTimeBetweenZonesDownscale;

/**
 * Followers without a minimum time in a group whose downscales are remembered: they wait for a time that nobody has set
 * (`minTimeOver` in reconciler/scaling/min-time.ts).
 */
const findUntimed = ({ groups }: DoctorFacts) =>
  [...groups.values()].flatMap((zones) => {
    const times = zones.flatMap(({ scaling }) => scaling.minTime ?? []);
    const isRemembered = times.length > 0 || zones.some(({ scaling }) => scaling.judgedByWebhook);
    if (!isRemembered) return [];
    return zones
      .filter((zone) => zone.scaling.minTime === undefined && leaderAmong(zones, zone))
      .map((zone) => ({ zone, time: times[0] ?? "0s" }));
  });

/** A minimum time is read as an annotation, and as a label, as older versions of the original read it. */
const twoMinTimes = ({ object: { metadata } }: StoredZone): string | undefined =>
  describeTwoMinTimes(metadata?.labels, metadata?.annotations);

interface Empty {
  readonly zone: Zone;
  readonly serving: readonly Zone[];
}

/** A zone without pods counts as healthy: the others are evicted and rolled out as if it served (§1.14). */
const findEmpty = ({ groups }: DoctorFacts): Empty[] =>
  [...groups.values()].flatMap((zones) => {
    const serving = zones.filter(({ replicas }) => replicas > 0);
    return serving.length === 0
      ? []
      : zones.filter(({ replicas }) => replicas === 0).map((zone) => ({ zone, serving }));
  });

function describeServing(serving: readonly Zone[]): string {
  const names = listSome(serving.map(({ name }) => name));
  return serving.length === 1
    ? `only ${names} has pods, and nothing protects them while it rolls out or is drained`
    : `only ${names} serve, and it counts as healthy while one of them is down`;
}

const closedForever = ({ zone }: StoredZone, now: number) => {
  // A window that cannot be read is among the problems of its zone.
  const closed = findWindowProblem(zone.window) === undefined ? findClosedWindow(zone.window, now) : undefined;
  return closed?.reason === "WindowInvalid" ? [{ zone, why: closed.message }] : [];
};

/** Neither their StatefulSet nor the group's status tells of them. */
function orphaned(level: "error" | "warning", isWell: boolean): Check {
  return row({
    check: "zone-orphaned",
    level,
    when: ({ orphans }) => orphans.filter(({ zone }) => isHealthy(zone) === isWell),
    object: objectOfSet,
    message: ({ zone }) =>
      isWell
        ? `${describeOrphaning(zone)}: nothing replaces or recreates the pods that it left behind`
        : describeOrphans(zone),
    fix: ({ group, zone }) => {
      const { namespace, pods: objects } = zone;
      const said = { message: describeOrphaning(zone), objects };
      return remedyFor("ZoneOrphaned", { ...said, namespace, group, zones: [], budgets: [] });
    },
  });
}

export const ZONES: readonly Check[] = [
  orphaned("error", false),
  orphaned("warning", true),
  row({
    check: "not-on-delete",
    level: "error",
    when: (facts) => grouped(facts).filter(({ zone }) => zone.updateStrategy !== "OnDelete"),
    object: objectOfSet,
    message: ({ zone }) =>
      `its update strategy is ${zone.updateStrategy}: the StatefulSet controller replaces pods itself, whatever the other zones do`,
    fix: ({ zone }) =>
      kubectl(
        zone,
        `patch statefulset ${zone.name} --type=merge -p '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}'`,
      ),
  }),
  row({
    check: "empty-group",
    level: "error",
    when: ({ sets }) => sets.filter(({ object }) => hasEmptyGroup(object.metadata?.labels)),
    object: objectOfSet,
    message: () => EMPTY_GROUP,
    fix: ({ zone }) => label(zone, `${LABELS.rolloutGroup}=GROUP`),
  }),
  row({
    check: "too-many-zones",
    level: "error",
    when: ({ groups }) => [...groups.values()].filter((zones) => zones.length > MAX_ZONES),
    object: ([zone]) => `group/${zone?.group}`,
    message: (zones) =>
      `it has ${zones.length} zones, more than ${MAX_ZONES}: it is neither rolled out nor scaled, and disruption budgets let no pod of it go`,
    fix: () => `give some of its zones another ${LABELS.rolloutGroup}`,
  }),
  row({
    check: "unreadable",
    level: "error",
    when: (facts) =>
      grouped(facts).flatMap((set) =>
        problemsOf(set.zone)
          .filter((problem) => problem !== twoMinTimes(set))
          .map((problem) => ({ zone: set.zone, problem })),
      ),
    object: objectOfSet,
    message: ({ problem }) => problem,
    fix: ({ zone }) => edit(zone),
  }),
  row({
    check: "no-service-name",
    level: "error",
    when: (facts) =>
      grouped(facts).flatMap(({ zone }) => {
        const { judgedByWebhook, delay } = zone.scaling;
        const wrong = judgedByWebhook || delay !== "" ? checkServiceName(zone.serviceName) : undefined;
        return wrong === undefined ? [] : [{ zone, wrong: zone.serviceName === "" ? "serviceName is missing" : wrong }];
      }),
    object: objectOfSet,
    message: ({ wrong }) => `its ${wrong}: its pods cannot be prepared for a downscale`,
    fix: () => "delete it and create it again with a serviceName: the field is immutable",
  }),
  row({
    check: "leader-missing",
    level: "error",
    when: findLost,
    object: objectOfSet,
    message: ({ zone, leader }) =>
      `its annotation ${ANNOTATIONS.downscaleLeader} names ${zone.scaling.leader}, which is ${whereIs(leader)}: it is not scaled`,
    fix: ({ zone, own, all }) => cureLeader(zone, { own, all }),
  }),
  row({
    check: "no-min-time",
    level: "error",
    when: findUntimed,
    object: objectOfSet,
    message: () =>
      `it follows a leader and has no annotation ${MIN_TIME}: once another zone was scaled down, it is not`,
    fix: ({ zone, time }) => annotate(zone, `${MIN_TIME}=${time}`),
  }),
  row({
    check: "window-never-opens",
    level: "error",
    when: (facts) => grouped(facts).flatMap((set) => closedForever(set, facts.now)),
    object: objectOfSet,
    message: ({ why }) => `${why}: a new template never reaches its pods that serve`,
    fix: ({ zone }) => edit(zone),
  }),
  row({
    check: "no-group",
    level: "warning",
    when: (facts) =>
      [...keysIn("annotations", Object.values(ANNOTATIONS))(facts), ...keysIn("labels", GROUP_LABELS)(facts)].filter(
        ({ zone, key }, i, all) => {
          const isFirst = all.findIndex((one) => one.zone === zone && !GROUPLESS.test(one.key)) === i;
          const isMistyped = Object.keys(zone.labels).some((one) => findMeantKey(one)?.key === LABELS.rolloutGroup);
          return isFirst && !GROUPLESS.test(key) && !isGrouped(zone) && !isMistyped;
        },
      ),
    object: objectOfSet,
    message: ({ key }) => `it has ${key} but no label ${LABELS.rolloutGroup}: it has no effect`,
    fix: ({ zone }) => kubectl(zone, `label statefulset ${zone.name} ${LABELS.rolloutGroup}=GROUP`),
  }),
  row({
    check: "single-zone",
    level: "warning",
    when: findAlone,
    object: objectOfSet,
    message: ({ zone, meant }) =>
      `it is the only zone of its group: no other zone stays complete while it rolls out${meant === undefined ? "" : `; did you mean group ${meant}, not ${zone.group}?`}`,
    fix: ({ zone, meant }) =>
      meant === undefined
        ? `if there are other zones, give them the same ${LABELS.rolloutGroup}`
        : how("if so", label(zone, `${LABELS.rolloutGroup}=${meant}`)),
  }),
  row({
    check: "all-paused",
    level: "warning",
    when: ({ groups }) =>
      [...groups.values()].flatMap((zones) =>
        zones[0] && zones.every(({ paused }) => paused) ? [{ zone: zones[0], zones }] : [],
      ),
    object: ({ zone }) => `group/${zone.group}`,
    message: ({ zones }) => {
      const left = zones.filter((one) => !isSettledByStatus(one)).map(({ name }) => name);
      return left.length === 0
        ? "all its zones are paused: the next rollout will not start"
        : `all its zones are paused, and ${left.join(", ")} ${left.length === 1 ? "is" : "are"} not done: nothing rolls them out`;
    },
    fix: ({ zone }) => `zonewise -n ${zone.namespace} resume ${zone.group}`,
  }),
  row({
    check: "two-min-times",
    level: "warning",
    when: (facts) => grouped(facts).filter((set) => twoMinTimes(set) !== undefined),
    object: objectOfSet,
    message: (set) => twoMinTimes(set) ?? "",
    fix: ({ zone }) => edit(zone),
  }),
  row({
    check: "zone-empty",
    level: "warning",
    when: findEmpty,
    object: objectOfSet,
    message: ({ zone, serving }) =>
      `it has 0 replicas, and other zones of group ${zone.group} have pods: ${describeServing(serving)}`,
    fix: ({ zone, serving }) => growZone(zone, Math.max(...serving.map(({ replicas }) => replicas))),
  }),
];
