/** The Kubernetes Events of an outcome: a pure function of the outcome and of how long its holds have lasted. */
import { createHash } from "node:crypto";
import { messageOf } from "../../infra/errors.ts";
import type { Event } from "../../infra/kubernetes/resources.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { dedupKeyOf, factsOf, type Hold, type ObjectRef } from "../model/decision.ts";
import { describeFinished, isSettledByStatus, nameImages, problemsOf, type Zone } from "../model/zone.ts";
import { revisionKey, type Seen } from "./log-lines.ts";
import { holdsOf, type Outcome } from "../model/outcome.ts";

export interface Draft {
  readonly regarding: ObjectRef;
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  /** Identifies the same Event although its message differs; the message by default. */
  readonly cause?: string;
}

/** The Events of one outcome. `heldMs`: how long a hold has lasted, in milliseconds. */
export function draftEvents(outcome: Outcome, earlier: Seen | undefined, heldMs: (hold: Hold) => number): Draft[] {
  const problems = outcome.zones.flatMap((zone) =>
    problemsOf(zone).map((problem) => warning(zone, "InvalidAnnotation", problem)),
  );
  const holds = holdsOf(outcome).filter((hold) => !hold.isBrief && heldMs(hold) >= factsOf(hold.reason).patienceMs);
  const drafts = [
    ...problems,
    ...holds.flatMap(draftHold),
    ...draftFinishedByOthers(outcome, earlier),
    ...draftProgress(outcome, earlier),
  ];
  return drafts.map((draft) => withImages(draft, outcome.zones));
}

/** Nobody knows a template by its hash. The hash alone identifies the Event: the images may not be known a moment later. */
const withImages = ({ cause, message, ...draft }: Draft, zones: readonly Zone[]): Draft => ({
  ...draft,
  message: nameImages(message, zones),
  cause: cause ?? message,
});

function draftHold(hold: Hold): Draft[] {
  const [regarding] = hold.objects;
  const draft = factsOf(hold.reason).requested ? normal : warning;
  return regarding ? [{ ...draft(regarding, hold.reason, hold.message), cause: dedupKeyOf(hold) }] : [];
}

/** Since Kubernetes 1.37 the StatefulSet controller records a finished zone, and our decision to do so is not needed. */
const draftFinishedByOthers = ({ zones }: Outcome, earlier: Seen | undefined): Draft[] =>
  zones
    .filter((zone) => isSettledByStatus(zone) && earlier?.unfinished.has(revisionKey(zone)))
    .map((zone) => normal(zone, "ZoneUpdated", describeFinished(zone)));

function draftProgress(outcome: Outcome, earlier: Seen | undefined): Draft[] {
  switch (outcome.state) {
    case "acted":
      return draftAction(outcome, earlier);
    case "held":
      return [];
    case "settled":
      return earlier?.rolling && outcome.zones.every(isSettledByStatus)
        ? [completed(outcome)].filter((draft) => draft !== undefined)
        : [];
    case "superseded":
      return [];
    case "failed": {
      const [regarding] = outcome.zones;
      return regarding ? [warning(regarding, "ReconcileFailed", messageOf(outcome.error))] : [];
    }
    default:
      return outcome satisfies never;
  }
}

type Acted = Extract<Outcome, { state: "acted" }>;

function draftAction(outcome: Acted, earlier: Seen | undefined): Draft[] {
  const { decision } = outcome;
  switch (decision.action) {
    case "scaleZone":
      return [normal(decision.zone, "ZoneScaled", decision.message)];
    case "finishZone":
      return draftFinish(outcome);
    case "deletePods":
      return draftReplacements(outcome, earlier);
    default:
      return decision satisfies never;
  }
}

function draftReplacements(outcome: Acted, earlier: Seen | undefined): Draft[] {
  const { zone, message } = outcome.decision;
  const { replaced, denied } = outcome.effect;
  // Always on the first zone: a process that takes over between two zones writes the same Event for the same object.
  const [first = zone] = outcome.zones;
  const started = `rolling out group ${outcome.group} over ${outcome.zones.length} zones, beginning with ${zone.name}`;
  const revisions = outcome.zones.map(({ status }) => status.updateRevision).join();
  return [
    ...(replaced.length > 0 && !earlier?.rolling && isBeginning(outcome.zones)
      ? [{ ...normal(first, "RolloutStarted", started), cause: revisions }]
      : []),
    ...replaced.map((pod) =>
      normal(zone, "PodReplaced", `deleted ${pod.name} of revision ${pod.revision ?? "unknown"}: ${message}`),
    ),
    ...denied.flatMap(draftHold),
  ];
}

/** True if no pod of the new revisions exists yet: false for a process that takes over a rollout. */
function isBeginning(zones: readonly Zone[]): boolean {
  return zones.every(({ status }) => status.currentRevision === status.updateRevision || status.updated === 0);
}

function draftFinish(outcome: Acted): Draft[] {
  const { zone, message } = outcome.decision;
  const others = outcome.zones.filter((other) => other.uid !== zone.uid);
  const last = others.every(isSettledByStatus) ? completed(outcome) : undefined;
  return [normal(zone, "ZoneUpdated", message), ...(last ? [last] : [])];
}

function completed({ group, zones }: Outcome): Draft | undefined {
  const [first] = zones;
  const revisions = zones.map((zone) => zone.status.updateRevision).join(", ");
  return first && normal(first, "RolloutCompleted", `all zones of group ${group} are updated and ready: ${revisions}`);
}

const normal = (regarding: ObjectRef | Zone, reason: string, message: string): Draft => ({
  regarding,
  type: "Normal",
  reason,
  message,
});
const warning = (regarding: ObjectRef | Zone, reason: string, message: string): Draft => ({
  regarding,
  type: "Warning",
  reason,
  message,
});

/** Characters that a name of 253, the most there may be, has before the dot and the hash. */
const MAX_NAME_LENGTH = 236;

/** The name of the Event: any process derives the same name from the object, the reason and the cause. */
export function eventName({ regarding, reason, message, cause = message }: Draft): string {
  const name = regarding.name.slice(0, MAX_NAME_LENGTH).replace(/[-.]+$/, "");
  return `${name}.${createHash("sha256").update(`${regarding.uid}\n${reason}\n${cause}`).digest("hex").slice(0, 16)}`;
}

/** Characters of a message, which may repeat an annotation: the most that an Event of the newer API has. */
const MAX_MESSAGE_LENGTH = 1024;

const API_VERSIONS: Readonly<Record<ObjectRef["kind"], string>> = {
  StatefulSet: "apps/v1",
  Pod: "v1",
  ZoneAwarePodDisruptionBudget: "rollout-operator.grafana.com/v1",
  Node: "v1",
  BottlerocketShadow: "brupop.bottlerocket.aws/v2",
  NodeUpdatePolicy: "zonewise.dev/v1",
  PhasedRollout: "sts.plus/v1alpha1",
  RolloutGate: "zonewise.dev/v1",
};

/** The Event object (core/v1). `now` in milliseconds; `instance` names the process. */
export function buildEvent(draft: Draft, now: number, instance: string): Event {
  const { regarding, type, reason, message } = draft;
  const time = formatTimestamp(now);
  const { kind, namespace } = regarding;
  const apiVersion = API_VERSIONS[kind];
  return {
    apiVersion: "v1",
    kind: "Event",
    // Events of cluster-scoped objects are in this namespace: the API server allows no other.
    metadata: { name: eventName(draft), namespace: namespace || "default" },
    involvedObject: { apiVersion, kind, ...(namespace && { namespace }), name: regarding.name, uid: regarding.uid },
    type,
    reason,
    message: message.slice(0, MAX_MESSAGE_LENGTH),
    count: 1,
    firstTimestamp: time,
    lastTimestamp: time,
    source: { component: "zonewise" },
    reportingComponent: "zonewise",
    reportingInstance: instance,
  };
}

// The times of Events, and their order.

/** What the order of Events depends on. */
export type EventTimes = Pick<Event, "lastTimestamp" | "firstTimestamp"> & {
  readonly metadata: Pick<Event["metadata"], "resourceVersion">;
};

export const timesOf = ({ lastTimestamp, firstTimestamp, metadata: { resourceVersion } }: Event): EventTimes => ({
  ...(lastTimestamp !== undefined && { lastTimestamp }),
  ...(firstTimestamp !== undefined && { firstTimestamp }),
  metadata: resourceVersion === undefined ? {} : { resourceVersion },
});

/** When it was seen last, RFC 3339; "" if it does not say. */
export const lastSeen = ({ lastTimestamp, firstTimestamp }: EventTimes): string =>
  lastTimestamp ?? firstTimestamp ?? "";

/** The oldest first. Times have a resolution of a second: within it, in the order in which Events were written. */
export function byTime(a: EventTimes, b: EventTimes): number {
  const [one, other] = [lastSeen(a), lastSeen(b)];
  if (one !== other) return one < other ? -1 : 1;
  return Number(a.metadata.resourceVersion ?? 0) - Number(b.metadata.resourceVersion ?? 0);
}
