/**
 * A storm of evictions during a rollout, with conflicts and kills. The invariants are checked over the whole timeline,
 * under a budget of 1 for the group, or for each partition. A storm lasts until it has provoked all that it is meant
 * to, and at least STORM_SECONDS=20. STORM_SECONDS=40 lengthens each storm, STORM_RUNS=10 repeats them, SEED=n repeats
 * the random numbers.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createBudget, type Registration, serveWebhooks, type Webhooks } from "../stage/eviction-stage.ts";
import { assertNoViolations, byPartition, deletions, type Entry, returns } from "../stage/invariants.ts";
import { createRandom, type Random, SEED } from "../stage/random.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import type { Review, Reviews } from "../stage/balancer.ts";
import { evict } from "../stage/evict.ts";
import type { ZoneOptions } from "../stage/zones.ts";

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
  await webhooks.close();
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

// What happens in a storm is counted. One that did not provoke what it is meant to provoke fails, as it proves nothing.

/** Everything that is counted; what is marked true must happen at least once. */
const COUNTED = {
  allowed: true,
  denied: true,
  dryRuns: true,
  /** Evictions with the pod's UID as a precondition. */
  ownUid: true,
  /** Evictions with the UID of an earlier pod as a precondition: none of them may take effect. */
  staleUid: true,
  /** The webhook was unreachable: 500. */
  unreachable: false,
  notFound: false,
  /**
   * The API server responded more than 450 ms after the webhook had allowed the eviction: it retries
   * conflicts every 500 ms.
   */
  retried: true,
  /** 409 for an eviction without a UID of its own. */
  refusedByPin: true,
  statusPatches: true,
  webhookKills: true,
  reconcilerKills: true,
  revisions: true,
  replaced: true,
} as const satisfies Readonly<Record<string, boolean>>;

type Counted = keyof typeof COUNTED;

interface Tally {
  readonly count: (name: Counted) => void;
  readonly countCode: (code: number) => void;
  readonly get: (name: Counted) => number;
  readonly set: (name: Counted, value: number) => void;
  /** All counts, and the number of responses per code. */
  readonly describe: () => string;
  /** What must happen and has not happened yet, except for what is `exempt`. */
  readonly missed: (exempt: readonly Counted[]) => readonly Counted[];
}

function createTally(): Tally {
  const counts = new Map<Counted, number>();
  const codes = new Map<number, number>();
  const names = Object.keys(COUNTED) as Counted[];
  return {
    count: (name) => void counts.set(name, (counts.get(name) ?? 0) + 1),
    countCode: (code) => void codes.set(code, (codes.get(code) ?? 0) + 1),
    get: (name) => counts.get(name) ?? 0,
    set: (name, value) => void counts.set(name, value),
    describe: () =>
      [
        ...names.map((name) => `${name} ${counts.get(name) ?? 0}`),
        ...[...codes].map(([code, times]) => `${code}: ${times}`),
      ].join(", "),
    missed: (exempt) =>
      names.filter((name) => COUNTED[name] && !exempt.includes(name) && (counts.get(name) ?? 0) === 0),
  };
}

interface Repetition {
  /** Aborting it ends the repetition. */
  readonly signal: AbortSignal;
  readonly random: Random;
  /** The upper bound of the random pause before each step. */
  readonly maxPauseMs: number;
}

/** Repeats `step`. Never rejects: errors are part of the storm. */
async function repeat({ signal, random, maxPauseMs }: Repetition, step: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, random.between(0, maxPauseMs)));
    if (!signal.aborted) await step().catch(() => {});
  }
}

// Clients that continuously evict pods of a few names, with the variants of requests that drainers send.

const CLIENTS = 24;
const PAUSE_MS = 60;
/** The probability of evicting a pod that is not ready: a lower rate gives pods time to become ready. */
const NOT_READY_SHARE = 0.4;
/** The API server retries 500 ms after a conflict, minus a tenth for jitter. */
const RETRY_MS = 450;

interface Variant {
  readonly share: number;
  readonly counted?: Counted;
  readonly query?: string;
  /** `uids` are those of all pods of this name, the current one last. */
  readonly deleteOptions?: (uids: readonly string[]) => object;
}

const PLAIN: Variant = { share: 1 };

const VARIANTS: readonly Variant[] = [
  { share: 0.06, counted: "dryRuns", query: "?dryRun=All" },
  { share: 0.04, counted: "dryRuns", deleteOptions: () => ({ dryRun: ["All"] }) },
  { share: 0.1, counted: "ownUid", deleteOptions: (uids) => ({ preconditions: { uid: uids.at(-1) } }) },
  { share: 0.05, counted: "staleUid", deleteOptions: (uids) => ({ preconditions: { uid: uids.at(-2) ?? "none" } }) },
  { share: 0.1, deleteOptions: () => ({ gracePeriodSeconds: 3 }) },
];

/** Resolves once the signal is aborted and the last responses have arrived. */
async function runClients(
  stage: Stage,
  reviews: Reviews,
  { tally, signal }: { readonly tally: Tally; readonly signal: AbortSignal },
): Promise<void> {
  const clients = Array.from({ length: CLIENTS }, (_, i) => {
    const random = createRandom(`client-${i}`);
    let evictions = 0;
    return repeat({ signal, random, maxPauseMs: PAUSE_MS }, async () => {
      const id = `${i}-${evictions++}`;
      const sent = await evictOne(stage, random, id);
      if (sent) countEviction(tally, sent, reviews.take(id));
    });
  });
  await Promise.all(clients);
}

interface SentEviction {
  readonly variant: Variant;
  /** The response code. */
  readonly code: number;
}

/** Evicts a random pod; undefined if it chose none. */
async function evictOne(stage: Stage, random: Random, id: string): Promise<SentEviction | undefined> {
  const { timeline } = stage;
  const pod = random.pick([...timeline.pods.values()]);
  if (!pod || (pod.state !== "ready" && random.next() > NOT_READY_SHARE)) return undefined;
  const variant = chooseVariant(random);
  const uids = [...new Set(timeline.entries.filter(({ pod: name }) => name === pod.pod).map(({ uid }) => uid))];
  const deleteOptions = variant.deleteOptions?.(uids);
  const { code } = await evict(stage, pod.pod, { ...variant, deleteOptions, annotations: { storm: id } });
  return { variant, code };
}

function countEviction(tally: Tally, { variant, code }: SentEviction, review: Review | undefined): void {
  tally.countCode(code);
  const namesUid = variant.counted === "ownUid" || variant.counted === "staleUid";
  if (review?.allowed && performance.now() - review.at > RETRY_MS) tally.count("retried");
  if (code === 409 && !namesUid) tally.count("refusedByPin");
  if (variant.counted) tally.count(variant.counted);
  const outcome = OUTCOMES[code];
  if (outcome) tally.count(outcome);
}

const OUTCOMES: Readonly<Record<number, Counted>> = {
  201: "allowed",
  404: "notFound",
  429: "denied",
  500: "unreachable",
};

function chooseVariant(random: Random): Variant {
  let chance = random.next();
  return VARIANTS.find(({ share }) => (chance -= share) < 0) ?? PLAIN;
}

// The faults: conflicts, new revisions, killed processes.

const PATCHERS = 4;
const PATCH_MS = 10;
const WEBHOOK_KILL_MS = 4000;
const RECONCILER_KILL_MS = 6000;
const REVISION_MS = 8000;

/** Resolves once the signal is aborted and the last reconciler is killed. */
async function injectFaults(
  stage: Stage,
  { zones, webhooks }: { readonly zones: readonly ZoneOptions[]; readonly webhooks: Webhooks },
  { tally, signal }: { readonly tally: Tally; readonly signal: AbortSignal },
): Promise<void> {
  await Promise.all([
    patchStatus(stage, tally, signal),
    killReconcilers(stage, tally, signal),
    repeat({ signal, random: createRandom("webhooks"), maxPauseMs: WEBHOOK_KILL_MS }, async () => {
      await webhooks.replaceOne();
      tally.count("webhookKills");
    }),
    repeat({ signal, random: createRandom("revisions"), maxPauseMs: REVISION_MS }, async () => {
      tally.count("revisions");
      await stage.setImage(`app:${tally.get("revisions") + 1}`, zones);
    }),
  ]);
}

/**
 * Continuously patches starting pods, and keeps them Pending until they are ready, as if they pulled an
 * image. The API server deletes a Pending pod with the version that it has just read, and retries after each
 * conflict. The phase is patched with the version that was seen, so that a pod that has become ready
 * meanwhile keeps its phase.
 */
async function patchStatus({ call, namespace, timeline }: Stage, tally: Tally, signal: AbortSignal): Promise<void> {
  let patches = 0;
  const patcher = (i: number): Promise<void> =>
    repeat({ signal, random: createRandom(`patches-${i}`), maxPauseMs: PATCH_MS }, async () => {
      const starting = [...timeline.pods.values()].filter(({ state }) => state === "notReady");
      const patched = starting.map(async ({ pod, uid, resourceVersion }) => {
        const message = `patch ${patches++}`;
        const patch =
          i === 0
            ? { metadata: { uid, resourceVersion }, status: { phase: "Pending" } }
            : { metadata: { uid }, status: { message } };
        await call("PATCH", `/api/v1/namespaces/${namespace}/pods/${pod}/status`, patch);
        tally.count("statusPatches");
      });
      await Promise.allSettled(patched);
    });
  await Promise.all(Array.from({ length: PATCHERS }, (_, i) => patcher(i)));
}

async function killReconcilers({ start }: Stage, tally: Tally, signal: AbortSignal): Promise<void> {
  const run = () =>
    start({
      RECONCILE_INTERVAL: "300ms",
      LEASE_DURATION: "1s",
      POD_NAME: `reconciler-${tally.get("reconcilerKills")}`,
    });
  let running = run();
  await repeat({ signal, random: createRandom("reconcilers"), maxPauseMs: RECONCILER_KILL_MS }, async () => {
    await running.kill();
    tally.count("reconcilerKills");
    running = run();
  });
  await running.kill();
}
