/** For each reason to wait: the rule that says no, and the smallest change that lets it say yes. Pure. */
import { TOO_FEW_ZONES, type VerdictReason } from "../budget/verdict.ts";
import { ANNOTATIONS, LABELS, MAX_TEXT } from "../model/annotations.ts";
import type { Reason } from "../model/decision.ts";
import { MAX_ZONES } from "../model/refused-group.ts";
import { cureLeader } from "./leader.ts";
import { either, how, kubectl, zonewise } from "../model/remedy.ts";
import { cureEmpty, cureTooFew, keepOne, seeDoctor } from "./budget-cures.ts";
import { cureOrphans, curePods, cureWindow, isOutdatedOnly, named, type RuleContext } from "./cures.ts";

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

const bypass = (context: RuleContext): string =>
  zonewise(context, `bypass ${context.group} --for 30m --reason incident`);
const gateOf = (context: RuleContext): string | undefined => named("RolloutGate")(context)[0];
const editBudget = (context: RuleContext): string => kubectl(context, `edit zpdb ${budget(context)}`.trim());

const annotate = (context: RuleContext, change: string): string =>
  kubectl(context, `annotate --overwrite statefulset ${zone(context)} ${change}`);
const edit = (context: RuleContext, what: string): string =>
  how(`correct ${what}`, kubectl(context, `edit statefulset ${zone(context)}`));

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
      return either(
        "give the label the name of their group",
        how("if they belong to no group", kubectl(context, `label statefulset ${names} ${LABELS.rolloutGroup}-`)),
      );
    },
  },
  TooManyZones: {
    rule: `a group has ${MAX_ZONES} zones at most`,
    remedy: (context) =>
      how(
        `give some of its zones another group by their label ${LABELS.rolloutGroup}`,
        kubectl(context, `get statefulsets -l ${LABELS.rolloutGroup}=${context.group}`),
      ),
  },
  LabelsTooLong: {
    rule: `the labels, selector, images and Service of a zone have ${MAX_TEXT} characters at most`,
    remedy: (context) =>
      how("remove labels from it or its template", kubectl(context, `edit statefulset ${zone(context)}`)),
  },
  TurnAwaited: {
    rule: "the reconciler works on a limited number of groups at once",
    remedy: (context) =>
      how(
        "wait for them; if that takes long, find the groups whose pods or webhooks do not answer",
        kubectl(context, "get rolloutgroups"),
      ),
  },
  RevisionUnknown: {
    rule: "the status of a zone names its revisions",
    remedy: (context) => `make kube-controller-manager work again: it writes the status of ${zone(context)}`,
  },
  StatusNotObserved: {
    rule: "the StatefulSet controller has seen the latest spec of every zone",
    remedy: (context) => `wait for ${zone(context)}; if that takes long, make kube-controller-manager work again`,
  },
  ZoneTerminating: {
    rule: "no zone of the group is being deleted",
    remedy: (context) =>
      how(
        "wait until it is gone, or remove the finalizer that keeps it",
        kubectl(context, `get statefulset ${zone(context)} -o jsonpath={.metadata.finalizers}`),
      ),
  },
  MultipleZonesNotReady: {
    rule: "at most one zone has pods that are not ready",
    remedy: (context) =>
      curePods(context, `make the pods of all but one of these zones ready: ${zonesOf(context).join(", ")}`),
  },
  OtherZoneNotReady: {
    rule: "every other zone, also a paused one, has all its pods, and they are ready; before a downscale that a webhook judges, they are updated as well",
    remedy: (context) =>
      isOutdatedOnly(context)
        ? how(
            `wait until ${others(context)} is rolled out, or see what it waits for`,
            zonewise(context, `explain group/${context.group}`),
          )
        : curePods(
            { ...context, objects: context.objects.slice(1) },
            how(`make all pods of ${others(context)} ready`, kubectl(context, "get pods")),
          ),
  },
  ZoneOrphaned: {
    rule: "pods whose StatefulSet is gone, or has left the group, all exist and are ready",
    remedy: cureOrphans,
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
    rule: "no pod of a paused zone is replaced",
    remedy: (context) =>
      kubectl(context, `annotate --overwrite statefulset ${zonesOf(context).join(" ")} ${ANNOTATIONS.paused}-`),
  },
  WindowClosed: {
    rule: "a pod that serves is replaced only while the rollout window of its zone is open, and outside its freezes",
    remedy: (context) => {
      const zones = context.zones.flatMap(({ window, name }) => (window ? [name] : [])).join(" ") || zone(context);
      const change = WINDOW_ANNOTATIONS.map((key) => `${key}-`).join(" ");
      return either(
        "wait until it opens",
        how(
          "roll out now: remove the window, and put the annotations back afterwards",
          kubectl(context, `annotate --overwrite statefulset ${zones} ${change}`),
        ),
      );
    },
  },
  WindowInvalid: {
    rule: "the rollout window of a zone can be read, and opens again",
    remedy: cureWindow,
  },
  BudgetSpent: {
    rule: "the disruption budget has room: all other zones are complete, and the pod's own zone has fewer unavailable pods than the budget allows",
    remedy: (context) =>
      either(curePods(context, "wait for the pods that it counts, or make them ready"), cureEmpty(context)),
  },
  BudgetUnusable: {
    rule: "the disruption budget of a pod is valid, fits its StatefulSets, and is the only one",
    remedy: (context) =>
      context.message.includes(TOO_FEW_ZONES)
        ? cureTooFew(context)
        : either(seeDoctor(context), how("correct the budget", editBudget(context))),
  },
  GateWaiting: {
    rule: "the checks of a gate have passed before the next zone begins",
    remedy: (context) =>
      either("wait for the checks", how("let the zones begin without their gates for a time", bypass(context))),
  },
  GateFailed: {
    rule: "no check of a gate has failed too often",
    remedy: (context) =>
      either(
        "fix the template",
        how("undo the rollout in the zones under way", zonewise(context, `undo ${context.group}`)),
        how("start the checks of the gate again", zonewise(context, `retry ${gateOf(context) ?? ""}`)),
      ),
  },
  GateInvalid: {
    rule: "Prometheus understands the expressions of a gate",
    remedy: (context) =>
      either(how("correct it", kubectl(context, `edit rolloutgate ${gateOf(context) ?? ""}`)), observe(context)),
  },
  GateUnreachable: {
    rule: "Prometheus answers the checks of a gate",
    remedy: (context) =>
      either("make Prometheus answer", how("let the zones begin without their gates for a time", bypass(context))),
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
      either(
        `wait for ${others(context)}`,
        how("no longer wait for the leader", annotate(context, `${ANNOTATIONS.upscaleOnlyWhenLeaderReady}-`)),
      ),
  },
  MinTimeBetweenZones: {
    rule: "the minimum time since the downscale of another zone is over",
    remedy: (context) => {
      const wanted = wantedReplicas(context);
      if (wanted === undefined) return "wait";
      return either(
        "wait until the time is over",
        how(
          "skip it, which may lose data that only the removed pods have",
          annotate(context, `${ANNOTATIONS.forceReplicas}=${wanted}`),
        ),
      );
    },
  },
  MinTimeUnknown: {
    rule: "it can be read when other zones were scaled down, and how long to wait",
    remedy: (context) => edit(context, "the label or the time that the message names"),
  },
  ReferenceUnreadable: {
    rule: "the resource that a zone mirrors can be read",
    remedy: (context) =>
      either(
        "create the resource that the message names, or let the reconciler read it",
        edit(context, "the annotations"),
      ),
  },
  DelayInvalid: {
    rule: "the delay and the URL of a delayed downscale can be read",
    remedy: (context) => edit(context, "what the message names"),
  },
  PrepareFailed: {
    rule: "every pod that a downscale removes has prepared for it",
    remedy: (context) => {
      const pod = preparedPod(context);
      return how(
        "find out why the pod that the message names refuses",
        kubectl(context, pod === undefined ? "get pods" : `logs ${pod}`),
      );
    },
  },
  DelayNotReached: {
    rule: "the last pods of a zone have been prepared for the time of its delay",
    remedy: (context) =>
      either(
        "wait",
        how(
          `shorten the delay, the annotation ${ANNOTATIONS.delayedDownscale}`,
          kubectl(context, `edit statefulset ${zone(context)}`),
        ),
      ),
  },
  ScaleRefused: {
    rule: "the API server and its webhooks accept the change of replicas",
    remedy: (context) => edit(context, "what the refusal in the message names"),
  },
  SeveralBudgets: {
    rule: "one disruption budget selects the pod, not several",
    remedy: keepOne,
  },
  BudgetInvalid: {
    rule: "the disruption budget is valid",
    remedy: (context) => editBudget(context),
  },
  OwnerNotFound: {
    rule: "a StatefulSet that the budget selects owns the pod",
    remedy: seeDoctor,
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
    remedy: () => "try again; if it fails again, look at the log of the functions",
  },
};

function observe(context: RuleContext): string {
  const gate = gateOf(context);
  if (gate === undefined) return "the gate cannot be listed; give the reconciler the rights of this version";
  const patch = kubectl(context, `patch rolloutgate ${gate} --type=merge -p '{"spec":{"mode":"Observe"}}'`);
  return how("let the gate only observe", patch);
}

/** The replicas that a follower should have: its leader's. */
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

/** As the API server says it of the reconciler. */
const FORBIDDEN = /is forbidden: User "system:serviceaccount:/;

/** The remedy for a recorded reason. An error is no reason: its message says what to fix. */
export function remedyFor(reason: string, context: RuleContext): string {
  if (isKnown(reason)) return RULES[reason].remedy(context);
  return FORBIDDEN.test(context.message)
    ? how("give the reconciler its rights", "kubectl apply -k infra/manifests/reconciler")
    : "fix what the message names; the next tick tries again";
}

export const isKnown = (reason: string): reason is Reason | Denial => Object.hasOwn(RULES, reason);
