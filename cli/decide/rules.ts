/** For each reason to wait: the rule that says no, and the smallest change that lets it say yes. Pure. */
import type { VerdictReason } from "../../reconciler/budget/verdict.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import type { Reason } from "../../reconciler/model/decision.ts";
import { RETRY_ANNOTATION } from "../../reconciler/gates/gate.ts";

/** Not of a request that no command sends, nor of a pod that is not there: a command names those that are. */
export type Denial = Exclude<VerdictReason, "Allowed" | "PodNotReady" | "OtherPod" | "PodNotInScope" | "InvalidRequest" | "PodNotFound">;

/** What is told of a reason, by the objects that block. */
export interface Told {
  readonly namespace: string;
  readonly message: string;
  readonly objects: readonly { readonly kind: string; readonly name: string }[];
}

export interface RuleFacts {
  /** What must hold. */
  readonly rule: string;
  readonly remedy: (told: Told) => string;
}

const named =
  (kind: string) =>
  ({ objects }: Told): string[] =>
    objects.flatMap((one) => (one.kind === kind ? [one.name] : []));
const zonesOf = named("StatefulSet");
const podsOf = named("Pod");

/** The object of the rule: the first StatefulSet. */
const zone = (told: Told): string => zonesOf(told)[0] ?? "ZONE";
const budget = (told: Told): string => named("ZoneAwarePodDisruptionBudget")(told)[0] ?? "BUDGET";
const gate = (told: Told): string => named("RolloutGate")(told)[0] ?? "GATE";
const others = (told: Told): string => zonesOf(told).slice(1).join(" and ") || zone(told);

const kubectl = ({ namespace }: Told, command: string): string => `kubectl -n ${namespace} ${command}`;
const annotate = (told: Told, change: string): string => kubectl(told, `annotate --overwrite statefulset ${zone(told)} ${change}`);
const look = (told: Told): string => kubectl(told, `describe pod ${podsOf(told).join(" ")}`.trim());
const edit = (told: Told, what: string): string => `correct ${what}: ${kubectl(told, `edit statefulset ${zone(told)}`)}`;

export const RULES: Readonly<Record<Reason | Denial, RuleFacts>> = {
  UpdateStrategyNotOnDelete: {
    rule: "every zone of a group has the update strategy OnDelete",
    remedy: (told) =>
      kubectl(
        told,
        `patch statefulset ${zone(told)} --type=merge -p '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}'`,
      ),
  },
  RevisionUnknown: {
    rule: "the status of a zone names its revisions",
    remedy: (told) => `get kube-controller-manager to work again: it writes the status of ${zone(told)}`,
  },
  StatusNotObserved: {
    rule: "the StatefulSet controller has seen the latest spec of every zone",
    remedy: (told) => `wait for ${zone(told)}; if it lasts, get kube-controller-manager to work again`,
  },
  ZoneTerminating: {
    rule: "no zone of the group is being deleted",
    remedy: (told) =>
      `wait until it is gone, or remove what holds it: ${kubectl(told, `get statefulset ${zone(told)} -o jsonpath={.metadata.finalizers}`)}`,
  },
  MultipleZonesNotReady: {
    rule: "at most one zone has pods that are not ready",
    remedy: (told) => `make the pods of all but one of these zones ready: ${zonesOf(told).join(", ")}`,
  },
  OtherZoneNotReady: {
    rule: "all other zones, paused ones too, have all their pods, ready",
    remedy: (told) => `make all pods of ${others(told)} ready: ${kubectl(told, "get pods")}`,
  },
  MaxUnavailableReached: {
    rule: "a zone has fewer unavailable pods than rollout-max-unavailable",
    remedy: (told) => `wait for the pods; if they cannot start, revert the template: zonewise undo GROUP; or look: ${look(told)}`,
  },
  ZoneNotReady: {
    rule: "all pods of a zone are ready before the next zone begins",
    remedy: (told) => `wait for the pods; if they cannot start, revert the template: zonewise undo GROUP; or look: ${look(told)}`,
  },
  ZonePaused: {
    rule: "a paused zone is left alone",
    remedy: (told) => kubectl(told, `annotate --overwrite statefulset ${zonesOf(told).join(" ")} ${ANNOTATIONS.paused}-`),
  },
  BudgetSpent: {
    rule: "the disruption budget has room: all other zones are whole, and the pod's own has fewer unavailable pods than it allows",
    remedy: (told) => `wait for the pods that it counts, or make them ready: ${look(told)}`,
  },
  BudgetUnusable: {
    rule: "the disruption budget of a pod is valid, fits its StatefulSets, and is the only one",
    remedy: (told) => kubectl(told, `edit zpdb ${budget(told)}`),
  },
  GateWaiting: {
    rule: "the checks of a gate have passed before the next zone begins",
    remedy: (told) => `wait for the checks, or let the gate only observe: ${observe(told)}`,
  },
  GateFailed: {
    rule: "no check of a gate has failed too often",
    remedy: (told) =>
      `revert the template, or ask again by the annotation ${RETRY_ANNOTATION} that the message names, on rolloutgate ${gate(told)}`,
  },
  GateUnreachable: {
    rule: "Prometheus answers the checks of a gate",
    remedy: (told) => `get Prometheus to answer, or let the gate only observe: ${observe(told)}`,
  },
  LeaderNotFound: {
    rule: "the leader of a zone is in its group",
    remedy: (told) => annotate(told, `${ANNOTATIONS.downscaleLeader}=LEADER`),
  },
  LeaderCycle: { rule: "leaders form no cycle", remedy: (told) => annotate(told, `${ANNOTATIONS.downscaleLeader}-`) },
  LeaderAndMirror: {
    rule: "a zone has a leader or a resource to mirror, not both",
    remedy: (told) => annotate(told, `${ANNOTATIONS.downscaleLeader}-`),
  },
  LeaderNotReady: {
    rule: "all pods of the leader are ready before a follower grows",
    remedy: (told) => `wait for ${others(told)}, or do without: ${annotate(told, `${ANNOTATIONS.upscaleOnlyWhenLeaderReady}-`)}`,
  },
  MinTimeBetweenZones: {
    rule: "the minimum time since the downscale of another zone is over",
    remedy: (told) => `wait; if data may be lost: ${annotate(told, `${ANNOTATIONS.forceReplicas}=N`)}`,
  },
  MinTimeUnknown: {
    rule: "it can be read when other zones were scaled down, and how long to wait",
    remedy: (told) => edit(told, "the label or the time that the message names"),
  },
  ReferenceUnreadable: {
    rule: "the resource that a zone mirrors can be read",
    remedy: (told) => `create the resource that the message names, or let the reconciler read it; or ${edit(told, "the annotations")}`,
  },
  DelayInvalid: {
    rule: "the delay and the URL of a delayed downscale can be read",
    remedy: (told) => edit(told, "what the message names"),
  },
  PrepareFailed: {
    rule: "every pod that is to go has prepared for it",
    remedy: (told) => `find out why the pod that the message names refuses: ${kubectl(told, "logs POD")}`,
  },
  DelayNotReached: {
    rule: "the last pods of a zone have been prepared for the time of its delay",
    remedy: (told) => `wait, or shorten the delay: ${annotate(told, `${ANNOTATIONS.delayedDownscale}=1h`)}`,
  },
  ScaleRefused: {
    rule: "the API server and its webhooks accept the change of replicas",
    remedy: (told) => edit(told, "what the refusal in the message names"),
  },
  SeveralBudgets: {
    rule: "one disruption budget selects the pod, not several",
    remedy: (told) => kubectl(told, `edit zpdb ${budget(told)}`),
  },
  BudgetInvalid: { rule: "the disruption budget is valid", remedy: (told) => kubectl(told, `edit zpdb ${budget(told)}`) },
  OwnerNotFound: {
    rule: "a StatefulSet that the budget selects owns the pod",
    remedy: (told) =>
      `give the StatefulSet the labels that the budget selects: ${kubectl(told, `get zpdb ${budget(told)} -o jsonpath={.spec.selector}`)}`,
  },
  MaxUnavailableZero: {
    rule: "the disruption budget allows at least one unavailable pod",
    remedy: (told) => kubectl(told, `patch zpdb ${budget(told)} --type=merge -p '{"spec":{"maxUnavailable":1}}'`),
  },
  TooFewZones: {
    rule: "the disruption budget selects two StatefulSets or more",
    remedy: (told) =>
      `give the other zones the labels that the budget selects: ${kubectl(told, `get zpdb ${budget(told)} -o jsonpath={.spec.selector}`)}`,
  },
  PartitionUnknown: {
    rule: "the budget's regular expression finds the partition in the pod's name",
    remedy: (told) => kubectl(told, `edit zpdb ${budget(told)}`),
  },
  AllowedAlready: { rule: "a pod is allowed to go once", remedy: () => "try again once it is gone, or in 15 seconds" },
  PodTerminating: { rule: "the pod is not terminating already", remedy: () => "try again once it is gone" },
  NotNow: { rule: "a decision is made in time", remedy: () => "try again; if it lasts, the log of the functions says why" },
};

function observe(told: Told): string {
  return kubectl(told, `patch rolloutgate ${gate(told)} --type=merge -p '{"spec":{"mode":"Observe"}}'`);
}

export const isKnown = (reason: string): reason is Reason | Denial => Object.hasOwn(RULES, reason);
