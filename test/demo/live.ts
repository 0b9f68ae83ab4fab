/** Watches the group in the embedded cluster's store, and writes what changes. */
import type { Clock } from "../../infra/clock.ts";
import type { Store } from "../emulator/store.ts";
import { drawZone, formatSeconds } from "./picture.ts";
import { advance, elapsed, isSettled, readZones, summarise, type Progress } from "./progress.ts";
import type { Screen } from "./screen.ts";

interface LiveOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly screen: Screen;
  readonly namespace: string;
  readonly group: string;
  /** Aborting it ends the updates. */
  readonly stop: AbortSignal;
}

export interface Live {
  /** Shows a message of the reconciler; `settled` if the message reports the group as settled. */
  readonly report: (message: string, settled: boolean) => void;
  /**
   * Resolves with true once the group is settled and the reconciler has reported it; with false after
   * `timeoutMs`, or if `stop` is aborted first.
   */
  readonly untilSettled: (timeoutMs: number) => Promise<boolean>;
}

export function showLive({ store, clock, screen, namespace, group, stop }: LiveOptions): Live {
  let progress: Progress | undefined;
  let summarised: Progress | undefined;
  let message = "";
  let reportedSettled = false;
  let drawScheduled = false;
  const waiting = new Set<() => void>();

  const currentZones = () =>
    readZones(store.list("statefulsets.apps", namespace), store.list("pods", namespace), group);

  const draw = (): void => {
    drawScheduled = false;
    const time = progress ? formatSeconds(elapsed(progress, clock.monotonic())) : "";
    screen.show(currentZones().map(drawZone), message, time);
  };

  // Controllers react to a write at once: one row shows the changes together.
  const scheduleDraw = (): void => {
    if (!drawScheduled) setImmediate(draw);
    drawScheduled = true;
  };

  const isDone = (): boolean => reportedSettled && isSettled(currentZones());

  const summariseIfDone = (): void => {
    if (!isDone()) return;
    for (const wake of waiting) wake();
    if (!progress || progress === summarised) return;
    summarised = progress;
    draw();
    const summary = summarise(progress);
    if (summary !== undefined) screen.print(summary);
  };

  const unsubscribe = store.subscribe((event) => {
    const { resource, object } = event;
    if (object.metadata.namespace !== namespace || (resource !== "pods" && resource !== "statefulsets.apps")) return;
    const before = progress;
    progress = advance(before, event, { zones: currentZones(), now: clock.monotonic() });
    if (progress?.startedAt !== before?.startedAt) reportedSettled = false;
    scheduleDraw();
    summariseIfDone();
  });
  // An aborted signal fires no more events.
  if (stop.aborted) unsubscribe();
  else stop.addEventListener("abort", unsubscribe, { once: true });

  return {
    report(text, settled) {
      message = text;
      reportedSettled = settled;
      scheduleDraw();
      summariseIfDone();
    },
    async untilSettled(timeoutMs) {
      const settled = new AbortController();
      const wake = (): void => settled.abort();
      waiting.add(wake);
      if (!isDone()) await clock.sleep(timeoutMs, AbortSignal.any([stop, settled.signal]));
      waiting.delete(wake);
      return isDone();
    },
  };
}
