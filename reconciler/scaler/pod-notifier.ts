/**
 * Notifies pods that they stay (§2.6), beside the ticks and never in their way. What they answer changes nothing, so that it is repeated only now
 * and then: by a new process, for a new number of pods, or after half a minute.
 */
import type { LogNote } from "../report/outcome.ts";
import { callPods } from "../../infra/call-pods.ts";
import { firstOfSignals, type Clock } from "../../infra/clock.ts";
import { hasCode, messageOf } from "../../infra/errors.ts";
import type { PodHttp } from "../../infra/pod-http.ts";
import { createSlots } from "../../infra/slots.ts";
import type { Zone } from "../model/zone.ts";
import type { Endpoints } from "../scaling/delayed.ts";

export interface PodNotifier {
  /** Begins to DELETE at these pods. Resolves once nothing that was begun earlier for other pods of the zone is under way: it may have been for those that are to go now. */
  readonly cancelPreparation: (zone: Zone, pods: Endpoints) => Promise<void>;
  /** Resolves once nothing is under way. */
  readonly idle: () => Promise<void>;
}

export interface PodNotifierOptions {
  readonly http: PodHttp;
  readonly clock: Pick<Clock, "monotonic">;
  readonly onNote: (note: LogNote, zone: Zone) => void;
  /** Ends all of it. */
  readonly signal: AbortSignal;
}

const REPEAT_MS = 30_000;
/** Over all zones: half of the requests that pods get at once stay free for those that are to go. */
const AT_ONCE = 16;
/** After so many that do not answer, the rest of a zone is left for the next time. */
const PATIENCE = 3;

interface Round {
  readonly pods: number;
  readonly begunAt: number;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

export function createPodNotifier({ http, clock, onNote, signal }: PodNotifierOptions): PodNotifier {
  const rounds = new Map<string, Round>();
  const slots = createSlots(AT_ONCE);
  const limited: PodHttp = {
    async send(method, url, request) {
      using _slot = await slots.take(request.signal);
      return await http.send(method, url, request);
    },
  };

  async function notify(zone: Zone, pods: Endpoints, stop: AbortController): Promise<void> {
    const locked = tally();
    const failed = tally();
    let silent = 0;
    await callPods({
      http: limited,
      method: "DELETE",
      namespace: zone.namespace,
      targets: pods,
      atOnce: AT_ONCE,
      signal: firstOfSignals(signal, stop.signal),
      onAnswer({ pod }, { status }) {
        if (status === 409) locked.add(pod);
        else if (status < 200 || status >= 300) failed.add(`${pod} answered ${status}`);
      },
      onFailure(_pod, error) {
        if (!hasCode(error, "Cancelled")) failed.add(messageOf(error));
        if (hasCode(error, "Timeout", "Unreachable") && ++silent === PATIENCE) stop.abort();
      },
    });
    stop.abort();
    if (locked.count > 0) onNote({ level: "info", text: `${zone.name}: the preparation of ${locked.describe()} is locked (409)` }, zone);
    if (failed.count > 0) onNote({ level: "warn", text: describeFailures(zone, failed, silent >= PATIENCE) }, zone);
  }

  return {
    async cancelPreparation(zone, pods) {
      const last = rounds.get(zone.uid);
      const now = clock.monotonic();
      if (last?.pods === pods.count && now - last.begunAt < REPEAT_MS) return;
      last?.stop.abort();
      await last?.done;
      const stop = new AbortController();
      rounds.set(zone.uid, { pods: pods.count, begunAt: now, stop, done: notify(zone, pods, stop) });
    },
    idle: async () => void (await Promise.all([...rounds.values()].map(({ done }) => done))),
  };
}

function describeFailures(zone: Zone, failed: Tally, gaveUp: boolean): string {
  const rest = gaveUp ? "; the others are left for the next time" : "";
  return `${zone.name}: ${failed.count} pods could not be told that they stay, the first: ${failed.first()}${rest}`;
}

/** Names that a line spells out. */
const MOST_NAMED = 10;

interface Tally {
  readonly count: number;
  readonly add: (text: string) => void;
  readonly first: () => string | undefined;
  /** The first ones in order, and how many more there are. */
  readonly describe: () => string;
}

/** Counts all, and remembers a few: a zone may have a million pods. */
function tally(): Tally {
  const named: string[] = [];
  let count = 0;
  return {
    get count() {
      return count;
    },
    add(text) {
      count++;
      if (named.length < MOST_NAMED) named.push(text);
    },
    first: () => named.toSorted()[0],
    describe: () => named.toSorted().join(", ") + (count > named.length ? ` and ${count - named.length} more` : ""),
  };
}
