/**
 * A storm of evictions during a rollout, with conflicts and kills. The invariants are checked over the whole timeline,
 * under a budget of 1 for the group, or for each partition. A storm lasts until it has provoked all that it is meant
 * to, and at least STORM_SECONDS=20. STORM_SECONDS=40 lengthens each storm, STORM_RUNS=10 repeats them, SEED=n repeats
 * the random numbers.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createBudget, type Registration, serveWebhooks } from "../stage/eviction-stage.ts";
import { assertNoViolations, byPartition, deletions, type Entry, returns } from "../stage/invariants.ts";
import { SEED } from "../stage/random.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { runClients } from "./storm-clients.ts";
import { injectFaults } from "./storm-faults.ts";
import { type Counted, createTally } from "./storm-tally.ts";

const SECONDS = Number(process.env["STORM_SECONDS"] ?? 20);
/** Until a storm on a machine that hardly moves is given up. */
const MAX_SECONDS = 10 * SECONDS;
const RUNS = Number(process.env["STORM_RUNS"] ?? 1);

interface Case {
  readonly name: string;
  readonly registration: Registration;
  readonly spec: object;
  /** Divides the timeline as the budget divides its pods. */
  readonly divide: (entries: readonly Entry[]) => readonly Entry[];
}

const WHOLE = { spec: { maxUnavailable: 1 }, divide: (entries: readonly Entry[]) => entries };
const PARTITIONED = { spec: { maxUnavailable: 1, podNamePartitionRegex: "zone-[a-z]-([0-9]+)" }, divide: byPartition };

const CASES: readonly Case[] = [
  { name: "one zone at a time", registration: "ours", ...WHOLE },
  { name: "one zone a partition at a time", registration: "ours", ...PARTITIONED },
  { name: "one zone at a time, registered as the original is", registration: "original's", ...WHOLE },
  { name: "one zone a partition at a time, registered both ways", registration: "both", ...PARTITIONED },
];

for (const { name, ...storm } of CASES) {
  for (let run = 1; run <= RUNS; run++)
    scenario(RUNS === 1 ? `storm: ${name}` : `storm ${run}: ${name}`, (stage) => runStorm(stage, storm));
}

async function runStorm(stage: Stage, { registration, spec, divide }: Omit<Case, "name">): Promise<void> {
  stage.diagnostic(`SEED=${SEED}`);
  const group = `cache-${stage.namespace}`;
  // Few pods, so that their names recur often. Each zone has another ready time.
  const zones = [200, 350, 500].map((ms, i) => {
    const name = `zone-${"abc"[i]}`;
    return { group, name, replicas: 2, sim: { "sim/ready-after-ms": String(ms), "sim/exit-after-ms": "30" } };
  });
  await stage.create(zones);
  const webhooks = await serveWebhooks(stage, 3, { registration });
  const tally = createTally();
  // The original's validating webhook cannot pin the UID: a second eviction gets 429 instead.
  const exempt: readonly Counted[] = registration === "original's" ? ["refusedByPin"] : [];
  try {
    await createBudget(stage, group, spec);
    const over = new AbortController();
    const { signal } = over;
    const end = endStorm(() => {
      tally.set("replaced", returns(stage.timeline.entries).length);
      return tally.missed(exempt).length === 0;
    }).finally(() => over.abort());
    await Promise.all([
      end,
      runClients(stage, webhooks.reviews, { tally, signal }),
      injectFaults(stage, { zones, webhooks }, { tally, signal }),
    ]);
  } finally {
    await webhooks.close();
  }
  await stage.timeline.caughtUp();
  const { entries } = stage.timeline;
  stage.diagnostic(`${deletions(entries).length} pods deleted; ${tally.describe()}`);
  assertNoViolations(divide(entries));
  assert.deepEqual(tally.missed(exempt), [], "the storm did not provoke what it is meant to provoke");
}

/** Resolves once the storm has lasted long enough. */
async function endStorm(isComplete: () => boolean): Promise<void> {
  await sleep(SECONDS * 1000);
  for (let seconds = SECONDS; seconds < MAX_SECONDS && !isComplete(); seconds++) await sleep(1000);
}
