/**
 * Plays the controllers of CronJobs and Jobs for the reconciler, as far as people use them: a suspended CronJob starts
 * no run, and a Job that is deleted ends its own. A run lasts for as long as the demonstration; once the CronJob is
 * suspended, it ends as one of the CronJob's would that has begun then.
 *
 *   suspended? -> wait   otherwise -> create a Job -> run until it ends by itself, its Job is deleted, or the CronJob was
 *                                                     suspended for the time of a run -> remove the Job
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import type { Clock } from "../../infra/clock.ts";
import { dig, type Draft, fieldsOf, timestamp } from "../emulator/objects.ts";
import type { Store } from "../emulator/store.ts";

interface CronJobOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly namespace: string;
  readonly stop: AbortSignal;
}

const MANIFEST = join(import.meta.dirname, "../../infra/manifests/reconciler/cronjob.yaml");
const CRON_JOBS = "cronjobs.batch";
const JOBS = "jobs.batch";
const NAME = "zonewise-reconciler";
/** Milliseconds of a run. */
const RUN_MS = 55_000;
/** Milliseconds between two runs; on a real cluster the next one begins with the minute. */
const PAUSE_MS = 1000;

/** Creates the CronJob, and runs until `stop` fires. `run` must not reject. */
export async function runByCronJob(
  run: (stop: AbortSignal) => Promise<void>,
  { store, clock, namespace, stop }: CronJobOptions,
): Promise<void> {
  const manifest = parse(await readFile(MANIFEST, "utf8")) as Draft;
  store.create(CRON_JOBS, { ...manifest, metadata: { ...manifest.metadata, namespace } });
  for (let number = 1; !stop.aborted; number++) {
    await untilDue();
    if (stop.aborted) return;
    await runJob(`${NAME}-${number}`);
    await clock.sleep(PAUSE_MS, stop);
  }

  /** Resolves once the CronJob is there and not suspended. */
  async function untilDue(): Promise<void> {
    const due = new AbortController();
    const look = (): void => {
      const cronJob = store.get(CRON_JOBS, namespace, NAME);
      if (cronJob && dig(cronJob, "spec", "suspend") !== true) due.abort();
    };
    const unsubscribe = store.subscribe(({ resource }) => (resource === CRON_JOBS ? look() : undefined));
    look();
    const ended = AbortSignal.any([due.signal, stop]);
    if (!ended.aborted) await new Promise((resolve) => ended.addEventListener("abort", resolve, { once: true }));
    unsubscribe();
  }

  async function runJob(name: string): Promise<void> {
    const cronJob = store.get(CRON_JOBS, namespace, NAME);
    if (!cronJob) return;
    const time = timestamp(clock.now());
    const { metadata, spec } = fieldsOf(dig(cronJob, "spec", "jobTemplate"));
    const owner = { apiVersion: "batch/v1", kind: "CronJob", name: NAME, uid: cronJob.metadata.uid, controller: true };
    store.create(JOBS, {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { ...fieldsOf(metadata), name, namespace, ownerReferences: [owner] },
      spec,
      status: { active: 1, startTime: time },
    });
    const active = { apiVersion: "batch/v1", kind: "Job", namespace, name };
    noteRuns([active], time);
    const end = new AbortController();
    let suspendedAt: string | undefined;
    const unsubscribe = store.subscribe(({ type, resource, object }) => {
      if (type === "DELETED" && resource === JOBS && object.metadata.name === name) setImmediate(() => end.abort());
      if (resource !== CRON_JOBS || dig(object, "spec", "suspend") !== true || suspendedAt !== undefined) return;
      suspendedAt = timestamp(clock.now());
      setImmediate(() => noteRuns([active], suspendedAt ?? time));
      void clock.sleep(RUN_MS, AbortSignal.any([stop, end.signal])).then(() => end.abort());
    });
    await run(AbortSignal.any([stop, end.signal]));
    unsubscribe();
    end.abort();
    if (store.get(JOBS, namespace, name)) store.remove(JOBS, namespace, name, { gracePeriodSeconds: 0 });
    noteRuns([], suspendedAt ?? time);
  }

  function noteRuns(active: readonly object[], lastScheduleTime: string): void {
    const cronJob = store.get(CRON_JOBS, namespace, NAME);
    if (cronJob) store.update(CRON_JOBS, { ...cronJob, status: { active, lastScheduleTime } });
  }
}
