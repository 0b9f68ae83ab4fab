/** Findings of `zonewise doctor` about PhasedRollouts, gates and node updates. Pure. */
import { findNear } from "../../infra/edit-distance.ts";
import { type Gate, isReadable } from "../../reconciler/gates/gate.ts";
import { describeBypass, noteBypasses } from "../../reconciler/gates/bypass.ts";
import { bypassesOf } from "../../reconciler/gates/hold.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import { groupKey, type Zone } from "../../reconciler/model/zone.ts";
import type { Target } from "../../reconciler/phased/target.ts";
import { isInvalid, type InvalidPolicy, type Policy } from "../../reconciler/nodes/policy.ts";
import type { Phased } from "./explain-phased.ts";
import type { Finding } from "./findings.ts";
import type { Right } from "./reconciler-rights.ts";
import { SKIP_RULES } from "./node-rules.ts";

/** The context of the PhasedRollouts. */
export interface PhasedScene {
  /** Whether admission raises partitions in a namespace. */
  readonly isGuarded: (namespace: string) => boolean;
  /** The StatefulSets of a namespace that a PhasedRollout may manage. */
  readonly targetsOf: (namespace: string) => readonly string[];
  /** The StatefulSets that say which PhasedRollout manages them. */
  readonly claimed: readonly Pick<Target, "namespace" | "name" | "owner">[];
}

/** Findings of all PhasedRollouts of a namespace. */
export function examinePhased(phased: readonly Phased[], { isGuarded, targetsOf, claimed }: PhasedScene): Finding[] {
  const unguarded = phased.find(({ rollout, target }) => target && !rollout.skipCheck && !isGuarded(rollout.namespace));
  return [
    ...phased.flatMap((one) =>
      one.target ? examineTarget(one, phased) : [noTarget(one, phased, targetsOf(one.rollout.namespace))],
    ),
    ...phased.flatMap(({ rollout: { namespace, name, problem } }) =>
      problem === undefined ? [] : [notValid({ kind: "phasedrollout", namespace, name }, problem)],
    ),
    ...claimed.filter((one) => !phased.some(({ rollout }) => manages(rollout, one))).map(claimIsStale),
    ...(unguarded ? [notRaised(unguarded)] : []),
  ];
}

const manages = ({ namespace, name, targetRef }: Phased["rollout"], claimed: PhasedScene["claimed"][number]): boolean =>
  namespace === claimed.namespace && name === claimed.owner && targetRef === claimed.name;

/** As in a copy of a managed StatefulSet, or after the finalizer of its PhasedRollout was removed by hand. */
function claimIsStale({ namespace, name, owner }: PhasedScene["claimed"][number]): Finding {
  return {
    level: "error",
    check: "phased-claim",
    object: `statefulset/${name}`,
    message:
      `its annotation ${ANNOTATIONS.phasedRollout} names PhasedRollout ${owner}, and there is none of this name for it: ` +
      "admission holds each new template, and nothing releases it",
    fix:
      `kubectl -n ${namespace} annotate statefulset ${name} ${ANNOTATIONS.phasedRollout}- ${ANNOTATIONS.originalPartition}-; ` +
      "its pods get a template that is held once its partition is set to 0",
  };
}

/** The definition makes the field immutable, so the object has to be created again. */
function noTarget({ rollout }: Phased, all: readonly Phased[], targets: readonly string[]): Finding {
  const { namespace, name, targetRef } = rollout;
  const taken = new Set(all.flatMap((one) => (one.rollout.namespace === namespace ? [one.rollout.targetRef] : [])));
  const [near] = findNear(
    targetRef,
    targets.filter((target) => !taken.has(target)),
  );
  const get = `kubectl -n ${namespace} get phasedrollout ${name} -o yaml`;
  return {
    level: "error",
    check: "phased-target",
    object: `phasedrollout/${name}`,
    message: `there is no StatefulSet ${targetRef}${near === undefined ? "" : `; is ${near} meant?`}`,
    fix:
      near === undefined
        ? `kubectl -n ${namespace} delete phasedrollout ${name}`
        : `if so: ${get} | sed 's/^  targetRef: .*/  targetRef: ${near}/' | kubectl replace --force -f -`,
  };
}

interface Judged {
  readonly kind: "phasedrollout" | "rolloutgate";
  readonly namespace: string;
  readonly name: string;
}

/** Its spec, or one of its expressions, has no effect. */
const notValid = ({ kind, namespace, name }: Judged, why: string): Finding => ({
  level: "error",
  check: "not-valid",
  object: `${kind}/${name}`,
  message: `it is not valid: ${why}`,
  fix: `kubectl -n ${namespace} edit ${kind} ${name}`,
});

function examineTarget({ rollout, target }: Phased, all: readonly Phased[]): Finding[] {
  const { namespace, name, targetRef } = rollout;
  const rivals = all.filter(
    (one) => one.rollout !== rollout && one.rollout.namespace === namespace && one.rollout.targetRef === targetRef,
  );
  const object = `phasedrollout/${name}`;
  const remove = `kubectl -n ${namespace} delete phasedrollout ${name}`;
  const find = (check: string, message: string, fix: string): Finding => ({
    level: "error",
    check,
    object,
    message,
    fix,
  });
  if (!target) return [];
  if (target.isZone)
    return [
      find(
        "phased-grouped",
        `${targetRef} is a zone of group ${target.group}: it is not managed`,
        `guard the group with a RolloutGate instead, and ${remove}`,
      ),
    ];
  if (target.updateStrategy !== "RollingUpdate")
    return [
      find(
        "phased-strategy",
        `${targetRef} has update strategy ${target.updateStrategy}; RollingUpdate is needed`,
        `kubectl -n ${namespace} edit statefulset ${targetRef}`,
      ),
    ];
  const other = rivals.find((rival) => precedes(rival.rollout.name, name, target.owner));
  return other
    ? [find("phased-twice", `${other.rollout.name} targets ${targetRef} as well, and this one does nothing`, remove)]
    : [];
}

/**
 * True if `one` should stay: the PhasedRollout that manages the StatefulSet stays, because its deletion would release
 * all pods unchecked. As long as none manages it, either may be deleted.
 */
const precedes = (one: string, other: string, owner: string | undefined): boolean =>
  one === owner || (other !== owner && one < other);

const notRaised = ({ rollout, target }: Phased): Finding => ({
  level: "warning",
  check: "partition-not-raised",
  object: `phasedrollout/${rollout.name}`,
  message: `neither an admission policy nor a webhook raises the partition: a new template of ${target?.name} in the middle of a rollout replaces pods unchecked until the next tick`,
  fix: "kubectl apply -k infra/manifests/phased-policy (Kubernetes 1.36), or -k infra/manifests/webhooks",
});

/** Findings of all gates of a namespace; `groups` are its rollout groups with their zones, by `groupKey`. */
export function examineGates(gates: readonly Gate[], groups: ReadonlyMap<string, readonly Zone[]>): Finding[] {
  return gates.flatMap((gate): Finding[] => {
    const { ref, group, conditions } = gate;
    const object = `rolloutgate/${ref.name}`;
    const fix = `kubectl -n ${ref.namespace} edit rolloutgate ${ref.name}`;
    if (!isReadable(gate))
      return [
        {
          level: "error",
          check: "gate-unreadable",
          object,
          message: "it has no check that can be read: it never opens",
          fix,
        },
      ];
    const { namespace, name } = ref;
    const wrong = conditions.find(({ type, status }) => type === "Valid" && status === "False");
    const why = wrong && `${wrong.reason}, ${wrong.message}`;
    const invalid = why === undefined ? [] : [notValid({ kind: "rolloutgate", namespace, name }, why)];
    const zones = groups.get(groupKey({ namespace, group }));
    if (zones) return [...invalid, ...examinePoints(gate, zones)];
    const others = [...groups.keys()].flatMap((key) =>
      key.startsWith(`${namespace}/`) ? [key.slice(namespace.length + 1)] : [],
    );
    const [near] = findNear(group, others);
    return [
      {
        level: "warning",
        check: "gate-without-group",
        object,
        message: `there is no rollout group ${group}${near === undefined ? "" : `; is ${near} meant?`}: it guards nothing`,
        fix:
          near === undefined
            ? fix
            : `if so: kubectl -n ${namespace} patch rolloutgate ${name} --type=merge -p '{"spec":{"group":"${near}"}}'`,
      },
    ];
  });
}

/** A gate between zones is never queried in a group with fewer than two zones that have pods (§1.14). */
function examinePoints({ ref: { namespace, name }, when }: Gate, zones: readonly Zone[]): Finding[] {
  const serving = zones.filter(({ replicas }) => replicas > 0);
  if (when.some((point) => point !== "BetweenZones") || serving.length > 1) return [];
  const why = zones.length === 1 ? "its group has one zone" : "fewer than two zones of its group have pods";
  return [
    {
      level: "warning",
      check: "gate-never-asked",
      object: `rolloutgate/${name}`,
      message: `it is asked between zones, and ${why}: it holds nothing`,
      fix: `to ask before each rollout: kubectl -n ${namespace} patch rolloutgate ${name} --type=merge -p '{"spec":{"when":["BeforeFirstZone","BetweenZones"]}}'`,
    },
  ];
}

/**
 * Findings of bypasses, by the groups of all zones with their gates. A value that is no time is reported as a problem
 * of its zone.
 */
export function examineBypasses(zones: readonly Zone[], gates: readonly Gate[], now: number): Finding[] {
  return zones.flatMap((zone): Finding[] => {
    const { namespace, name, group, bypass } = zone;
    const own = gates.filter((gate) => gate.group === group && gate.ref.namespace === namespace);
    if (bypass === undefined) return [];
    const object = `statefulset/${name}`;
    const end = `zonewise -n ${namespace} bypass ${group} --zone ${name} --end`;
    const [active] = bypassesOf(own, { zones: [zone], now });
    const seen = [{ record: undefined }, ...own].map(({ record }) => noteBypasses(record?.bypasses ?? [], [zone], now));
    const isRefused = seen.flat().some(({ accepted }) => !accepted);
    if (isRefused)
      return [
        {
          level: "error",
          check: "bypass-refused",
          object,
          message: `its annotation ${ANNOTATIONS.bypassGatesUntil} is ${bypass.until}, which was more than 24 h ahead: it bypasses no gate, now or later`,
          fix: end,
        },
      ];
    const message = active && `it may begin without its gates ${describeBypass(active)}`;
    return message === undefined ? [] : [{ level: "warning", check: "gates-bypassed", object, message, fix: end }];
  });
}

/** Findings of all policies of the cluster; `namespace` is that of the agents and the shadows. */
export function examinePolicies(policies: readonly (Policy | InvalidPolicy)[], namespace: string): Finding[] {
  return policies.flatMap((policy) =>
    isInvalid(policy) ? [invalid(policy.name, policy.unreadable)] : examinePolicy(policy, namespace),
  );
}

const invalid = (name: string, message: string): Finding => ({
  level: "error",
  check: "policy-invalid",
  object: `nodeupdatepolicy/${name}`,
  message: `it starts nothing: ${message}`,
  fix: `kubectl edit nodeupdatepolicy ${name}`,
});

function examinePolicy({ name, problem, status }: Policy, namespace: string): Finding[] {
  const { frozen, skipped } = status;
  const object = `nodeupdatepolicy/${name}`;
  const context = { node: "NODE", policy: name, freeze: frozen?.id ?? "", namespace };
  const silent = skipped["AgentSilent"] ?? 0;
  return [
    ...(problem === undefined ? [] : [invalid(name, problem)]),
    ...(frozen
      ? [
          {
            level: "error",
            check: "updates-frozen",
            object,
            message: `no node update starts since ${frozen.at}: ${frozen.message}`,
            fix: SKIP_RULES.Frozen.remedy(context),
          } as const,
        ]
      : []),
    ...(silent > 0
      ? [
          {
            level: "warning",
            check: "agents-silent",
            object,
            message: `the agents of ${silent} nodes have not reported`,
            fix: `kubectl -n ${namespace} get daemonset brupop-agent`,
          } as const,
        ]
      : []),
  ];
}

/** A Secret with the credentials of a query. */
export interface CheckSecret {
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

export const secretForbidden = ({ name, by }: CheckSecret): Finding => ({
  level: "error",
  check: "secret-right",
  object: by,
  message: `the reconciler may not get Secret ${name}: its check cannot be asked`,
  fix: `add ${name} to infra/manifests/prometheus-secrets and apply it`,
});
