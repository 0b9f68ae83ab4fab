/**
 * The RolloutGroups of the namespaces, as this process knows them:
 *
 *   unread --list--> watched --a change by somebody else--> that object is read again before the next tick
 *      ^                 |
 *      +---- the watch ended: listed again before the next tick, at most every 30 s
 *
 * A tick may state the generation of an object that was read before the tick listed the StatefulSets (§11.2), so reads
 * come before ticks.
 */
import type { Clock } from "../../../infra/clock.ts";
import { absent, hasCode } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { rolloutGroups } from "../../../infra/kubernetes/custom-resources.ts";
import { isNewer, type Entry } from "./entry.ts";
import { readStoredGroup } from "./stored-group.ts";

interface KnownGroups {
  readonly entries: ReadonlyMap<string, Entry>;
  /** The entry of a RolloutGroup, known or not; undefined while its namespace has not been read. */
  readonly entryOf: (namespace: string, name: string) => Entry | undefined;
  readonly forget: (entry: Entry) => void;
  /**
   * Reads the objects that may have changed, and confirms the generations for the tick that follows; not those of
   * `busy` entries, whose zones an earlier tick has read. Resolves with the namespaces that could not be read, each
   * with its error: the others do not suffer. Throws `NotFound` if the API server has no such kind, or `Cancelled`.
   */
  readonly refresh: (namespaces: readonly string[], busy: ReadonlySet<string>) => Promise<ReadonlyMap<string, unknown>>;
}

/** `stop` ends the watches. */
export interface KnownGroupsOptions extends Pick<Context, "cluster" | "stop"> {
  readonly clock: Pick<Clock, "monotonic">;
  /** Called when somebody else has changed an object. */
  readonly onChange: () => void;
}

/** Milliseconds. Statuses can wait, the tick cannot. */
const READ_MS = 3000;
const RELIST_MS = 30_000;
/** A list is cheaper than so many single reads. */
const MAX_GETS = 20;

export function createKnownGroups({ cluster, clock, stop, onChange }: KnownGroupsOptions): KnownGroups {
  const entries = new Map<string, Entry>();
  const listedAt = new Map<string, number>();
  /** Scopes of which a list has arrived: of others it is not known which groups have a status. */
  const known = new Set<string>();
  const watched = new Set<string>();
  const call = { deadlineMs: READ_MS, signal: stop };

  async function list(scope: string): Promise<void> {
    listedAt.set(scope, clock.monotonic());
    const seen = new Set<string>();
    let version = "";
    for await (const page of cluster.list(rolloutGroups, scope === "" ? {} : { namespace: scope }, call)) {
      version = page.resourceVersion;
      for (const object of page.items) {
        const { namespace = "", name = "" } = object.metadata;
        seen.add(`${namespace}/${name}`);
        update(obtain(namespace, name), readStoredGroup(object));
      }
    }
    for (const [key, entry] of entries) if (isWithin(scope, entry) && !seen.has(key)) update(entry, undefined);
    known.add(scope);
    // A list of many that have changed finds the watch running.
    if (!watched.has(scope)) void watch(scope, version);
  }

  function obtain(namespace: string, name: string): Entry {
    const key = `${namespace}/${name}`;
    const entry = entries.get(key) ?? { namespace, name, busy: false, writtenAt: -Infinity };
    entries.set(key, entry);
    return entry;
  }

  async function watch(scope: string, resourceVersion: string): Promise<void> {
    watched.add(scope);
    const query = { ...(scope !== "" && { namespace: scope }), resourceVersion };
    const watcher = {
      signal: stop,
      onHint: (hint: {
        readonly type: string;
        readonly namespace: string;
        readonly name: string;
        readonly resourceVersion: string;
      }) => {
        if (hint.type === "BOOKMARK") return;
        const entry = obtain(hint.namespace, hint.name);
        entry.hinted = hint.resourceVersion;
        if (isStale(entry)) onChange();
      },
    };
    // A watch is a hint: without it, changes are found with the next list.
    await cluster.watch(rolloutGroups, query, watcher).catch(() => {});
    watched.delete(scope);
  }

  async function read(entry: Entry): Promise<void> {
    const { namespace, name } = entry;
    const object = await cluster.get(rolloutGroups, { namespace, name }, call).catch(absent);
    update(entry, object && readStoredGroup(object));
  }

  return {
    entries,
    entryOf: (namespace, name) => (known.has("") || known.has(namespace) ? obtain(namespace, name) : undefined),
    forget: ({ namespace, name }) => void entries.delete(`${namespace}/${name}`),
    async refresh(namespaces, busy) {
      const stale = [...entries.values()].filter(isStale);
      const isDue = (scope: string): boolean => clock.monotonic() - (listedAt.get(scope) ?? -Infinity) >= RELIST_MS;
      const scopes = namespaces.filter((scope) => stale.length > MAX_GETS || (!watched.has(scope) && isDue(scope)));
      const failures = new Map<string, unknown>();
      const fail = (namespace: string) => (error: unknown) => {
        if (hasCode(error, "NotFound", "Cancelled")) throw error;
        failures.set(namespace, error);
      };
      for (const scope of scopes) await list(scope).catch(fail(scope));
      await Promise.all(stale.filter(isStale).map((entry) => read(entry).catch(fail(entry.namespace))));
      for (const [key, entry] of entries) {
        if (!busy.has(key))
          entry.confirmed = entry.stored && { uid: entry.stored.uid, generation: entry.stored.generation };
      }
      return failures;
    },
  };
}

const isWithin = (scope: string, { namespace }: Entry): boolean => scope === "" || scope === namespace;

/** True if somebody else has changed it since it was read or written. */
export function isStale({ busy, hinted, stored }: Entry): boolean {
  return !busy && hinted !== undefined && isNewer(hinted, stored?.resourceVersion);
}

/** Takes over the object that was read, unless a write is under way. */
function update(entry: Entry, stored: Entry["stored"]): void {
  if (entry.busy) return;
  entry.stored = stored;
  delete entry.hinted;
}
