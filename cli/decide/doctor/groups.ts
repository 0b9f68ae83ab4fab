/** Checks of `zonewise doctor`: StatefulSets and their groups, labels and annotations, PhasedRollouts and gates. Pure. */
import { countEdits, findNear } from "../../../infra/edit-distance.ts";
import { RETRY_ANNOTATION } from "../../../reconciler/gates/gate.ts";
import { ANNOTATIONS, LABELS } from "../../../reconciler/model/annotations.ts";
import { describeOrphaning } from "../../../reconciler/model/orphans.ts";
import { hasEmptyGroup, refusedGroup } from "../../../reconciler/model/refused-group.ts";
import { how, kubectl } from "../../../reconciler/model/remedy.ts";
import { findClosedWindow, findWindowProblem } from "../../../reconciler/model/rollout-window.ts";
import { groupKey, leaderAmong, problemsOf, type Zone } from "../../../reconciler/model/zone.ts";
import { growZone } from "../../../reconciler/remedies/cures.ts";
import { cureLeader, isGrouped } from "../../../reconciler/remedies/leader.ts";
import { remedyFor } from "../../../reconciler/remedies/rules.ts";
import { type Check, type DoctorFacts, edit, type Keyed, label, ofZone, row } from "./facts.ts";

export const GROUPS: readonly Check[] = [
  row({
    // The group's status tells of them only once a pod is not ready.
    check: "zone-orphaned",
    level: "error",
    when: ({ orphans }) => orphans,
    object: ofZone,
    message: ({ zone }) => `${describeOrphaning(zone)}: nothing replaces or recreates the pods that it left behind`,
    fix: ({ group, zone }) =>
      remedyFor("ZoneOrphaned", {
        namespace: zone.namespace,
        group,
        message: describeOrphaning(zone),
        objects: zone.pods,
        zones: [],
      }),
  }),
  row({
    check: "not-on-delete",
    level: "error",
    when: ({ zones }) => zones.filter((zone) => isGrouped(zone) && zone.updateStrategy !== "OnDelete"),
    object: (zone) => ofZone({ zone }),
    message: ({ updateStrategy }) =>
      `its update strategy is ${updateStrategy}: the StatefulSet controller replaces pods itself, whatever the other zones do`,
    fix: (zone) =>
      kubectl(
        zone,
        `patch statefulset ${zone.name} --type=merge -p '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}'`,
      ),
  }),
  row({
    check: "group-refused",
    level: "error",
    when: findRefused,
    object: ofZone,
    message: ({ message }) => message,
    fix: ({ zone: { namespace, group }, reason, message, objects }) =>
      remedyFor(reason, { namespace, group, message, objects, zones: [] }),
  }),
  row({
    check: "unreadable",
    level: "error",
    when: findProblems,
    object: ofZone,
    message: ({ problem }) => problem,
    fix: ({ zone }) => edit(zone),
  }),
  row({
    check: "leader-missing",
    level: "error",
    when: findLost,
    object: ofZone,
    message: ({ zone, where }) =>
      `its annotation ${ANNOTATIONS.downscaleLeader} names ${zone.scaling.leader}, which is ${where}: it is not scaled`,
    fix: ({ zone, own, all }) => cureLeader(zone, { own, all }),
  }),
  row({
    check: "no-group",
    level: "warning",
    when: findUngrouped,
    object: ofZone,
    message: ({ key }) => `it has ${key} but no label ${LABELS.rolloutGroup}: it has no effect`,
    fix: ({ zone }) => kubectl(zone, `label statefulset ${zone.name} ${LABELS.rolloutGroup}=GROUP`),
  }),
  row({
    check: "single-zone",
    level: "warning",
    when: findAlone,
    object: ofZone,
    message: ({ meant }) =>
      `it is the only zone of its group: no other zone stays complete while it rolls out${askIf(meant)}`,
    fix: ({ zone, meant }) =>
      meant === undefined
        ? `if there are other zones, give them the same ${LABELS.rolloutGroup}`
        : how("if so", label(zone, `${LABELS.rolloutGroup}=${meant}`)),
  }),
  row({
    check: "zone-empty",
    level: "warning",
    when: findEmpty,
    object: ofZone,
    message: ({ zone }) =>
      `it has 0 replicas and counts as healthy: pods of other zones of group ${zone.group} may go as if it served`,
    fix: ({ zone, most }) => growZone(zone, most),
  }),
  row({
    check: "all-paused",
    level: "warning",
    when: findAllPaused,
    object: ({ group }) => `group/${group}`,
    message: () => "all its zones are paused: a new template waits",
    fix: ({ namespace, group }) => `zonewise -n ${namespace} resume ${group}`,
  }),
  row({
    check: "misplaced-key",
    level: "error",
    when: (facts) => findUnreadKeys(facts).filter(isMisplaced),
    object: ({ of }) => `${of.kind}/${of.name}`,
    message: describeUnreadKey,
    fix: ({ of }) => edit(of, of.kind),
  }),
  row({
    check: "mistyped-key",
    level: "warning",
    when: (facts) => findUnreadKeys(facts).filter((one) => !isMisplaced(one)),
    object: ({ of }) => `${of.kind}/${of.name}`,
    message: describeUnreadKey,
    fix: ({ of }) => edit(of, of.kind),
  }),
  row({
    check: "phased-claim",
    level: "error",
    when: findClaims,
    object: ({ name }) => `statefulset/${name}`,
    message: ({ owner }) =>
      `its annotation ${ANNOTATIONS.phasedRollout} names PhasedRollout ${owner}, which does not exist or has another target: new templates wait, and nothing releases them`,
    fix: (set) =>
      how(
        "remove the annotation; then set the partition to 0 to release a template that waits",
        kubectl(
          set,
          `annotate statefulset ${set.name} ${ANNOTATIONS.phasedRollout}- ${ANNOTATIONS.originalPartition}-`,
        ),
      ),
  }),
  row({
    check: "gate-not-valid",
    level: "error",
    when: findInvalidGates,
    object: ({ gate }) => `rolloutgate/${gate.ref.name}`,
    message: ({ why, meant }) => why + askIf(meant),
    fix: ({ gate: { ref }, meant: group }) =>
      group === undefined
        ? edit(ref, "rolloutgate")
        : how("if so", kubectl(ref, `patch rolloutgate ${ref.name} --type=merge -p '{"spec":{"group":"${group}"}}'`)),
  }),
];

function askIf(meant: string | undefined): string {
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}

/** Groups that the reconciler refuses: without a name, or too large. */
function findRefused({ groups }: DoctorFacts) {
  return [...groups.values()].flatMap((zones) => {
    const [zone] = zones;
    const hold = refusedGroup({ zones });
    return zone && hold ? [{ zone, ...hold }] : [];
  });
}

/** Settings that cannot be read or have no effect, and rollout windows that open no more. */
function findProblems({ zones, now }: DoctorFacts) {
  return zones
    .filter(isGrouped)
    .flatMap((zone) => [...closedForEver(zone, now), ...problemsOf(zone)].map((problem) => ({ zone, problem })));
}

function closedForEver({ window }: Zone, now: number): string[] {
  // A window that cannot be read is among the problems of its zone.
  const closed = findWindowProblem(window) === undefined ? findClosedWindow(window, now) : undefined;
  return closed?.reason === "WindowInvalid"
    ? [`${closed.message}: a new template never reaches its pods that serve`]
    : [];
}

/** Zones whose leader is not in their group. */
function findLost({ zones, groups }: DoctorFacts) {
  return [...groups.values()].flatMap((own) =>
    own
      .filter((zone) => zone.scaling.leader !== undefined && !leaderAmong(own, zone))
      .map((zone) => {
        const all = zones.filter(({ namespace }) => namespace === zone.namespace);
        const leader = all.find(({ name }) => name === zone.scaling.leader);
        const inGroup = leader && isGrouped(leader) ? `in group ${leader.group}` : "in no group";
        return { zone, own, all, where: leader ? inGroup : "not there" };
      }),
  );
}

/** Zones that are alone in their group; a group of nearly the same name that has more zones may be meant. */
function findAlone({ groups }: DoctorFacts) {
  const large = [...groups.values()].flatMap(([zone, ...rest]) => (zone && rest.length > 0 ? [zone] : []));
  return [...groups.values()].flatMap(([zone, ...rest]) => {
    if (!zone || rest.length > 0 || hasEmptyGroup(zone.labels)) return [];
    const names = large.flatMap(({ namespace, group }) => (namespace === zone.namespace ? [group] : []));
    return [{ zone, meant: findNear(zone.group, names)[0] }];
  });
}

/** Zones without pods beside others that have some: they count as healthy (§1.14). */
function findEmpty({ groups }: DoctorFacts) {
  return [...groups.values()].flatMap((zones) => {
    const most = Math.max(...zones.map(({ replicas }) => replicas));
    return most === 0 ? [] : zones.filter(({ replicas }) => replicas === 0).map((zone) => ({ zone, most }));
  });
}

/** Annotations that only a zone of a group has. */
const OF_ZONES = Object.values(ANNOTATIONS).filter((key) => /^(?:.*\/)?rollout-/.test(key));

/** StatefulSets without a group that have such an annotation; the first of each. */
function findUngrouped({ sets }: DoctorFacts) {
  return sets.flatMap(({ object, zone }) => {
    const key = OF_ZONES.find((one) => object.metadata?.annotations?.[one] !== undefined);
    return key === undefined || isGrouped(zone) ? [] : [{ zone, key }];
  });
}

interface Known {
  readonly key: string;
  readonly place: keyof Keyed["keys"];
}

/** Every key that users write. Kubernetes writes the revision. */
const KNOWN: readonly Known[] = [
  ...Object.values(LABELS)
    .filter((key) => key !== LABELS.revision)
    .map((key) => ({ key, place: "label" }) as const),
  ...[...Object.values(ANNOTATIONS), RETRY_ANNOTATION].map((key) => ({ key, place: "annotation" }) as const),
];

const split = (key: string): readonly [prefix: string, name: string] =>
  key.includes("/") ? [key.slice(0, key.indexOf("/")), key.slice(key.indexOf("/") + 1)] : ["", key];
/** The API group of the original's definitions is not the prefix of its keys. */
const OUR_PREFIXES: ReadonlySet<string> = new Set([
  ...KNOWN.map(({ key }) => split(key)[0]),
  "rollout-operator.grafana.com",
]);

/** Shorter names, such as `pause`, are anybody's where they have no prefix. */
const LEAST_BARE = 8;
const MOST_IN_PREFIX = 2;

/** How far a key is from one of ours; undefined if it is another's. */
function distance(written: string, known: string): number | undefined {
  const [[prefix, name], [ourPrefix, ourName]] = [split(written.toLowerCase()), split(known.toLowerCase())];
  if (prefix === "" && ourPrefix !== "" && name.length < LEAST_BARE) return undefined;
  const inPrefix = OUR_PREFIXES.has(prefix) ? Number(prefix !== ourPrefix) : countEdits(prefix, ourPrefix);
  if (inPrefix > MOST_IN_PREFIX) return undefined;
  const inName = countEdits(name, ourName);
  return inName <= Math.max(1, ourName.length / 6) ? inPrefix + inName : undefined;
}

/** A key that is read as a label and as an annotation, as in older and newer versions of the original. */
const BOTH = LABELS.minTimeBetweenZonesDownscale;

/** The key that is meant by one that nobody reads there; undefined for a key that is right, or another's. */
export function findMeant(written: string, place: Known["place"]): Known | undefined {
  const own = KNOWN.find(({ key }) => key === written);
  if (own) return own.place === place || written === BOTH ? undefined : own;
  const near = KNOWN.flatMap((known) => {
    const edits = distance(written, known.key);
    return edits === undefined ? [] : [{ known, edits }];
  });
  return near.toSorted((a, b) => a.edits - b.edits)[0]?.known;
}

/** A label or annotation that nobody reads, and what is meant. */
interface UnreadKey {
  readonly of: Keyed;
  readonly written: string;
  readonly place: Known["place"];
  readonly meant: Known;
}

/** What the reader of an object says of its keys is not said again. */
const findUnreadKeys = ({ keyed }: DoctorFacts): UnreadKey[] =>
  keyed.flatMap((of) =>
    (["label", "annotation"] as const).flatMap((place) =>
      of.keys[place].flatMap((written) => {
        const meant = findMeant(written, place);
        return !meant || of.problems?.some((problem) => problem.includes(written))
          ? []
          : [{ of, written, place, meant }];
      }),
    ),
  );

const isMisplaced = ({ written, meant }: UnreadKey): boolean => written === meant.key;

function describeUnreadKey({ written, place, meant }: UnreadKey): string {
  return `its ${place} ${written} has no effect; did you mean the ${meant.place} ${meant.key}?`;
}

/** Gates that are not valid, or whose group does not exist; a group of nearly its name may be meant. */
function findInvalidGates({ gates, groups }: DoctorFacts) {
  return gates.flatMap((gate) => {
    const { namespace } = gate.ref;
    const { conditions, group } = gate;
    const valid = conditions.find(({ type, status }) => type === "Valid" && status === "False");
    if (valid && valid.reason !== "GroupNotFound")
      return [{ gate, why: `it is not valid: ${valid.reason}, ${valid.message}`, meant: undefined }];
    if (groups.has(groupKey({ namespace, group }))) return [];
    const names = [...groups.values()].flatMap(([zone]) => (zone?.namespace === namespace ? [zone.group] : []));
    return [{ gate, why: `there is no rollout group ${group}`, meant: findNear(group, names)[0] }];
  });
}

function findAllPaused({ groups }: DoctorFacts): Zone[] {
  return [...groups.values()].flatMap((own) => (own.every(({ paused }) => paused) ? own.slice(0, 1) : []));
}

/** StatefulSets as in a copy of a managed one, or after the finalizer of their PhasedRollout was removed by hand. */
function findClaims({ phased, claimed }: DoctorFacts) {
  return claimed.filter(
    ({ namespace, name, owner }) =>
      !phased.some(
        ({ rollout }) => rollout.namespace === namespace && rollout.name === owner && rollout.targetRef === name,
      ),
  );
}
