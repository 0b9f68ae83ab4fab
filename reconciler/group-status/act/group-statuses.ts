/**
 * Keeps the RolloutGroups of a session (§11): one object a group, written beside the ticks and never waited for.
 *
 *   before a tick: read what others have changed -> an outcome: decide the status -> it differs: write it
 *
 * The cluster may not know the kind: then this is off, with one log line. A namespace that refuses a write, as one that
 * is being deleted does, is left alone for a minute, and no other. A group that is settled and stays so costs nothing.
 */
import { hasCode } from "../../../infra/errors.ts";
import { createOptionalKind } from "../../../infra/kubernetes/optional-kind.ts";
import { decideStatus } from "../decide-status.ts";
import type { GroupFacts, StatusInput } from "../facts.ts";
import { nameOfGroup } from "../name.ts";
import type { Outcome, TickResult } from "../../model/outcome.ts";
import type { Zone } from "../../model/zone.ts";
import type { Seen } from "../../report/memory.ts";
import type { Entry } from "./entry.ts";
import { factsOfOutcome, factsWithoutZones } from "../facts-of-outcome.ts";
import { createKnownGroups, isStale, type KnownGroupsOptions } from "./known-groups.ts";
import { DEFAULT_DEADLINE_MS } from "./stored-group.ts";
import { recallSeen } from "../zones.ts";
import { createWriteQueue, differenceOf, type WriteQueueOptions } from "./write-queue.ts";

export interface GroupStatuses {
  /**
   * Called before the StatefulSets are listed, with the keys of the groups whose steps, begun by an earlier tick, are
   * under way. Never rejects.
   */
  readonly beginTick: (namespaces: readonly string[], underWay?: ReadonlySet<string>) => Promise<void>;
  /** `tookMs` milliseconds in tick number `passes` of the installation. */
  readonly report: (outcome: Outcome, timing: Timing) => void;
  /** The state of the group's rollout that an earlier process saw, by the stored status; undefined without a status. */
  readonly recall: (outcome: Outcome) => Seen | undefined;
  /** Called after a tick that read the cluster: removes the objects of groups that are gone. */
  readonly endTick: (result: Pick<TickResult, "groups" | "resourceVersions">) => void;
  /** Writes the statuses that wait, without pauses. Resolves once nothing is under way; never rejects. */
  readonly flush: () => Promise<void>;
}

type Timing = Pick<StatusInput, "tookMs" | "passes">;

type GroupStatusesOptions = Omit<WriteQueueOptions, "onForbidden"> & KnownGroupsOptions;

/** Milliseconds between two writes of mere details. */
const DETAILS_MS = 30_000;
/** Milliseconds until a missing definition is looked for again. */
const MISSING_FOR_MS = 60_000;
/** Milliseconds for which a namespace is left alone that has forbidden a write. */
const FORBIDDEN_FOR_MS = 60_000;

export function createGroupStatuses(options: GroupStatusesOptions): GroupStatuses {
  const { clock, log } = options;
  const known = createKnownGroups(options);
  const queue = createWriteQueue({
    ...options,
    onForbidden: ({ namespace }) => void forbiddenAt.set(namespace, clock.monotonic()),
  });
  const startedAt = clock.monotonic();
  const kind = createOptionalKind(
    {
      capability: "statuses of rollout groups",
      definition: "the definition rolloutgroups.zonewise.dev",
      againAfterMs: MISSING_FOR_MS,
    },
    options,
  );
  /** When a namespace has forbidden a write. */
  const forbiddenAt = new Map<string, number>();
  /** The namespaces that may not be listed, which is logged once. */
  const unreadable = new Set<string>();
  const isOff = (namespace: string): boolean =>
    kind.isMissing() || clock.monotonic() - (forbiddenAt.get(namespace) ?? -Infinity) < FORBIDDEN_FOR_MS;

  function tell(failures: ReadonlyMap<string, unknown>): void {
    for (const [namespace, error] of failures)
      if (!unreadable.has(namespace)) log.warn("the rollout groups could not be read", { namespace, error });
    unreadable.clear();
    for (const [namespace, error] of failures) if (hasCode(error, "Forbidden")) unreadable.add(namespace);
  }

  function decide(entry: Entry, facts: GroupFacts, timing: Timing): void {
    const seen = fingerprint(entry, facts);
    if (seen !== undefined && seen === entry.seen) return;
    forgetEarlier(entry, facts.zones);
    entry.zones = facts.zones;
    entry.wanted = decideStatus({ ...inputOf(entry), ...timing, facts, now: clock.now() });
    const difference = differenceOf(entry);
    if (difference === "none" && seen !== undefined) entry.seen = seen;
    const quietMs = clock.monotonic() - Math.max(entry.writtenAt, startedAt);
    if (difference === "essence" || (difference === "details" && quietMs >= DETAILS_MS)) queue.write(entry);
  }

  function clear(entry: Entry): void {
    if (entry.stored?.isOurs) queue.remove(entry, () => known.forget(entry));
    else if (entry.stored) decide(entry, factsWithoutZones(entry.name), { tookMs: 0, passes: 0 });
    // A later group of the name begins with an empty status.
    else if (!entry.busy && !isStale(entry)) known.forget(entry);
  }

  return {
    async beginTick(namespaces, underWay = new Set()) {
      try {
        const failures = await kind.read(() => known.refresh(namespaces, new Set([...underWay].map(entryKey))));
        if (failures) tell(failures);
      } catch (error) {
        if (!hasCode(error, "Cancelled")) log.warn("the rollout groups could not be read", { error });
      }
    },
    report(outcome, timing) {
      const entry = isOff(outcome.namespace) ? undefined : known.entryOf(outcome.namespace, nameOfGroup(outcome.group));
      if (entry) decide(entry, factsOfOutcome(outcome), timing);
    },
    recall({ namespace, group, zones }) {
      const stored = isOff(namespace) ? undefined : known.entryOf(namespace, nameOfGroup(group))?.stored;
      return stored && recallSeen(stored.status.zones, zones);
    },
    endTick({ groups, resourceVersions }) {
      if (kind.isMissing()) return;
      const living = new Map<string, readonly Zone[]>(
        [...groups.values()].flatMap((zones) =>
          zones.slice(0, 1).map(({ namespace, group }) => [`${namespace}/${nameOfGroup(group)}`, zones] as const),
        ),
      );
      const wasRead = ({ namespace }: Entry): boolean =>
        !isOff(namespace) && (resourceVersions.has("") || resourceVersions.has(namespace));
      for (const [key, entry] of known.entries) {
        const zones = living.get(key);
        if (zones) forgetEarlier(entry, zones);
        else if (wasRead(entry)) clear(entry);
      }
    },
    async flush() {
      for (const entry of known.entries.values())
        if (!isOff(entry.namespace) && differenceOf(entry) !== "none") queue.write(entry);
      await queue.flush();
    },
  };
}

/** The key of a group's RolloutGroup, from that of the group. */
function entryKey(key: string): string {
  const [namespace = "", group = ""] = key.split("/");
  return `${namespace}/${nameOfGroup(group)}`;
}

function inputOf({ stored, confirmed, wanted }: Entry): Pick<StatusInput, "earlier" | "generation" | "deadlineMs"> {
  return {
    earlier: wanted ?? stored?.status ?? {},
    // An object that is read for the first time was not read before the zones: it confirms no generation. The spec of
    // an object that we are about to create asks for nothing.
    generation: stored ? (stored.uid === confirmed?.uid ? confirmed.generation : 0) : 1,
    deadlineMs: stored?.deadlineMs ?? DEFAULT_DEADLINE_MS,
  };
}

/** A RolloutGroup went with its zones: those that were all made anew since are a later group of the name. */
function forgetEarlier(entry: Entry, zones: readonly Zone[]): void {
  const before = new Set(entry.zones?.map(({ uid }) => uid));
  if (!entry.stored && before.size > 0 && zones.every(({ uid }) => !before.has(uid))) delete entry.wanted;
}

/** For a group that has nothing to do: while the fingerprint is the same, so is the status. */
function fingerprint({ stored, confirmed }: Entry, { state, zones, scalingHolds }: GroupFacts): string | undefined {
  if (state !== "settled" || scalingHolds.length > 0) return undefined;
  return [
    stored?.resourceVersion,
    confirmed?.uid,
    confirmed?.generation,
    ...zones.map(({ uid, resourceVersion }) => `${uid}/${resourceVersion}`),
  ].join(" ");
}
