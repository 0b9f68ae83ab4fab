#!/usr/bin/env node
/**
 * The demonstration: an embedded cluster, the reconciler and the functions, a rollout, a scaling, a gate, a drain and a
 * refused downscale.
 *
 *   start cluster -> apply the sample -> all ready -> change the image -> rollout -> scale the leader
 *     -> the zones follow -> errors rise as the first zone rolls: a gate holds the second one until they are gone
 *     -> drain a node under a budget -> scale a zone down that must not be -> run until Ctrl-C, or exit (--once)
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { systemClock } from "../../infra/clock.ts";
import type { LogFields } from "../../infra/log.ts";
import { startEmulator } from "../emulator/index.ts";
import { startPrometheus } from "../prometheus/scripted.ts";
import { runByCronJob } from "./cron-job.ts";
import { define } from "./definitions.ts";
import { startFunctions } from "./functions.ts";
import { createGate } from "./gate.ts";
import { drainNode, scaleDownLabelled } from "./guards.ts";
import { showLive, type Live } from "./live.ts";
import { NEXT_COMMANDS } from "./next-commands.ts";
import { playNodeUpdates } from "./nodes/play.ts";
import { composeReconciler, type DemoReconciler } from "./reconcile.ts";
import { applySample, SAMPLE, setImage, setReplicas } from "./sample.ts";
import { formatSeconds } from "./picture.ts";
import { createScreen } from "./screen.ts";
import { startStatusPage } from "./status-page.ts";

const NAMESPACE = "default";
const GROUP = "ingester";
const NEW_IMAGE = "nginx:1.29";
const NEXT_IMAGE = "nginx:1.30";
/** Answers with errors that the gate gets before there are none. */
const ERRORS = 2;
const LEADER = "ingester-zone-a";
const ZONES = [LEADER, "ingester-zone-b", "ingester-zone-c"];
const MORE_REPLICAS = 5;
const TIMEOUT_MS = 60_000;
/** Reasons to wait for pods: the rows of the pods have said it. */
const SAID_BY_PODS: ReadonlySet<unknown> = new Set(["MaxUnavailableReached", "ZoneNotReady", "StatusNotObserved"]);
const DEFINITIONS = ["rolloutgates", "rolloutgroups", "zoneawarepoddisruptionbudgets"];

const once = process.argv.includes("--once");
const screen = createScreen((text) => process.stdout.write(text));
const stop = new AbortController();
// Under `npm start` a Ctrl-C arrives twice: from the terminal, and forwarded by npm.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop.abort());
// The reader of our output has closed the pipe.
process.stdout.on("error", () => stop.abort());

/** The second part; true if all zones have followed the leader. */
async function scaleUp(live: Live, { cluster }: DemoReconciler): Promise<boolean> {
  screen.print(
    `Scaling ${LEADER} from 3 to ${MORE_REPLICAS} replicas: the other zones follow, each once the previous one is ready.`,
  );
  const startedAt = systemClock.monotonic();
  await setReplicas(cluster, { namespace: NAMESPACE, name: LEADER }, MORE_REPLICAS);
  if (!(await live.untilSettled(TIMEOUT_MS))) return false;
  screen.print(`Scaled 3 zones to ${MORE_REPLICAS} replicas in ${formatSeconds(systemClock.monotonic() - startedAt)}`);
  return true;
}

/** The third part; true if the rollout has waited for its gate and is complete. */
async function waitForGate(live: Live, { cluster }: DemoReconciler): Promise<boolean> {
  await using prometheus = await startPrometheus();
  prometheus.answer = () => (prometheus.seen.length <= ERRORS ? 1 : 0);
  await using _gate = await createGate(cluster, { namespace: NAMESPACE, group: GROUP, url: prometheus.url });
  screen.print(
    `Changing the image to ${NEXT_IMAGE} under a gate: errors rise, and zone b waits until Prometheus reports none.`,
  );
  for (const name of ZONES) await setImage(cluster, { namespace: NAMESPACE, name }, { name: GROUP, image: NEXT_IMAGE });
  if (!(await live.untilSettled(TIMEOUT_MS))) return false;
  screen.print(`The gate asked Prometheus ${prometheus.seen.length} times; ${ERRORS} answers reported errors.`);
  return true;
}

/** The first part; true if the sample's rollout is complete. */
async function rollOut(live: Live, { cluster }: DemoReconciler): Promise<boolean> {
  screen.print(`Applying ${relative(process.cwd(), SAMPLE)}: three zones of three pods, and their disruption budget.`);
  const zones = await applySample(cluster, NAMESPACE);
  if (!(await live.untilSettled(TIMEOUT_MS))) return false;
  screen.print(`All pods are ready. Changing the image to ${NEW_IMAGE}: the rollout begins.`);
  for (const name of zones) await setImage(cluster, { namespace: NAMESPACE, name }, { name: GROUP, image: NEW_IMAGE });
  return live.untilSettled(TIMEOUT_MS);
}

async function runUntilInterrupted(kubeconfig: string, pageUrl: string): Promise<void> {
  screen.print(
    "",
    `The cluster and the reconciler keep running. The status page: ${pageUrl}. In another terminal:`,
    "",
    `    export KUBECONFIG=${kubeconfig}`,
    ...NEXT_COMMANDS.map((line) => `    ${line}`),
    "",
    "Press Ctrl-C to stop.",
  );
  await new Promise((resolve) => stop.signal.addEventListener("abort", resolve, { once: true }));
}

async function main(): Promise<number> {
  screen.print("Zonewise: starting an embedded cluster.");
  const folder = await mkdtemp(join(tmpdir(), "zonewise-"));
  const kubeconfig = join(folder, "kubeconfig");
  const emulator = await startEmulator();
  const finish = new AbortController();
  const ended = AbortSignal.any([stop.signal, finish.signal]);
  try {
    await emulator.writeKubeconfig(kubeconfig);
    await define(emulator.store, DEFINITIONS);
    const live = showLive({
      store: emulator.store,
      clock: systemClock,
      screen,
      namespace: NAMESPACE,
      group: GROUP,
      stop: ended,
    });
    const onLog = (level: string, message: string, { group, reason, state }: LogFields): void => {
      const ofGroup = group === GROUP;
      if (!ofGroup && (group !== undefined || (level !== "warn" && level !== "error"))) return;
      if (SAID_BY_PODS.has(reason)) return;
      live.report(typeof reason === "string" ? `${message} (${reason})` : message, ofGroup && state === "settled");
    };
    const reconciler = await composeReconciler({
      kubeconfig,
      namespace: NAMESPACE,
      clock: systemClock,
      onLog,
      env: { LOG_LEVEL: "warn" },
    });
    const cronJob = { store: emulator.store, clock: systemClock, namespace: NAMESPACE, stop: ended };
    const reconciling = runByCronJob(reconciler.runOnce, cronJob);
    const page = await startStatusPage(kubeconfig, NAMESPACE, ended);
    screen.print(`The status page: ${page.url}`);
    const functions = await startFunctions({ emulator, clock: systemClock, folder, namespace: NAMESPACE, stop: ended });
    const guards = {
      emulator,
      cluster: reconciler.cluster,
      clock: systemClock,
      screen,
      namespace: NAMESPACE,
      stop: ended,
    };
    const completed =
      (await rollOut(live, reconciler)) &&
      (await scaleUp(live, reconciler)) &&
      (await waitForGate(live, reconciler)) &&
      (await drainNode(guards)) &&
      (await scaleDownLabelled(guards, LEADER, 3));
    if (!completed && !stop.signal.aborted) screen.print(`The group did not settle within ${TIMEOUT_MS / 1000} s.`);
    if (!once && !stop.signal.aborted) await runUntilInterrupted(kubeconfig, page.url);
    finish.abort();
    await Promise.all([reconciling, page.serving, functions.serving]);
    return once && !completed ? 1 : 0;
  } finally {
    finish.abort();
    await emulator.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

process.exitCode = process.argv.includes("nodes")
  ? await playNodeUpdates({ screen, stop: stop.signal, once })
  : await main();
