/**
 * `npm start -- nodes`: three simulated hosts get their operating system updated, one after the other.
 *
 *   start cluster -> apply the sample -> all ready -> node API, hosts and agents -> the reconciler updates node after node
 *     -> run until Ctrl-C, or exit (--once)
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../infra/clock.ts";
import { startEmulator } from "../../emulator/index.ts";
import { dig } from "../../emulator/objects.ts";
import { readZones } from "../progress.ts";
import { formatSeconds } from "../picture.ts";
import { composeReconciler } from "../reconcile.ts";
import { applySample } from "../sample.ts";
import type { Screen } from "../screen.ts";
import { createFleet, HOME, readNodes } from "./cluster.ts";
import { FROM, playNode, TO } from "./hosts.ts";
import { startNodeApi } from "./node-api.ts";
import { drawNode, isUpdated } from "./picture.ts";
import { isReady, isTerminating } from "../../../reconciler/model/health.ts";

export interface Play {
  readonly screen: Screen;
  /** Ends it. */
  readonly stop: AbortSignal;
  /** Ends once the nodes are updated. */
  readonly once: boolean;
}

type Store = Awaited<ReturnType<typeof startEmulator>>["store"];

const NAMESPACE = "default";
const TIMEOUT_MS = 120_000;
/** Pods that go or come within this time are one row. */
const TOGETHER_MS = 100;
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Resolves with the exit code. */
export async function playNodeUpdates({ screen, stop, once }: Play): Promise<number> {
  screen.print("Zonewise: starting an embedded cluster with three nodes, and three simulated Bottlerocket hosts.");
  const folder = await mkdtemp(join(tmpdir(), "zonewise-"));
  const kubeconfig = join(folder, "kubeconfig");
  const emulator = await startEmulator();
  const finish = new AbortController();
  const ended = AbortSignal.any([stop, finish.signal]);
  const { store } = emulator;
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  stack.defer(() => emulator.stop());
  await emulator.writeKubeconfig(kubeconfig);
  const names = await createFleet(store);
  const env = { NODE_UPDATES: "true", RECONCILE_INTERVAL: "500ms", LOG_LEVEL: "error" };
  const reconciler = await composeReconciler({
    kubeconfig,
    namespace: NAMESPACE,
    clock: systemClock,
    onLog: () => {},
    env,
  });
  const zones = await applySample(reconciler.cluster, NAMESPACE);
  await untilTrue(() => areReady(store, zones.length), ended);
  const api = await startNodeApi(folder);
  stack.defer(api.stop);
  const played = await Promise.all(
    names.map((name) => playNode(name, { store, cluster: reconciler.cluster, clock: systemClock, log: SILENT, api })),
  );
  for (const { stop } of played) stack.defer(stop);
  screen.print(`Nine pods run on them. Every host runs ${FROM} and is offered ${TO}: one node at a time.`);
  const reconciling = reconciler.runUntil(ended);
  stack.defer(async () => (finish.abort(), await reconciling));
  const shown = showNodes(store, names, { screen, stop: ended });
  const isDone = await untilTrue(
    () => readNodes(store, names).every((node) => isUpdated(node, TO)) && areReady(store, zones.length),
    ended,
  );
  if (isDone) {
    shown.draw();
    const reboots = played.reduce((sum, { host }) => sum + host.facts().reboots, 0);
    screen.print(
      `Updated ${names.length} nodes from ${FROM} to ${TO} in ${formatSeconds(shown.elapsed())}: ${reboots} reboots, at most ${shown.mostCordoned()} node cordoned at once.`,
    );
  } else if (!stop.aborted) screen.print(`The nodes were not updated within ${TIMEOUT_MS / 1000} s.`);
  if (!once && !stop.aborted) await runUntilInterrupted({ screen, stop, kubeconfig });
  return isDone || stop.aborted ? 0 : 1;
}

/** Resolves with false after `TIMEOUT_MS`, or if `stop` fires. */
async function untilTrue(isTrue: () => boolean, stop: AbortSignal): Promise<boolean> {
  const end = systemClock.monotonic() + TIMEOUT_MS;
  while (!stop.aborted && systemClock.monotonic() < end) {
    if (isTrue()) return true;
    await systemClock.sleep(50, stop);
  }
  return false;
}

function areReady(store: Store, count: number): boolean {
  const zones = readZones(store.list("statefulsets.apps", NAMESPACE), store.list("pods", NAMESPACE), "ingester");
  return (
    zones.length === count &&
    zones.every(({ replicas, pods }) => pods.filter((pod) => isReady(pod) && !isTerminating(pod)).length === replicas)
  );
}

interface Shown {
  readonly draw: () => void;
  /** Milliseconds since it was shown first. */
  readonly elapsed: () => number;
  readonly mostCordoned: () => number;
}

/** Writes what changes of the nodes until `stop` fires, and the last Event about one. */
function showNodes(store: Store, names: readonly string[], { screen, stop }: Pick<Play, "screen" | "stop">): Shown {
  const startedAt = systemClock.monotonic();
  const elapsed = (): number => systemClock.monotonic() - startedAt;
  let message = "";
  let mostCordoned = 0;
  let isDue = false;
  const draw = (): void => {
    isDue = false;
    screen.show(readNodes(store, names).map(drawNode), message, formatSeconds(elapsed()));
  };
  const unsubscribe = store.subscribe(({ resource, object }) => {
    if (resource === "events" && dig(object, "involvedObject", "kind") === "Node")
      message = `${String(dig(object, "involvedObject", "name"))}: ${String(dig(object, "message"))}`;
    if (resource === "nodes")
      mostCordoned = Math.max(mostCordoned, readNodes(store, names).filter(({ cordoned }) => cordoned).length);
    if (!isDue) setTimeout(draw, TOGETHER_MS);
    isDue = true;
  });
  stop.addEventListener("abort", unsubscribe, { once: true });
  return { draw, elapsed, mostCordoned: () => mostCordoned };
}

async function runUntilInterrupted({
  screen,
  stop,
  kubeconfig,
}: Pick<Play, "screen" | "stop"> & { readonly kubeconfig: string }): Promise<void> {
  screen.print(
    "",
    "The cluster, the hosts and the reconciler keep running. In another terminal:",
    "",
    `    export KUBECONFIG=${kubeconfig}`,
    `    kubectl get brs -n ${HOME}             # the nodes, with their versions and states`,
    "    npx --no -- zonewise status             # the policy: how many nodes are done",
    "    npx --no -- zonewise explain node-1     # is it updated, why not yet, may it be drained",
    "",
    "Press Ctrl-C to stop.",
  );
  await new Promise((resolve) => stop.addEventListener("abort", resolve, { once: true }));
}
