/**
 * Processes that contend for one Lease in simulated time, with clocks that jump, slow and lost answers, freezes and
 * kills: a cluster as a value.
 */
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../../infra/clock.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster, Watcher } from "../../../infra/kubernetes/cluster.ts";
import { acquireLease, type AcquiredLease } from "../../../infra/kubernetes/lease.ts";
import type { Lease } from "../../../infra/kubernetes/resources.ts";
import { seededRandom, type Random } from "../../reconciler/interleavings/random.ts";

export const DURATION_MS = 15_000;
const CALL_MS = DURATION_MS / 6;
const START = Date.UTC(2026, 0, 1);

export interface Trouble {
  /** Whether processes lose their connection for up to 20 s. */
  readonly cuts: boolean;
  /** Whether processes stand still for up to 30 s, or are killed. */
  readonly halts: boolean;
  /** Whether machines' clocks jump by up to an hour. */
  readonly clocksJump: boolean;
}

interface Process {
  readonly name: string;
  wallMs: number;
  thawAt: number;
  cutUntil: number;
  dead: boolean;
  held: AcquiredLease | undefined;
  /** Until when a write that it was allowed may take effect. */
  writesUntil: number;
}

export interface Played {
  readonly violations: readonly string[];
  readonly takeovers: number;
  readonly handovers: number;
  readonly kills: number;
}

/** Time that only moves on when all has been done that was due before. */
function createTime() {
  const timers: { at: number; run: () => void }[] = [];
  let now = START;
  return {
    now: () => now,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        if (signal?.aborted) return resolve();
        timers.push({ at: now + Math.max(0, ms), run: resolve });
        signal?.addEventListener("abort", () => resolve(), { once: true });
      }),
    async playUntil(end: number): Promise<void> {
      while (now < end) {
        await setImmediate();
        timers.sort((a, b) => a.at - b.at);
        const next = timers.shift();
        if (!next) return;
        now = Math.max(now, next.at);
        next.run();
      }
    },
  };
}

/** Three minutes of four processes, each with a life of its own; the same for the same seed. */
export async function playContest(seed: number, trouble: Trouble): Promise<Played> {
  const roll: Random = seededRandom(seed);
  const time = createTime();
  const violations: string[] = [];
  const counts = { takeovers: 0, handovers: 0, kills: 0 };
  let stored: Lease | undefined;
  let version = 0;
  const watching = new Set<(lease: Lease) => Promise<void>>();
  const processes = ["a", "b", "c", "d"].map((name): Process => {
    return { name, wallMs: 0, thawAt: 0, cutUntil: 0, dead: false, held: undefined, writesUntil: 0 };
  });

  const holderOf = (lease: Lease | undefined) => processes.find(({ name }) => name === lease?.spec?.holderIdentity);

  function store(body: Lease): Lease {
    if (body.metadata?.resourceVersion !== stored?.metadata?.resourceVersion)
      throw new RolloutError("Conflict", "another version");
    const [before, after] = [holderOf(stored), holderOf(body)];
    if (before && after && before !== after) {
      counts.takeovers++;
      const overlapMs = before.writesUntil - time.now();
      if (overlapMs > 0)
        violations.push(`${after.name} took the Lease, and ${before.name} may write for ${overlapMs} ms`);
    }
    stored = { ...structuredClone(body), metadata: { ...body.metadata, resourceVersion: String(++version) } };
    for (const tell of watching) void tell(stored);
    return structuredClone(stored);
  }

  /** Resolves while the process runs: never, once it is dead. */
  async function resume(process: Process): Promise<void> {
    while (process.dead || process.thawAt > time.now())
      await time.sleep(process.dead ? 1e9 : process.thawAt - time.now());
  }

  function connect(process: Process): Cluster {
    async function call<T>(effect: () => T): Promise<T> {
      const sentAt = time.now();
      const isLost = (): boolean => process.cutUntil > time.now() && roll(4) > 0;
      const fail = async (): Promise<never> => {
        await time.sleep(sentAt + CALL_MS - time.now());
        await resume(process);
        throw new RolloutError("Timeout", "no answer");
      };
      await time.sleep(roll(120));
      if (isLost()) return await fail();
      const [value, error] = attempt(effect);
      await time.sleep(roll(120));
      if (isLost()) return await fail();
      await resume(process);
      if (error !== undefined) throw error;
      return value as T;
    }
    const known = (): Lease => {
      if (!stored) throw new RolloutError("NotFound", "no Lease yet");
      return structuredClone(stored);
    };
    /** Events come late, out of order or not at all, and the connection is cut after a while. */
    async function watch(_resource: unknown, _query: unknown, { onObject, signal }: Required<Watcher>): Promise<void> {
      const over = new AbortController();
      const tell = async (lease: Lease): Promise<void> => {
        if (roll(4) === 0) return;
        await time.sleep(roll(roll(4) === 0 ? 20_000 : 300));
        await resume(process);
        if (process.cutUntil <= time.now() && !over.signal.aborted) onObject("MODIFIED", structuredClone(lease));
      };
      const end = (): void => over.abort("over");
      signal.addEventListener("abort", end, { once: true });
      watching.add(tell);
      if (stored) void tell(stored);
      await time.sleep(5000 + roll(60_000), over.signal);
      end();
      watching.delete(tell);
      if (roll(2) === 0) throw new RolloutError("Unreachable", "cut");
    }
    return {
      watch,
      get: () => call(known),
      create: (_resource: unknown, { body }: { body: Lease }) => call(() => store(body)),
      replace: (_resource: unknown, { body }: { body: Lease }) => call(() => store(body)),
    } as unknown as Cluster;
  }

  /**
   * Waits for a while, holds the Lease for a while, and releases it, or is killed; again and again, each time as a new
   * observer.
   */
  async function live(process: Process, end: number): Promise<void> {
    const machine: Clock = {
      now: () => time.now() + process.wallMs,
      monotonic: () => time.now(),
      sleep: (ms, signal) => time.sleep(ms, signal).then(() => resume(process)),
    };
    const tools = { cluster: connect(process), clock: machine };
    for (let life = 0; time.now() < end; life++) {
      await machine.sleep(roll(3000));
      const options = {
        namespace: "n",
        name: "l",
        identity: process.name,
        durationMs: DURATION_MS,
        announces: roll(2) === 0,
      };
      const impatient = new AbortController();
      void machine.sleep(8000 + roll(16_000)).then(() => impatient.abort());
      process.held = await acquireLease(tools, options, impatient.signal).catch(() => undefined);
      const { held } = process;
      if (!held) continue;
      const over = new AbortController();
      held.lost.addEventListener("abort", () => over.abort(), { once: true });
      held.awaited.addEventListener("abort", () => over.abort(), { once: true });
      await machine.sleep(5000 + roll(40_000), over.signal);
      if (held.awaited.aborted) counts.handovers++;
      process.held = undefined;
      process.writesUntil = 0;
      await held.release();
    }
  }

  /** What befalls the processes, and what they may write at every moment. */
  async function disturb(end: number): Promise<void> {
    while (time.now() < end) {
      await time.sleep(100);
      for (const process of processes) {
        if (process.dead || process.thawAt > time.now()) continue;
        if (trouble.clocksJump && roll(300) === 0) process.wallMs = roll(7_200_000) - 3_600_000;
        if (trouble.halts && roll(400) === 0) process.thawAt = time.now() + roll(30_000);
        if (trouble.cuts && roll(300) === 0) process.cutUntil = time.now() + roll(20_000);
        if (trouble.halts && roll(600) === 0 && process.held && counts.kills < 1) {
          process.dead = true;
          counts.kills++;
        }
        const [call] = attempt(() => process.held?.write());
        if (call?.deadlineMs !== undefined)
          process.writesUntil = Math.max(process.writesUntil, time.now() + call.deadlineMs);
      }
    }
  }

  const end = START + 180_000;
  for (const process of processes) void live(process, end);
  void disturb(end);
  await time.playUntil(end);
  return { violations, ...counts };
}

function attempt<T>(effect: () => T): readonly [T | undefined, unknown] {
  try {
    return [effect(), undefined];
  } catch (error) {
    return [undefined, error];
  }
}
