/** Checks of `zonewise doctor`: what zones mirror, gates, PhasedRollouts, policies of node updates. Pure. */
import { findNear } from "../../../infra/edit-distance.ts";
import { noteBypasses } from "../../../reconciler/gates/bypass.ts";
import { type Gate, isReadable } from "../../../reconciler/gates/gate.ts";
import { ANNOTATIONS } from "../../../reconciler/model/annotations.ts";
import type { Mirror } from "../../../reconciler/model/scaling.ts";
import { groupKey, type Zone } from "../../../reconciler/model/zone.ts";
import { isInvalid, type InvalidPolicy, type Policy } from "../../../reconciler/nodes/policy.ts";
import type { Target } from "../../../reconciler/phased/target.ts";
import { kubectl } from "../../../reconciler/remedies/cures.ts";
import type { Phased } from "../explain-phased.ts";
import { SKIP_RULES } from "../node-rules.ts";
import { annotate, type Check, edit, row } from "./check.ts";
import type { Right } from "./rights.ts";

/** The result of reading the resource that a zone mirrors. */
export interface MirrorReading {
  readonly zone: Zone;
  readonly mirror: Mirror;
  /** The reason why the resource was not read; undefined if it was. */
  readonly missing: string | undefined;
  /** The names of its kind in the namespace, if they may be listed. */
  readonly names: readonly string[];
}

export const MIRRORS: readonly Check<readonly MirrorReading[]>[] = [
  row({
    check: "mirror-missing",
    level: "error",
    when: (readings) => readings.filter(({ missing }) => missing !== undefined),
    object: ({ zone }) => `statefulset/${zone.name}`,
    message: ({ mirror, missing }) =>
      `it mirrors ${mirror.kind}/${mirror.name}, which cannot be read (${missing}): it is not scaled`,
    fix: ({ zone, mirror, names }) => {
      const [near] = findNear(mirror.name, names);
      if (near !== undefined) return annotate(zone, `${ANNOTATIONS.mirrorName}=${near}`);
      const without = `${ANNOTATIONS.mirrorName}- ${ANNOTATIONS.mirrorKind}- ${ANNOTATIONS.mirrorApiVersion}-`;
      return `create ${mirror.kind} ${mirror.name} in ${zone.namespace}; or do without: ${annotate(zone, without)}`;
    },
  }),
];

/** PhasedRollouts and their surroundings. */
export interface PhasedFacts {
  readonly phased: readonly Phased[];
  /** Whether admission raises partitions in a namespace. */
  readonly isGuarded: (namespace: string) => boolean;
  /** The StatefulSets of a namespace that a PhasedRollout may manage. */
  readonly targetsOf: (namespace: string) => readonly string[];
  /** The StatefulSets that say which PhasedRollout manages them. */
  readonly claimed: readonly Pick<Target, "namespace" | "name" | "owner">[];
}

interface Found {
  readonly rollout: Phased["rollout"];
  readonly target: Target;
  readonly all: readonly Phased[];
}

const objectOf = ({ rollout }: Pick<Phased, "rollout">): string => `phasedrollout/${rollout.name}`;
const remove = ({ rollout }: Pick<Phased, "rollout">): string =>
  kubectl(rollout, `delete phasedrollout ${rollout.name}`);

/** Those whose StatefulSet exists. */
const withTarget = ({ phased: all }: PhasedFacts): Found[] =>
  all.flatMap(({ rollout, target }) => (target ? [{ rollout, target, all }] : []));
const manageable = (facts: PhasedFacts): Found[] =>
  withTarget(facts).filter(({ target }) => !target.isZone && target.updateStrategy === "RollingUpdate");

/** The PhasedRollout that should stay in place of this one: the one that manages, as its deletion would release all pods. */
const findRival = ({ rollout, target: { owner }, all }: Found): Phased | undefined =>
  all.find(({ rollout: one }) => {
    const isSame = one.namespace === rollout.namespace && one.targetRef === rollout.targetRef;
    return one !== rollout && isSame && precedes(one.name, rollout.name, owner);
  });

/** As long as none manages the StatefulSet, either may be deleted. */
const precedes = (one: string, other: string, owner: string | undefined): boolean =>
  one === owner || (other !== owner && one < other);

const manages = ({ namespace, name, targetRef }: Phased["rollout"], claimed: PhasedFacts["claimed"][number]): boolean =>
  namespace === claimed.namespace && name === claimed.owner && targetRef === claimed.name;

/** The nearest StatefulSet that no PhasedRollout targets. */
function nearTarget(
  { rollout: { namespace, targetRef } }: Phased,
  { phased, targetsOf }: PhasedFacts,
): string | undefined {
  const taken = new Set(phased.flatMap(({ rollout }) => (rollout.namespace === namespace ? [rollout.targetRef] : [])));
  return findNear(
    targetRef,
    targetsOf(namespace).filter((target) => !taken.has(target)),
  )[0];
}

export const PHASED: readonly Check<PhasedFacts>[] = [
  row({
    check: "phased-target",
    level: "error",
    when: (facts) =>
      facts.phased.filter(({ target }) => !target).map((one) => ({ ...one, near: nearTarget(one, facts) })),
    object: objectOf,
    message: ({ rollout, near }) =>
      `there is no StatefulSet ${rollout.targetRef}${near === undefined ? "" : `; is ${near} meant?`}`,
    // The field is immutable, so the object has to be created again.
    fix: ({ rollout, near }) =>
      near === undefined
        ? remove({ rollout })
        : `if so: ${kubectl(rollout, `get phasedrollout ${rollout.name} -o yaml`)} | sed 's/^  targetRef: .*/  targetRef: ${near}/' | kubectl replace --force -f -`,
  }),
  row({
    check: "phased-grouped",
    level: "error",
    when: (facts) => withTarget(facts).filter(({ target }) => target.isZone),
    object: objectOf,
    message: ({ target }) => `${target.name} is a zone of group ${target.group}: it is not managed`,
    fix: ({ rollout }) => `guard the group with a RolloutGate instead, and ${remove({ rollout })}`,
  }),
  row({
    check: "phased-strategy",
    level: "error",
    when: (facts) =>
      withTarget(facts).filter(({ target }) => !target.isZone && target.updateStrategy !== "RollingUpdate"),
    object: objectOf,
    message: ({ target }) => `${target.name} has update strategy ${target.updateStrategy}; RollingUpdate is needed`,
    fix: ({ rollout, target }) => edit({ namespace: rollout.namespace, name: target.name }),
  }),
  row({
    check: "phased-twice",
    level: "error",
    when: (facts) =>
      manageable(facts).flatMap((found) => {
        const rival = findRival(found);
        return rival ? [{ ...found, rival }] : [];
      }),
    object: objectOf,
    message: ({ rival, target }) => `${rival.rollout.name} targets ${target.name} as well, and this one does nothing`,
    fix: remove,
  }),
  row({
    check: "not-valid",
    level: "error",
    when: ({ phased }) => phased.filter(({ rollout }) => rollout.problem !== undefined),
    object: objectOf,
    message: ({ rollout }) => `it is not valid: ${rollout.problem}`,
    fix: ({ rollout }) => edit(rollout, "phasedrollout"),
  }),
  row({
    // As in a copy of a managed StatefulSet, or after the finalizer of its PhasedRollout was removed by hand.
    check: "phased-claim",
    level: "error",
    when: ({ phased, claimed }) => claimed.filter((one) => !phased.some(({ rollout }) => manages(rollout, one))),
    object: ({ name }) => `statefulset/${name}`,
    message: ({ owner }) =>
      `its annotation ${ANNOTATIONS.phasedRollout} names PhasedRollout ${owner}, and there is none of this name for it: admission holds each new template, and nothing releases it`,
    fix: (set) =>
      `${kubectl(set, `annotate statefulset ${set.name} ${ANNOTATIONS.phasedRollout}- ${ANNOTATIONS.originalPartition}-`)}; its pods get a template that is held once its partition is set to 0`,
  }),
  row({
    check: "partition-not-raised",
    level: "warning",
    when: (facts) =>
      withTarget(facts)
        .filter(({ rollout }) => !rollout.skipCheck && !facts.isGuarded(rollout.namespace))
        .slice(0, 1),
    object: objectOf,
    message: ({ target }) =>
      `neither an admission policy nor a webhook raises the partition: a new template of ${target.name} in the middle of a rollout replaces pods unchecked until the next tick`,
    fix: () => "kubectl apply -k infra/manifests/phased-policy (Kubernetes 1.36), or -k infra/manifests/webhooks",
  }),
];

interface GateFacts {
  readonly gates: readonly Gate[];
  /** The rollout groups of all namespaces with their zones, by `groupKey`. */
  readonly groups: ReadonlyMap<string, readonly Zone[]>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const objectOfGate = ({ gate }: { readonly gate: Gate }): string => `rolloutgate/${gate.ref.name}`;
const editGate = ({ gate }: { readonly gate: Gate }): string => edit(gate.ref, "rolloutgate");
const patchGate = ({ ref }: Gate, spec: object): string =>
  kubectl(ref, `patch rolloutgate ${ref.name} --type=merge -p '${JSON.stringify({ spec })}'`);

/** Gates that can be read, with the zones of their group. */
const readable = ({ gates, groups }: GateFacts) =>
  gates.filter(isReadable).map((gate) => {
    const { namespace } = gate.ref;
    const names = [...groups.keys()].flatMap((key) =>
      key.startsWith(`${namespace}/`) ? [key.slice(namespace.length + 1)] : [],
    );
    return {
      gate,
      zones: groups.get(groupKey({ namespace, group: gate.group })),
      near: findNear(gate.group, names)[0],
    };
  });

/** Zones whose bypass of their gates was refused. A value that is no time is a problem of its zone. */
const findRefused = ({ gates, groups, now }: GateFacts) =>
  [...groups.values()].flat().flatMap((zone) => {
    const { namespace, group, bypass } = zone;
    if (bypass === undefined) return [];
    const own = gates.filter((gate) => gate.group === group && gate.ref.namespace === namespace);
    const noted = [{ record: undefined }, ...own].flatMap(({ record }) =>
      noteBypasses(record?.bypasses ?? [], [zone], now),
    );
    return noted.some(({ accepted }) => !accepted) ? [{ zone, bypass }] : [];
  });

export const GATES: readonly Check<GateFacts>[] = [
  row({
    check: "gate-unreadable",
    level: "error",
    when: ({ gates }) => gates.filter((gate) => !isReadable(gate)).map((gate) => ({ gate })),
    object: objectOfGate,
    message: () => "it has no check that can be read: it never opens",
    fix: editGate,
  }),
  row({
    check: "not-valid",
    level: "error",
    when: (facts) =>
      readable(facts).flatMap(({ gate, zones }) => {
        const wrong = zones && gate.conditions.find(({ type, status }) => type === "Valid" && status === "False");
        return wrong ? [{ gate, wrong }] : [];
      }),
    object: objectOfGate,
    message: ({ wrong }) => `it is not valid: ${wrong.reason}, ${wrong.message}`,
    fix: editGate,
  }),
  row({
    check: "bypass-refused",
    level: "error",
    when: findRefused,
    object: ({ zone }) => `statefulset/${zone.name}`,
    message: ({ bypass }) =>
      `its annotation ${ANNOTATIONS.bypassGatesUntil} is ${bypass.until}, which was more than 24 h ahead: it bypasses no gate, now or later`,
    fix: ({ zone }) => `zonewise -n ${zone.namespace} bypass ${zone.group} --zone ${zone.name} --end`,
  }),
  row({
    check: "gate-without-group",
    level: "warning",
    when: (facts) => readable(facts).filter(({ zones }) => !zones),
    object: objectOfGate,
    message: ({ gate, near }) =>
      `there is no rollout group ${gate.group}${near === undefined ? "" : `; is ${near} meant?`}: it guards nothing`,
    fix: ({ gate, near }) => (near === undefined ? editGate({ gate }) : `if so: ${patchGate(gate, { group: near })}`),
  }),
  row({
    // A gate between zones is never queried in a group with fewer than two zones that have pods (§1.14).
    check: "gate-never-asked",
    level: "warning",
    when: (facts) =>
      readable(facts).flatMap(({ gate, zones }) => {
        const serving = zones?.filter(({ replicas }) => replicas > 0) ?? [];
        const isOnlyBetween = gate.when.every((point) => point === "BetweenZones");
        return zones && isOnlyBetween && serving.length <= 1 ? [{ gate, isSingle: zones.length === 1 }] : [];
      }),
    object: objectOfGate,
    message: ({ isSingle }) =>
      `it is asked between zones, and ${isSingle ? "its group has one zone" : "fewer than two zones of its group have pods"}: it holds nothing`,
    fix: ({ gate }) => `to ask before each rollout: ${patchGate(gate, { when: ["BeforeFirstZone", "BetweenZones"] })}`,
  }),
];

export const POLICIES: readonly Check<readonly (Policy | InvalidPolicy)[]>[] = [
  row({
    check: "updates-frozen",
    level: "error",
    when: (policies) =>
      policies.flatMap((policy) => {
        const frozen = isInvalid(policy) ? undefined : policy.status.frozen;
        return frozen ? [{ policy: policy.name, frozen }] : [];
      }),
    object: ({ policy }) => `nodeupdatepolicy/${policy}`,
    message: ({ frozen }) => `no node update starts since ${frozen.at}: ${frozen.message}`,
    fix: ({ policy, frozen }) => SKIP_RULES.Frozen.remedy({ node: "NODE", policy, freeze: frozen.id, namespace: "" }),
  }),
  row({
    check: "policy-invalid",
    level: "error",
    when: (policies) =>
      policies.flatMap((policy) => {
        const problem = isInvalid(policy) ? policy.unreadable : policy.problem;
        return problem === undefined ? [] : [{ policy: policy.name, problem }];
      }),
    object: ({ policy }) => `nodeupdatepolicy/${policy}`,
    message: ({ problem }) => `it starts nothing: ${problem}`,
    fix: ({ policy }) => `kubectl edit nodeupdatepolicy ${policy}`,
  }),
];

/** A Secret with the credentials of a query. */
interface CheckSecret {
  readonly namespace: string;
  readonly name: string;
  /** `phasedrollout/db`: the object that names it. */
  readonly by: string;
}

export function listSecrets(phased: readonly Phased[], gates: readonly Gate[]): CheckSecret[] {
  const ofPhased = phased.flatMap(({ rollout: { namespace, name, check } }) =>
    toSecret(namespace, check.query.secretRef, `phasedrollout/${name}`),
  );
  const ofGates = gates.flatMap(({ ref, checks }) =>
    checks.flatMap(({ query }) => toSecret(ref.namespace, query.secretRef, `rolloutgate/${ref.name}`)),
  );
  return [...ofPhased, ...ofGates];
}

const toSecret = (namespace: string, name: string | undefined, by: string): CheckSecret[] =>
  name ? [{ namespace, name, by }] : [];

export const rightOf = ({ name }: CheckSecret): Right => ({ verb: "get", group: "", resource: "secrets", name });

/** Of Secrets that the reconciler may not get. */
export const SECRETS: readonly Check<readonly CheckSecret[]>[] = [
  row({
    check: "secret-right",
    level: "error",
    when: (forbidden) => forbidden,
    object: ({ by }) => by,
    message: ({ name }) => `the reconciler may not get Secret ${name}: its check cannot be asked`,
    fix: ({ name }) => `add ${name} to infra/manifests/prometheus-secrets and apply it`,
  }),
];
