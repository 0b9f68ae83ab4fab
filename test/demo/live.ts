/** Follows the group in the embedded cluster's store, and keeps the screen up to date. */
import type { Clock } from "../../infra/clock.ts";
import type { Store } from "../emulator/store.ts";
import { drawPicture, formatSeconds } from "./picture.ts";
import { advance, elapsed, isSettled, readZones, summarise, type Progress } from "./progress.ts";
import type { Screen } from "./screen.ts";

export interface LiveOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly screen: Screen;
  readonly namespace: string;
  readonly group: string;
  /** Fires when it shall end. */
  readonly stop: AbortSignal;
}

export interface Live {
  /** What is happening and why, as told by the reconciler; `settled` if it says that nothing is left to do. */
  readonly tell: (news: string, settled: boolean) => void;
  /** Resolves once the group is settled and the reconciler has said so, with true; with false after `ms` milliseconds, or when the end comes first. */
  readonly settled: (ms: number) => Promise<boolean>;
}

/** Redraws a second, while a rollout's time goes on. */
const FRAMES = 10;

export function showLive({ store, clock, screen, namespace, group, stop }: LiveOptions): Live {
  let progress: Progress | undefined;
  let concluded: Progress | undefined;
  let news = "";
  let saidSettled = false;
  let due = false;
  const waiting = new Set<() => void>();

  const zonesNow = () => readZones(store.list("statefulsets.apps", namespace), store.list("pods", namespace), group);

  const draw = (): void => {
    due = false;
    const now = clock.monotonic();
    const time = progress ? formatSeconds(elapsed(progress, now)) : "";
    screen.show(drawPicture({ group, zones: zonesNow(), progress, news, now }), time);
  };

  // One commit brings others about at once: they make one picture.
  const drawSoon = (): void => {
    if (!due) setImmediate(draw);
    due = true;
  };

  const isDone = (): boolean => saidSettled && isSettled(zonesNow());

  const concludeIfDone = (): void => {
    if (!isDone()) return;
    for (const wake of waiting) wake();
    if (!progress || progress === concluded) return;
    concluded = progress;
    draw();
    const summary = summarise(progress);
    if (summary !== undefined) screen.print(summary);
  };

  const unsubscribe = store.subscribe((event) => {
    const { resource, object } = event;
    if (object.metadata.namespace !== namespace || (resource !== "pods" && resource !== "statefulsets.apps")) return;
    const before = progress;
    progress = advance(before, event, zonesNow(), clock.monotonic());
    if (progress?.startedAt !== before?.startedAt) saidSettled = false;
    drawSoon();
    concludeIfDone();
  });
  const frames = setInterval(draw, 1000 / FRAMES);
  const end = (): void => {
    unsubscribe();
    clearInterval(frames);
  };
  // An abort that has been fires no more.
  if (stop.aborted) end();
  else stop.addEventListener("abort", end, { once: true });

  return {
    tell(text, settled) {
      news = text;
      saidSettled = settled;
      drawSoon();
      concludeIfDone();
    },
    async settled(ms) {
      const over = new AbortController();
      const wake = (): void => over.abort();
      waiting.add(wake);
      if (!isDone()) await clock.sleep(ms, AbortSignal.any([stop, over.signal]));
      waiting.delete(wake);
      return isDone();
    },
  };
}
