/**
 * Checks of endpoints that do not answer, or slowly, before one in the list that does: rounds in a time of their own.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import type { PrometheusClient } from "../../../../infra/prometheus/act/client.ts";
import { createChecker } from "../../../../reconciler/checks/act/ask-prometheus.ts";
import { dueAt, NO_STREAK } from "../../../../reconciler/checks/check.ts";
import { nextResult } from "../../../../reconciler/checks/result.ts";
import { either } from "../../../runs.ts";

/** The short run plays half of each hour. */
const HOURS = either(1, 0.5);
const END_MS = HOURS * 3_600_000;
const TIMEOUT_MS = 5000;
/** Of an endpoint that answers just in time. */
const SLOW_MS = 4500;
const PAUSE_MS = 1000;

/** A clock that goes on to the next timer once all that can happen without it has happened. */
function createTime() {
  let now = 0;
  const timers = new Set<{ readonly at: number; readonly end: () => void }>();
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        timers.delete(timer);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = { at: now + ms, end };
      if (signal?.aborted) return resolve();
      timers.add(timer);
      signal?.addEventListener("abort", end, { once: true });
    });
  async function run(work: Promise<void>): Promise<void> {
    let isOver = false;
    const end = work.finally(() => (isOver = true));
    while (!isOver) {
      await setImmediate();
      const next = [...timers].reduce<{ at: number; end?: () => void }>((a, b) => (b.at < a.at ? b : a), {
        at: Infinity,
      });
      if (isOver) break;
      if (!next.end) throw new Error("nothing more can happen");
      now = next.at;
      next.end();
    }
    await end;
  }
  return { clock: { now: () => now, sleep }, run };
}

interface Played {
  /** How often each check was answered; the healthy one is the last. */
  readonly answers: readonly number[];
  /** The most that was in flight at once. */
  readonly inFlight: number;
  /** The longest round, in milliseconds. */
  readonly longest: number;
  /** The longest row of successes of the healthy check. */
  readonly successes: number;
}

/** Each round is one of a new process: it knows only the results that are stored. */
async function playRounds(others: number, periodSeconds: number, kind: "dead" | "slow" = "dead"): Promise<Played> {
  const { clock, run } = createTime();
  const spec = { initialDelaySeconds: 0, periodSeconds, successWhen: "NoData" } as const;
  const urls = [...Array.from({ length: others }, (_, i) => `${kind}-${i}`), "healthy"];
  const checks = urls.map((url) => ({ url, streak: NO_STREAK, answers: 0 }));
  const seen = { inFlight: 0, longest: 0, successes: 0 };
  let inFlight = 0;
  const prometheus: PrometheusClient = {
    async query({ url }, signal) {
      seen.inFlight = Math.max(seen.inFlight, ++inFlight);
      if (url !== "healthy") await clock.sleep(kind === "dead" ? TIMEOUT_MS : SLOW_MS, signal);
      inFlight--;
      return url === "healthy" || (kind === "slow" && !signal?.aborted)
        ? { kind: "Vector", samples: 0, warnings: [] }
        : { kind: "Error", code: "Unreachable", message: "no answer" };
    },
  };

  async function playRound(): Promise<void> {
    const begin = clock.now();
    using round = createChecker({ cluster: {} as Cluster, prometheus, clock }).begin(new AbortController().signal);
    await Promise.all(
      checks.map(async (check) => {
        const at = dueAt(spec, 0, check.streak);
        if (at > begin) return;
        const query = { url: check.url, expr: "up == 0" };
        const namespace = kind === "slow" && check.url !== "healthy" ? "tenant" : "ns";
        const answer = await round.ask({ namespace, query, dueAt: at, isTroubled: check.streak.errors > 0 });
        if (!answer) return;
        check.answers++;
        check.streak = nextResult(spec, check.streak, { answer }).streak;
        seen.successes = Math.max(seen.successes, check.streak.successes);
      }),
    );
    seen.longest = Math.max(seen.longest, clock.now() - begin);
  }

  await run(
    (async () => {
      while (clock.now() < END_MS) {
        await playRound();
        await clock.sleep(PAUSE_MS);
      }
    })(),
  );
  return { ...seen, answers: checks.map(({ answers }) => answers) };
}

describe("dead endpoints", () => {
  for (const [dead, period, leastHealthy, leastDead] of [
    [400, 60, 50, 7],
    [32, 5, 300, 100],
  ] as const)
    it(`${dead} with a period of ${period} s leave its time to a healthy one, and each of them is asked; no round exceeds its bounds`, async () => {
      const { answers, inFlight, longest, successes } = await playRounds(dead, period);
      const healthy = answers.at(-1) ?? 0;
      const fewest = Math.min(...answers);
      assert.ok(healthy >= leastHealthy * HOURS, `the healthy one was answered ${healthy} times`);
      assert.ok(fewest >= Math.floor(leastDead * HOURS), `one was asked only ${fewest} times`);
      assert.ok(successes >= healthy / 2, `${successes} successes in a row of ${healthy}`);
      assert.ok(inFlight <= 16, `${inFlight} in flight`);
      assert.ok(longest <= 10_000, `a round of ${longest} ms`);
    });
});

it("400 slow checks of one namespace leave its turn to the healthy one of another, each minute", async () => {
  const { answers, inFlight, longest, successes } = await playRounds(400, 60, "slow");
  const healthy = answers.at(-1) ?? 0;
  assert.ok(healthy >= 50 * HOURS, `the healthy one was answered ${healthy} times`);
  assert.equal(successes, healthy, "in a row");
  assert.ok(Math.min(...answers) >= Math.floor(7 * HOURS), `one was asked only ${Math.min(...answers)} times`);
  assert.ok(inFlight <= 16 && longest <= 10_000, `${inFlight} in flight, a round of ${longest} ms`);
});
