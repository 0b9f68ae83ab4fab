/**
 * Keeps the RolloutGroups of a session (§11): one object a group, written beside the ticks and never waited for.
 *
 *   before a tick: list them -> an outcome: decide the status -> it differs: write it
 *
 * The list comes before that of the StatefulSets: a status states only a generation that was read before the zones. The
 * cluster may not know the kind: then this is off, with one log line. A namespace that refuses a write, as one that is
 * being deleted does, is left alone for a minute, and no other.
 */
import type { Clock } from "../../../infra/clock.ts";
import { hasCode } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { type RolloutGroup, rolloutGroups } from "../../../infra/kubernetes/custom-resources.ts";
import { createOptionalKind } from "../../../infra/kubernetes/optional-kind.ts";
import { logUnwritten } from "../../../infra/kubernetes/write-status.ts";
import type { Log } from "../../../infra/log.ts";
import { createSlots } from "../../../infra/slots.ts";
import type { Outcome, TickResult } from "../../model/outcome.ts";
import type { Seen } from "../../report/log-lines.ts";
import { readAll } from "../../snapshot/gather.ts";
import { type Difference, compareStatus, decideStatus } from "../decide-status.ts";
import { factsOfOutcome, type StatusInput } from "../facts.ts";
import { nameOfGroup } from "../status.ts";
import { recallSeen } from "../zones.ts";
import {
  DEFAULT_DEADLINE_MS,
  type StoredGroup,
  readStoredGroup,
  type KnownGroup,
  removeGroup,
  writeGroup,
} from "./stored-group.ts";

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
  /** Writes the statuses that wait. Resolves once nothing is under way; never rejects. */
  readonly flush: () => Promise<void>;
}

type Timing = Pick<StatusInput, "tookMs" | "passes">;

interface GroupStatusesOptions extends Pick<Context, "cluster" | "fence" | "stop"> {
  readonly clock: Clock;
  readonly log: Log;
}

/** Milliseconds. Statuses can wait, the tick cannot. */
const READ_MS = 3000;
const WRITES_AT_ONCE = 4;
/** Milliseconds between two writes of mere details. */
const DETAILS_MS = 30_000;
/** Milliseconds until a missing definition is looked for again. */
const MISSING_FOR_MS = 60_000;
/** Milliseconds for which a namespace is left alone that has forbidden a write. */
const FORBIDDEN_FOR_MS = 60_000;

export function createGroupStatuses(options: GroupStatusesOptions): GroupStatuses {
  const { cluster, clock, log, stop } = options;
  const startedAt = clock.monotonic();
  const kind = createOptionalKind(
    {
      capability: "statuses of rollout groups",
      definition: "the definition rolloutgroups.zonewise.dev",
      againAfterMs: MISSING_FOR_MS,
    },
    options,
  );
  /** By namespace and name. */
  const groups = new Map<string, KnownGroup>();
  /** Scopes that have been listed: of others it is not known which groups have a status. */
  const listed = new Set<string>();
  /** The scopes that may not be listed, which is logged once. */
  const unreadable = new Set<string>();
  /** When a namespace has forbidden a write. */
  const forbiddenAt = new Map<string, number>();
  const slots = createSlots(WRITES_AT_ONCE);
  const running = new Set<Promise<void>>();

  const isOff = (namespace: string): boolean =>
    kind.isMissing() || clock.monotonic() - (forbiddenAt.get(namespace) ?? -Infinity) < FORBIDDEN_FOR_MS;

  function obtain(namespace: string, name: string): KnownGroup {
    const key = `${namespace}/${name}`;
    const known = groups.get(key) ?? { namespace, name, isBusy: false, writtenAt: -Infinity };
    groups.set(key, known);
    return known;
  }

  const forget = ({ namespace, name }: KnownGroup): void => void groups.delete(`${namespace}/${name}`);

  /** Of a scope that has not been listed, nothing is written: what is stored there would be lost. */
  const find = (namespace: string, group: string): KnownGroup | undefined =>
    !isOff(namespace) && (listed.has("") || listed.has(namespace)) ? obtain(namespace, nameOfGroup(group)) : undefined;

  async function list(scope: string): Promise<void> {
    const call = { deadlineMs: READ_MS, signal: stop };
    const query = scope === "" ? {} : { namespace: scope };
    const { items } = await readAll({ resource: rolloutGroups, query, read: readListed }, { cluster }, call);
    const found = new Set(items.map(take));
    // One that is gone and comes again is another one: it starts from nothing.
    const isWithin = ({ namespace }: KnownGroup): boolean => scope === "" || scope === namespace;
    const gone = [...groups.values()].filter((known) => isWithin(known) && !known.isBusy && !found.has(known));
    for (const known of gone) forget(known);
    listed.add(scope);
    unreadable.delete(scope);
  }

  /** Our own write may be newer than the list; what a definition drops of it, we have sent all the same. */
  function take({ namespace, name, stored }: ListedGroup): KnownGroup {
    const known = obtain(namespace, name);
    if (!known.isBusy && known.stored?.resourceVersion !== stored.resourceVersion) known.stored = stored;
    return known;
  }

  /** A namespace that cannot be read does not hold up the others. */
  async function listAll(namespaces: readonly string[]): Promise<true> {
    for (const scope of namespaces)
      await list(scope).catch((error: unknown) => {
        if (hasCode(error, "NotFound", "Cancelled")) throw error;
        if (!unreadable.has(scope)) log.warn("the rollout groups could not be read", { namespace: scope, error });
        if (hasCode(error, "Forbidden")) unreadable.add(scope);
      });
    return true;
  }

  function decide(known: KnownGroup, outcome: Outcome, timing: Timing): void {
    const facts = factsOfOutcome(outcome);
    known.zones = facts.zones;
    const status = decideStatus({ ...inputOf(known), ...timing, facts, now: clock.now() });
    const difference = compareStatus(known.stored?.status ?? {}, status);
    // A group that is settled and stays so is counted by its ticks.
    if (difference === "none" && facts.state === "settled") return;
    known.decided = status;
    const quietMs = clock.monotonic() - Math.max(known.writtenAt, startedAt);
    if (difference === "essence" || (difference === "details" && quietMs >= DETAILS_MS)) write(known);
  }

  function clear(known: KnownGroup): void {
    if (known.stored?.isOurs) start(known, () => removeGroup(known, options).then(() => forget(known)));
    else if (known.stored) decide(known, goneGroup(known), { tookMs: 0, passes: 0 });
  }

  /** Goes on until the status that was decided last is stored. */
  function write(known: KnownGroup): void {
    start(known, async () => {
      do {
        using _slot = await slots.take();
        await writeGroup(known, options);
        known.writtenAt = clock.monotonic();
      } while (differenceOf(known) === "essence");
    });
  }

  /** One write of a group at a time. */
  function start(known: KnownGroup, work: () => Promise<void>): void {
    if (known.isBusy) return;
    known.isBusy = true;
    const run = work()
      .catch((error: unknown) => explain(error, known))
      .finally(() => {
        known.isBusy = false;
        running.delete(run);
      });
    running.add(run);
  }

  /** What somebody else has changed is decided again by the next tick, which lists it. */
  function explain(error: unknown, known: KnownGroup): void {
    const { namespace, name } = known;
    if (hasCode(error, "NotFound")) forget(known);
    if (hasCode(error, "Conflict", "NotFound", "AlreadyExists")) return;
    if (hasCode(error, "Forbidden")) forbiddenAt.set(namespace, clock.monotonic());
    logUnwritten(log, "the status of a rollout group could not be written", { namespace, group: name, error });
  }

  return {
    async beginTick(namespaces, underWay = new Set()) {
      try {
        await kind.read(() => listAll(namespaces));
      } catch (error) {
        if (!hasCode(error, "Cancelled")) log.warn("the rollout groups could not be read", { error });
      }
      const busy = new Set([...underWay].map(nameOfKey));
      for (const [key, known] of groups) if (!busy.has(key)) known.confirmed = known.stored;
    },
    report(outcome, timing) {
      const known = find(outcome.namespace, outcome.group);
      if (known) decide(known, outcome, timing);
    },
    recall({ namespace, group, zones }) {
      const stored = find(namespace, group)?.stored;
      return stored && recallSeen(stored.status.zones, zones);
    },
    endTick({ groups: living, resourceVersions }) {
      const keys = new Set([...living.keys()].map(nameOfKey));
      const wasRead = ({ namespace }: KnownGroup): boolean =>
        !isOff(namespace) && (resourceVersions.has("") || resourceVersions.has(namespace));
      for (const [key, known] of groups) if (!keys.has(key) && wasRead(known)) clear(known);
    },
    async flush() {
      for (const known of groups.values()) if (!isOff(known.namespace) && differenceOf(known) !== "none") write(known);
      await Promise.all(running);
    },
  };
}

const goneGroup = ({ namespace, name: group }: KnownGroup): Outcome => ({
  namespace,
  group,
  zones: [],
  scalingHolds: [],
  notes: [],
  state: "settled",
});

interface ListedGroup extends Pick<KnownGroup, "namespace" | "name"> {
  readonly stored: StoredGroup;
}

function readListed(object: RolloutGroup): ListedGroup {
  const { namespace = "", name = "" } = object.metadata;
  return { namespace, name, stored: readStoredGroup(object) };
}

/** The key of a group's RolloutGroup, from that of the group. */
function nameOfKey(key: string): string {
  const [namespace = "", group = ""] = key.split("/");
  return `${namespace}/${nameOfGroup(group)}`;
}

function inputOf({
  stored,
  confirmed,
  decided,
}: KnownGroup): Pick<StatusInput, "earlier" | "generation" | "deadlineMs"> {
  return {
    earlier: decided ?? stored?.status ?? {},
    // An object that somebody has made since was not read before the zones. The spec of one that we are about to create
    // asks for nothing.
    generation: stored ? (stored.uid === confirmed?.uid ? confirmed.generation : 0) : 1,
    deadlineMs: stored?.deadlineMs ?? DEFAULT_DEADLINE_MS,
  };
}

/** How far the stored status is from the one that was decided last. */
const differenceOf = ({ stored, decided }: KnownGroup): Difference =>
  decided === undefined ? "none" : compareStatus(stored?.status ?? {}, decided);
