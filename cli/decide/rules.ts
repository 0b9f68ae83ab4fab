/** For each reason to wait: the rule that says no, and the smallest change that lets it say yes. Pure. */
import type { VerdictReason } from "../../reconciler/budget/verdict.ts";
import { ANNOTATIONS, LABELS } from "../../reconciler/model/annotations.ts";
import type { Reason } from "../../reconciler/model/decision.ts";
import { RETRY_ANNOTATION } from "../../reconciler/gates/gate.ts";
import { MAX_ZONES } from "../../reconciler/model/too-many-zones.ts";

/** Not of a request that no command sends, nor of a pod that is not there: a command names those that are. */
export type Denial = Exclude<
  VerdictReason,
  "Allowed" | "PodNotReady" | "OtherPod" | "PodNotInScope" | "InvalidRequest" | "PodNotFound"
>;

/** What a remedy is about: the objects that block. */
export interface RuleContext {
  readonly namespace: string;
  readonly message: string;
  readonly objects: readonly { readonly kind: string; readonly name: string }[];
}

export interface RuleFacts {
  /** What must hold. */
  readonly rule: string;
  readonly remedy: (context: RuleContext) => string;
}

const named =
  (kind: string) =>
  ({ objects }: RuleContext): string[] =>
    objects.flatMap((one) => (one.kind === kind ? [one.name] : []));
const zonesOf = named("StatefulSet");
const podsOf = named("Pod");

/** The object of the rule: the first StatefulSet. */
const zone = (context: RuleContext): string => zonesOf(context)[0] ?? "ZONE";
const budget = (context: RuleContext): string => named("ZoneAwarePodDisruptionBudget")(context)[0] ?? "BUDGET";
const gate = (context: RuleContext): string => named("RolloutGate")(context)[0] ?? "GATE";
const others = (context: RuleContext): string => zonesOf(context).slice(1).join(" and ") || zone(context);

const kubectl = ({ namespace }: RuleContext, command: string): string => `kubectl -n ${namespace} ${command}`;
const annotate = (context: RuleContext, change: string): string =>
  kubectl(context, `annotate --overwrite statefulset ${zone(context)} ${change}`);
const look = (context: RuleContext): string => kubectl(context, `describe pod ${podsOf(context).join(" ")}`.trim());
const edit = (context: RuleContext, what: string): string =>
  `correct ${what}: ${kubectl(context, `edit statefulset ${zone(context)}`)}`;

export const RULES: Readonly<Record<Reason | Denial, RuleFacts>> = {
  UpdateStrategyNotOnDelete: {
    rule: "every zone of a group has the update strategy OnDelete",
    remedy: (context) =>
      kubectl(
        context,
        `patch statefulset ${zone(context)} --type=merge -p '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}'`,
      ),
  },
  TooManyZones: {
    rule: `a group has ${MAX_ZONES} zones at most`,
    remedy: (context) =>
      `give some of its zones another group: ${kubectl(context, `label --overwrite statefulset ZONE ${LABELS.rolloutGroup}=OTHER`)}`,
  },
  TurnAwaited: {
    rule: "few enough groups have a step under way that takes long",
    remedy: (context) =>
      `wait for them; if it lasts, find those whose pods or webhooks do not answer: ${kubectl(context, "get rolloutgroups")}`,
  },
  RevisionUnknown: {
    rule: "the status of a zone names its revisions",
    remedy: (context) => `get kube-controller-manager to work again: it writes the status of ${zone(context)}`,
  },
  StatusNotObserved: {
    rule: "the StatefulSet controller has seen the latest spec of every zone",
    remedy: (context) => `wait for ${zone(context)}; if it lasts, get kube-controller-manager to work again`,
  },
  ZoneTerminating: {
    rule: "no zone of the group is being deleted",
    remedy: (context) =>
      `wait until it is gone, or remove what holds it: ${kubectl(context, `get statefulset ${zone(context)} -o jsonpath={.metadata.finalizers}`)}`,
  },
  MultipleZonesNotReady: {
    rule: "at most one zone has pods that are not ready",
    remedy: (context) =>
      `fix or revert the template if it is at fault; otherwise make the pods of all but one of these zones ready: ${zonesOf(context).join(", ")}`,
  },
  OtherZoneNotReady: {
    rule: "all other zones, paused ones too, have all their pods, ready",
    remedy: (context) => `make all pods of ${others(context)} ready: ${kubectl(context, "get pods")}`,
  },
  MaxUnavailableReached: {
    rule: "a zone has fewer unavailable pods than rollout-max-unavailable",
    remedy: (context) =>
      `wait for the pods; if they cannot start, revert the template: zonewise undo GROUP; or look: ${look(context)}`,
  },
  ZoneNotReady: {
    rule: "all pods of a zone are ready before the next zone begins",
    remedy: (context) =>
      `wait for the pods; if they cannot start, revert the template: zonewise undo GROUP; or look: ${look(context)}`,
  },
  ZonePaused: {
    rule: "a paused zone is left alone",
    remedy: (context) =>
      kubectl(context, `annotate --overwrite statefulset ${zonesOf(context).join(" ")} ${ANNOTATIONS.paused}-`),
  },
  BudgetSpent: {
    rule: "the disruption budget has room: all other zones are whole, and the pod's own has fewer unavailable pods than it allows",
    remedy: (context) => `wait for the pods that it counts, or make them ready: ${look(context)}`,
  },
  BudgetUnusable: {
    rule: "the disruption budget of a pod is valid, fits its StatefulSets, and is the only one",
    remedy: (context) => kubectl(context, `edit zpdb ${budget(context)}`),
  },
  GateWaiting: {
    rule: "the checks of a gate have passed before the next zone begins",
    remedy: (context) => `wait for the checks, or let the gate only observe: ${observe(context)}`,
  },
  GateFailed: {
    rule: "no check of a gate has failed too often",
    remedy: (context) =>
      `revert the template, or ask again by the annotation ${RETRY_ANNOTATION} that the message names, on rolloutgate ${gate(context)}`,
  },
  GateUnreachable: {
    rule: "Prometheus answers the checks of a gate",
    remedy: (context) => `get Prometheus to answer, or let the gate only observe: ${observe(context)}`,
  },
  LeaderNotFound: {
    rule: "the leader of a zone is in its group",
    remedy: (context) => annotate(context, `${ANNOTATIONS.downscaleLeader}=LEADER`),
  },
  LeaderCycle: {
    rule: "leaders form no cycle",
    remedy: (context) => annotate(context, `${ANNOTATIONS.downscaleLeader}-`),
  },
  LeaderAndMirror: {
    rule: "a zone has a leader or a resource to mirror, not both",
    remedy: (context) => annotate(context, `${ANNOTATIONS.downscaleLeader}-`),
  },
  LeaderNotReady: {
    rule: "all pods of the leader are ready before a follower grows",
    remedy: (context) =>
      `wait for ${others(context)}, or do without: ${annotate(context, `${ANNOTATIONS.upscaleOnlyWhenLeaderReady}-`)}`,
  },
  MinTimeBetweenZones: {
    rule: "the minimum time since the downscale of another zone is over",
    remedy: (context) => `wait; if data may be lost: ${annotate(context, `${ANNOTATIONS.forceReplicas}=N`)}`,
  },
  MinTimeUnknown: {
    rule: "it can be read when other zones were scaled down, and how long to wait",
    remedy: (context) => edit(context, "the label or the time that the message names"),
  },
  ReferenceUnreadable: {
    rule: "the resource that a zone mirrors can be read",
    remedy: (context) =>
      `create the resource that the message names, or let the reconciler read it; or ${edit(context, "the annotations")}`,
  },
  DelayInvalid: {
    rule: "the delay and the URL of a delayed downscale can be read",
    remedy: (context) => edit(context, "what the message names"),
  },
  PrepareFailed: {
    rule: "every pod that is to go has prepared for it",
    remedy: (context) => `find out why the pod that the message names refuses: ${kubectl(context, "logs POD")}`,
  },
  DelayNotReached: {
    rule: "the last pods of a zone have been prepared for the time of its delay",
    remedy: (context) => `wait, or shorten the delay: ${annotate(context, `${ANNOTATIONS.delayedDownscale}=1h`)}`,
  },
  ScaleRefused: {
    rule: "the API server and its webhooks accept the change of replicas",
    remedy: (context) => edit(context, "what the refusal in the message names"),
  },
  SeveralBudgets: {
    rule: "one disruption budget selects the pod, not several",
    remedy: (context) => kubectl(context, `edit zpdb ${budget(context)}`),
  },
  BudgetInvalid: {
    rule: "the disruption budget is valid",
    remedy: (context) => kubectl(context, `edit zpdb ${budget(context)}`),
  },
  OwnerNotFound: {
    rule: "a StatefulSet that the budget selects owns the pod",
    remedy: (context) =>
      `give the StatefulSet the labels that the budget selects: ${kubectl(context, `get zpdb ${budget(context)} -o jsonpath={.spec.selector}`)}`,
  },
  MaxUnavailableZero: {
    rule: "the disruption budget allows at least one unavailable pod",
    remedy: (context) =>
      kubectl(context, `patch zpdb ${budget(context)} --type=merge -p '{"spec":{"maxUnavailable":1}}'`),
  },
  TooFewZones: {
    rule: "the disruption budget selects two StatefulSets or more",
    remedy: (context) =>
      `give the other zones the labels that the budget selects: ${kubectl(context, `get zpdb ${budget(context)} -o jsonpath={.spec.selector}`)}`,
  },
  PartitionUnknown: {
    rule: "the budget's regular expression finds the partition in the pod's name",
    remedy: (context) => kubectl(context, `edit zpdb ${budget(context)}`),
  },
  AllowedAlready: { rule: "a pod is allowed to go once", remedy: () => "try again once it is gone, or in 15 seconds" },
  PodTerminating: { rule: "the pod is not terminating already", remedy: () => "try again once it is gone" },
  NotNow: {
    rule: "a decision is made in time",
    remedy: () => "try again; if it lasts, the log of the functions says why",
  },
};

function observe(context: RuleContext): string {
  return kubectl(context, `patch rolloutgate ${gate(context)} --type=merge -p '{"spec":{"mode":"Observe"}}'`);
}

export const isKnown = (reason: string): reason is Reason | Denial => Object.hasOwn(RULES, reason);
