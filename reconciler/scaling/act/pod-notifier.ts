/**
 * Cancels the preparation of pods that stay (§2.6), beside the ticks and without delaying them. The answers change no
 * decision, so the calls are repeated only by a new process, for a new number of pods, or after half a minute.
 */
import type { LogNote } from "../../model/outcome.ts";
import { callLivingFirst } from "../../../infra/call-pods.ts";
import { listSome } from "../../../infra/cut.ts";
import { firstOfSignals, type Clock } from "../../../infra/clock.ts";
import { hasCode, messageOf } from "../../../infra/errors.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import { createSlots } from "../../../infra/slots.ts";
import type { Zone } from "../../model/zone.ts";
import type { Endpoints } from "../delayed.ts";

export type PodNotifier = ReturnType<typeof createPodNotifier>;

interface PodNotifierOptions {
  readonly http: PodHttp;
  readonly clock: Pick<Clock, "monotonic">;
  readonly onNote: (note: LogNote, zone: Zone) => void;
  /** Ends every round. */
  readonly signal: AbortSignal;
}

const REPEAT_MS = 30_000;
/** Concurrent requests over all zones: the other half of the slots remains free for pods that are to leave. */
const AT_ONCE = 16;

interface Round {
  readonly pods: number;
  readonly begunAt: number;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

export function createPodNotifier({ http, clock, onNote, signal }: PodNotifierOptions) {
  const rounds = new Map<string, Round>();
  const calls = limit(http);

  async function notify(zone: Zone, pods: Endpoints, stop: AbortController): Promise<void> {
    const locked: string[] = [];
    const failed: string[] = [];
    await callLivingFirst({
      http: calls,
      method: "DELETE",
      namespace: zone.namespace,
      targets: pods,
      atOnce: AT_ONCE,
      signal: firstOfSignals(signal, stop.signal),
      onAnswer({ pod }, { status }) {
        if (status === 409) locked.push(pod);
        else if (status < 200 || status >= 300) failed.push(`${pod} answered ${status}`);
      },
      onFailure(_pod, error) {
        if (!hasCode(error, "Cancelled")) failed.push(messageOf(error));
      },
    });
    stop.abort();
    if (locked.length > 0) {
      const text = `${zone.name}: the preparation of ${listSome(locked.toSorted())} is locked (409)`;
      onNote({ level: "info", text }, zone);
    }
    if (failed.length > 0) onNote({ level: "warn", text: describeFailures(zone, failed) }, zone);
  }

  return {
    /**
     * Starts a DELETE to each of these pods. Resolves once no earlier round for the zone is running: that round may
     * include pods that are to leave now.
     */
    async cancelPreparation(zone: Zone, pods: Endpoints): Promise<void> {
      const last = rounds.get(zone.uid);
      const now = clock.monotonic();
      const isRunning = last?.stop.signal.aborted === false;
      if (last?.pods === pods.count && (isRunning || now - last.begunAt < REPEAT_MS)) return;
      last?.stop.abort();
      await last?.done;
      const stop = new AbortController();
      rounds.set(zone.uid, { pods: pods.count, begunAt: now, stop, done: notify(zone, pods, stop) });
    },
    /** Resolves once no round is running. */
    idle: async (): Promise<void> => void (await Promise.all([...rounds.values()].map(({ done }) => done))),
  };
}

/** The same client for so many requests at once; namespaces take turns. */
function limit(http: PodHttp): PodHttp {
  const slots = createSlots(AT_ONCE);
  return {
    async send(method, url, request) {
      using _slot = await slots.take(request.signal, request.namespace);
      return await http.send(method, url, request);
    },
  };
}

function describeFailures(zone: Zone, failed: readonly string[]): string {
  const [first] = failed.toSorted();
  return `${zone.name}: ${failed.length} pods did not confirm that their preparation was cancelled, the first: ${first}`;
}
