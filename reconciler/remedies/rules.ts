/** For each reason to wait: the rule that says no, and the smallest change that lets it say yes. Pure. */
import { findCovering } from "../budget/scope.ts";
import { isReady } from "../model/health.ts";
import { ownerNameOf } from "../model/order.ts";
import { NAMED, OUTSIDE, REPLACED } from "../model/orphans.ts";
import { TOO_FEW_ZONES, type VerdictReason } from "../budget/verdict.ts";
import { ANNOTATIONS, LABELS } from "../model/annotations.ts";
import type { Reason } from "../model/decision.ts";
import { STRANGERS } from "../model/readiness.ts";
import { MAX_TEXT } from "../model/bounded-labels.ts";
import { MAX_ZONES } from "../model/refused-group.ts";
import { cureLeader } from "./leader.ts";
import { cureLabels, curePods, growZone, keepBudget, kubectl, named, zonewise, type RuleContext } from "./cures.ts";

/**
 * Without the verdicts on a request that no command sends, and on a pod that does not exist: a command names existing
 * pods.
 */
export type Denial = Exclude<
  VerdictReason,
  "Allowed" | "PodNotReady" | "OtherPod" | "PodNotInScope" | "InvalidRequest" | "PodNotFound"
>;

interface RuleFacts {
  /** The condition that must hold. */
  readonly rule: string;
  readonly remedy: (context: RuleContext) => string;
}

const zonesOf = named("StatefulSet");

/** The object of the rule: the first StatefulSet. */
const zone = (context: RuleContext): string => zonesOf(context)[0] ?? context.zones[0]?.name ?? "";
const budget = (context: RuleContext): string => named("ZoneAwarePodDisruptionBudget")(context)[0] ?? "";
const others = (context: RuleContext): string => zonesOf(context).slice(1).join(" and ") || zone(context);

/** True if the other zones are healthy but not updated: meanwhile a webhook refuses a downscale. */
function isOutdatedOnly(context: RuleContext): boolean {
  const names = new Set(zonesOf(context).slice(1));
  const waiting = context.zones.filter(({ name }) => names.has(name));
  return (
    waiting.length > 0 &&
    waiting.every(
      ({ pods, replicas, status }) => pods.length === replicas && pods.every(isReady) && status.updated < replicas,
    )
  );
}

const bypass = (context: RuleContext): string =>
  zonewise(context, `bypass ${context.group} --for 30m --reason incident`);
const gateOf = (context: RuleContext): string | undefined => named("RolloutGate")(context)[0];
const editBudget = (context: RuleContext): string => kubectl(context, `edit zpdb ${budget(context)}`.trim());

function keepOne(context: RuleContext): string {
  const names = named("ZoneAwarePodDisruptionBudget")(context);
  const found = (context.budgets ?? []).filter(({ ref }) => names.includes(ref.name));
  const kept = found.length === names.length ? findCovering(found)?.ref.name : undefined;
  if (kept === undefined)
    return `let one select the pod: ${kubectl(context, `edit zpdb ${names.at(-1) ?? ""}`.trim())}`;
  return keepBudget(context, kept, names);
}

const annotate = (context: RuleContext, change: string): string =>
  kubectl(context, `annotate --overwrite statefulset ${zone(context)} ${change}`);
const edit = (context: RuleContext, what: string): string =>
  `correct ${what}: ${kubectl(context, `edit statefulset ${zone(context)}`)}`;

/** All of them: a duration or a time zone that is left alone belongs to no window, and cannot be read. */
const WINDOW_ANNOTATIONS = [
  ANNOTATIONS.rolloutWindow,
  ANNOTATIONS.rolloutWindowDuration,
  ANNOTATIONS.rolloutWindowTimeZone,
  ANNOTATIONS.rolloutFreezes,
];

export const RULES: Readonly<Record<Reason | Denial, RuleFacts>> = {
  UpdateStrategyNotOnDelete: {
    rule: "every zone of a group has the update strategy OnDelete",
    remedy: (context) =>
      kubectl(
        context,
        `patch statefulset ${zone(context)} --type=merge -p '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}'`,
      ),
  },
  GroupNameEmpty: {
    rule: `the label ${LABELS.rolloutGroup} of a zone has a value`,
    remedy: (context) => {
      const names = zonesOf(context).join(" ");
      return `give the label the name of their group; or, if they belong to none: ${kubectl(context, `label statefulset ${names} ${LABELS.rolloutGroup}-`)}`;
    },
  },
  TooManyZones: {
    rule: `a group has ${MAX_ZONES} zones at most`,
    remedy: (context) =>
      `give some of its zones another group by their label ${LABELS.rolloutGroup}: ${kubectl(context, `get statefulsets -l ${LABELS.rolloutGroup}=${context.group}`)}`,
  },
  LabelsTooLong: {
    rule: `the labels, selector, images and Service of a zone have ${MAX_TEXT} characters at most`,
    remedy: (context) =>
      `remove labels from it or its template: ${kubectl(context, `edit statefulset ${zone(context)}`)}`,
  },
  TurnAwaited: {
    rule: "few enough groups are worked on at once",
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
      curePods(context, `make the pods of all but one of these zones ready: ${zonesOf(context).join(", ")}`),
  },
  OtherZoneNotReady: {
    rule: "all other zones, paused ones too, have all their pods, ready; for a downscale that a webhook judges, updated too",
    remedy: (context) =>
      isOutdatedOnly(context)
        ? `wait until ${others(context)} is rolled out, or see what holds that: ${zonewise(context, `explain group/${context.group}`)}`
        : curePods(
            { ...context, objects: context.objects.slice(1) },
            `make all pods of ${others(context)} ready: ${kubectl(context, "get pods")}`,
          ),
  },
  ZoneOrphaned: {
    rule: "pods whose StatefulSet is gone, or has left the group, are all there and ready",
    remedy: (context) => {
      if (context.message.includes(STRANGERS)) {
        const left = named("Pod")(context).join(" ");
        return `delete the pods that were left behind, one after the other, and its own follow: ${kubectl(context, `delete pod ${left}`)}; or create the StatefulSet again with a selector that matches them`;
      }
      if (context.message.includes(NAMED)) return curePods({ ...context, objects: context.objects.slice(1) });
      const names = [...new Set(named("Pod")(context).map(ownerNameOf))].join(" ");
      const relabel = kubectl(
        context,
        `label --overwrite statefulset ${names} ${LABELS.rolloutGroup}=${context.group}`,
      );
      if (context.message.includes(OUTSIDE)) return `take it back into the group: ${relabel}`;
      const list = kubectl(context, `get pods -l ${LABELS.rolloutGroup}=${context.group}`);
      if (context.message.includes(REPLACED))
        return `delete the pods that StatefulSet ${names} is not to have, or create it again as it was: ${list}`;
      return `create StatefulSet ${names} again as it was: it adopts its pods, and makes those that are missing; if the zone is to go, delete all of its pods: ${list}`;
    },
  },
  MaxUnavailableReached: {
    rule: "a zone has fewer unavailable pods than rollout-max-unavailable",
    remedy: (context) => curePods(context),
  },
  ZoneNotReady: {
    rule: "all pods of a zone are ready before the next zone begins",
    remedy: (context) => curePods(context),
  },
  ZonePaused: {
    rule: "a paused zone is left alone",
    remedy: (context) =>
      kubectl(context, `annotate --overwrite statefulset ${zonesOf(context).join(" ")} ${ANNOTATIONS.paused}-`),
  },
  WindowClosed: {
    rule: "the rollout window of a zone is open, and no freeze lasts, before a pod that serves is replaced",
    remedy: (context) => {
      const zones = context.zones.flatMap(({ window, name }) => (window ? [name] : [])).join(" ") || zone(context);
      const change = WINDOW_ANNOTATIONS.map((key) => `${key}-`).join(" ");
      return `wait until it opens; or roll out now without a window, and give the zones their annotations again afterwards: ${kubectl(context, `annotate --overwrite statefulset ${zones} ${change}`)}`;
    },
  },
  WindowInvalid: {
    rule: "the rollout window of a zone can be read, and opens again",
    remedy: (context) => edit(context, "the annotation that the message names"),
  },
  BudgetSpent: {
    rule: "the disruption budget has room: all other zones are whole, and the pod's own has fewer unavailable pods than it allows",
    remedy: (context) => curePods(context, "wait for the pods that it counts, or make them ready") + cureEmpty(context),
  },
  BudgetUnusable: {
    rule: "the disruption budget of a pod is valid, fits its StatefulSets, and is the only one",
    remedy: (context) =>
      context.message.includes(TOO_FEW_ZONES) ? cureTooFew(context) : (cureLabels(context) ?? editBudget(context)),
  },
  GateWaiting: {
    rule: "the checks of a gate have passed before the next zone begins",
    remedy: (context) => `wait for the checks, or let the zones begin without gates for a time: ${bypass(context)}`,
  },
  GateFailed: {
    rule: "no check of a gate has failed too often",
    remedy: (context) =>
      `fix the template, or take back the zones under way: ${zonewise(context, `undo ${context.group}`)}; or ask the gate again: ${zonewise(context, `retry ${gateOf(context) ?? ""}`)}`,
  },
  GateInvalid: {
    rule: "Prometheus understands the expressions of a gate",
    remedy: (context) =>
      `correct it: ${kubectl(context, `edit rolloutgate ${gateOf(context) ?? ""}`)}; or let the gate only observe: ${observe(context)}`,
  },
  GateUnreachable: {
    rule: "Prometheus answers the checks of a gate",
    remedy: (context) =>
      `get Prometheus to answer, or let the zones begin without gates for a time: ${bypass(context)}`,
  },
  LeaderNotFound: {
    rule: "the leader of a zone is in its group",
    remedy: (context) => {
      const own = context.zones.find(({ name }) => name === zone(context));
      return own
        ? cureLeader(own, { own: context.zones, all: context.all })
        : annotate(context, `${ANNOTATIONS.downscaleLeader}-`);
    },
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
    remedy: (context) => {
      const wanted = wantedReplicas(context);
      if (wanted === undefined) return "wait";
      return `wait until the time is over; this skips it, and may lose data that only the pods to be removed have: ${annotate(context, `${ANNOTATIONS.forceReplicas}=${wanted}`)}`;
    },
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
    remedy: (context) => {
      const pod = preparedPod(context);
      return `find out why the pod that the message names refuses: ${kubectl(context, pod === undefined ? "get pods" : `logs ${pod}`)}`;
    },
  },
  DelayNotReached: {
    rule: "the last pods of a zone have been prepared for the time of its delay",
    remedy: (context) =>
      `wait, or shorten the delay, the annotation ${ANNOTATIONS.delayedDownscale}: ${kubectl(context, `edit statefulset ${zone(context)}`)}`,
  },
  ScaleRefused: {
    rule: "the API server and its webhooks accept the change of replicas",
    remedy: (context) => edit(context, "what the refusal in the message names"),
  },
  SeveralBudgets: {
    rule: "one disruption budget selects the pod, not several",
    remedy: (context) => cureLabels(context) ?? keepOne(context),
  },
  BudgetInvalid: {
    rule: "the disruption budget is valid",
    remedy: (context) => editBudget(context),
  },
  OwnerNotFound: {
    rule: "a StatefulSet that the budget selects owns the pod",
    remedy: (context) =>
      cureLabels(context) ??
      `give the StatefulSet the labels that the budget selects: ${kubectl(context, `get zpdb ${budget(context)} -o jsonpath={.spec.selector}`)}`,
  },
  MaxUnavailableZero: {
    rule: "the disruption budget allows at least one unavailable pod",
    remedy: (context) =>
      kubectl(
        context,
        `patch zpdb ${budget(context)} --type=merge -p '{"spec":{"maxUnavailable":1,"maxUnavailablePercentage":null}}'`,
      ),
  },
  TooFewZones: {
    rule: "the disruption budget selects two StatefulSets or more",
    remedy: cureTooFew,
  },
  PartitionUnknown: {
    rule: "the budget's regular expression finds the partition in the pod's name",
    remedy: (context) => editBudget(context),
  },
  AllowedAlready: { rule: "a pod is allowed to go once", remedy: () => "try again once it is gone, or in 15 seconds" },
  PodTerminating: { rule: "the pod is not terminating already", remedy: () => "try again once it is gone" },
  NotNow: {
    rule: "a decision is made in time",
    remedy: () => "try again; if it lasts, the log of the functions says why",
  },
};

/** In a group of one zone there is no other that could be given labels (§1.14.1). */
function cureTooFew(context: RuleContext): string {
  const { zones } = context;
  const name = budget(context);
  const selector = kubectl(context, `get zpdb ${name} -o jsonpath={.spec.selector}`);
  const give = `give the other zones the labels that the budget selects: ${selector}; ${zonewise(context, "doctor")} names those that lack them`;
  if (zones.length > 1) return give;
  return `without another zone such a budget protects nothing, and a PodDisruptionBudget does: ${kubectl(context, `delete zpdb ${name}`)}; if there are other zones, give them its labels: ${selector}`;
}

/** In partition mode, a zone without pods counts as one missing pod for each eviction (§1.14.3). */
function cureEmpty({ zones, message }: RuleContext): string {
  const empty = message.includes(" partition ") ? zones.filter(({ replicas }) => replicas === 0) : [];
  const most = Math.max(...zones.map(({ replicas }) => replicas));
  if (empty.length === 0 || most === 0) return "";
  const grow = empty.map((one) => growZone(one, most)).join(" && ");
  return `; or, as a budget by partition counts a zone of 0 replicas as missing: ${grow}`;
}

function observe(context: RuleContext): string {
  const gate = gateOf(context);
  if (gate === undefined) return "it cannot be listed: give the reconciler the rights of this version";
  return kubectl(context, `patch rolloutgate ${gate} --type=merge -p '{"spec":{"mode":"Observe"}}'`);
}

/** The replicas that a follower is to have: those of its leader. */
function wantedReplicas(context: RuleContext): number | undefined {
  const leader = context.zones.find(({ name }) => name === zone(context))?.scaling.leader;
  return context.zones.find(({ name }) => name === leader)?.replicas;
}

/** The pod in the message. */
function preparedPod(context: RuleContext): string | undefined {
  const own = zone(context);
  const pods = context.zones.find(({ name }) => name === own)?.pods ?? [];
  return pods.find(({ name }) => new RegExp(`\\b${name}\\b`).test(context.message))?.name;
}

/** The remedy for a recorded reason. An error is no reason: its message says what to fix. */
export const remedyFor = (reason: string, context: RuleContext): string =>
  isKnown(reason) ? RULES[reason].remedy(context) : "fix what the message names; the next tick tries again";

export const isKnown = (reason: string): reason is Reason | Denial => Object.hasOwn(RULES, reason);
