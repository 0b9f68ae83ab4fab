/**
 * Shrinks a history that fails to a smaller one that fails in the same way: fewer actions, faults, zones, pods and
 * processes, and a shorter time of trouble.
 *
 *     leave something out -> play until the first violation -> the same kind? -> keep it left out, otherwise put it back
 *            ^-------------------------------- until nothing more can go, or the bound is reached ---------'
 */
import { type History, play, type PlayOptions } from "./play.ts";
import { commandOf, type Reduction, smallerShapes, WHOLE_HISTORY } from "./reduction.ts";

export interface ShrinkOptions {
  readonly seed: number;
  readonly play: (seed: number, options: PlayOptions) => Promise<History>;
  /** How many histories it may play. */
  readonly attempts: number;
  /** False once its time is spent. */
  readonly mayGoOn: () => boolean;
}

export interface Shrunk {
  readonly reduction: Reduction;
  readonly history: History;
  /** Histories that were played. */
  readonly played: number;
}

/** Histories that are played, and milliseconds spent, to shrink one. */
const MAX_ATTEMPTS = 400;
const MAX_MS = 120_000;

/** What a history that failed was shrunk to, in words, with the command that plays that again. */
export async function describeShrunk({ seed, shape, actions, strikes }: History, restMs: number): Promise<string> {
  const end = performance.now() + MAX_MS;
  const mayGoOn = (): boolean => performance.now() < end;
  const shrunk = await shrink({ seed, play, attempts: MAX_ATTEMPTS, mayGoOn });
  if (!shrunk) return `seed ${seed} does not fail when it is played again`;
  const { history, reduction, played } = shrunk;
  const { digest } = await play(seed, { restMs, reduction });
  const size = (all: readonly unknown[], left: readonly unknown[]): string => `${left.length} of ${all.length}`;
  return [
    `shrunk by ${played} histories to ${size(shape.zones, history.shape.zones)} zones, ` +
      `${size(actions, history.actions)} actions and ${size(strikes, history.strikes)} faults, ` +
      `${Math.round(history.simulatedMs / 1000)} s until it fails (digest ${digest}):`,
    `${commandOf(seed, reduction)} --trace`,
    history.violations[0],
  ].join("\n  ");
}

/** The kind of a violation: its words without names, numbers and lists of them. */
export const kindOf = (violation: string): string =>
  violation
    .replaceAll(/[{"[].*$/g, "")
    .replaceAll(/\S*[\d/]\S*|\S*-zone-\S*/g, "#")
    .replaceAll(/#(?:[, ]+#)*/g, "#");

/** Undefined if the seed does not fail. */
export async function shrink({ seed, play, attempts, mayGoOn }: ShrinkOptions): Promise<Shrunk | undefined> {
  const first = await play(seed, { untilViolation: true });
  const kind = kindOf(first.violations[0] ?? "");
  if (kind === "") return undefined;
  let played = 1;
  let best: Omit<Shrunk, "played"> = { reduction: WHOLE_HISTORY, history: first };
  const canGoOn = (): boolean => played < attempts && mayGoOn();

  /** Keeps the change if the history fails all the same. */
  async function fails(change: Partial<Reduction>): Promise<boolean> {
    if (!canGoOn()) return false;
    played++;
    const reduction = { ...best.reduction, ...change };
    // What is left of a world may be none that can be played.
    const history = await play(seed, { untilViolation: true, reduction }).catch(() => undefined);
    if (!history || kindOf(history.violations[0] ?? "") !== kind) return false;
    best = { reduction, history };
    return true;
  }

  for (let before = ""; before !== JSON.stringify(best.reduction) && canGoOn();) {
    before = JSON.stringify(best.reduction);
    await thin(best.history.actions, canGoOn, (actions) => fails({ actions }));
    await thin(best.history.strikes, canGoOn, (strikes) => fails({ strikes }));
    for (const [key, value] of smallerShapes(best.history.shape))
      await fails({ shape: { ...best.reduction.shape, [key]: value } });
  }
  return { ...best, played };
}

/** Leaves out parts of a list, halves first, then smaller ones, as long as what is left fails. */
export async function thin<T>(
  items: readonly T[],
  mayGoOn: () => boolean,
  failsWith: (left: readonly T[]) => Promise<boolean>,
): Promise<void> {
  let left = items;
  if (left.length > 0 && (await failsWith([]))) return;
  for (let size = Math.ceil(left.length / 2); size >= 1 && mayGoOn(); size = size > 1 ? Math.ceil(size / 2) : 0)
    for (let from = 0; from < left.length && mayGoOn();) {
      const fewer = [...left.slice(0, from), ...left.slice(from + size)];
      if (fewer.length > 0 && (await failsWith(fewer))) left = fewer;
      else from += size;
    }
}
