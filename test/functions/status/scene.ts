/**
 * A run to look at: the embedded cluster with three groups under a budget each, the reconciler, and the status page
 * beside them.
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, chromium } from "playwright-core";
import { parseAllDocuments } from "yaml";
import { systemClock } from "../../../infra/clock.ts";
import { disruptionBudgets } from "../../../infra/kubernetes/custom-resources.ts";
import { pods, type Resource, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { define } from "../../demo/definitions.ts";
import { composeReconciler } from "../../demo/reconcile.ts";
import { SAMPLE, setImage } from "../../demo/sample.ts";
import { startStatusPage } from "../../demo/status-page.ts";
import { type Emulator, startEmulator } from "../../emulator/index.ts";

export interface Scene extends AsyncDisposable {
  readonly emulator: Emulator;
  /** Of the page. */
  readonly url: string;
  /** Changes the image of a group's zones, of all without `zones`: its rollout begins. */
  readonly rollOut: (group: string, zones?: readonly string[]) => Promise<void>;
  /** Lets a pod crash until it is replaced. */
  readonly crash: (pod: string) => Promise<void>;
}

const NAMESPACE = "default";
const GROUPS = ["ingester", "store", "compactor"];
/** What the sample has besides StatefulSets. */
const KINDS: Readonly<Record<string, Resource>> = {
  Service: { group: "", version: "v1", plural: "services" },
  ZoneAwarePodDisruptionBudget: disruptionBudgets,
};

/** `readyMs`: milliseconds that a pod takes to become ready. */
export async function setScene(readyMs = 1500): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), "status-page-"));
  const kubeconfig = join(folder, "kubeconfig");
  const emulator = await startEmulator();
  const stop = new AbortController();
  await emulator.writeKubeconfig(kubeconfig);
  await define(emulator.store, ["rolloutgroups", "zoneawarepoddisruptionbudgets"]);
  const reconciler = await composeReconciler({ kubeconfig, namespace: NAMESPACE, clock: systemClock, onLog: () => {} });
  const reconciling = reconciler.runUntil(stop.signal);
  const { url, serving } = await startStatusPage(kubeconfig, NAMESPACE, stop.signal);

  for (const group of GROUPS) await applyGroup(group);
  await untilReady(emulator);
  const { cluster } = reconciler;
  return {
    emulator,
    url,
    async rollOut(group, zones = ["a", "b", "c"]) {
      for (const zone of zones)
        await setImage(
          cluster,
          { namespace: NAMESPACE, name: `${group}-zone-${zone}` },
          { name: group, image: "nginx:1.29" },
        );
    },
    async crash(name) {
      const body = { metadata: { annotations: { "sim/crash": "true" } } };
      await cluster.patch(pods, { namespace: NAMESPACE, name, type: "merge", body });
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([reconciling, serving]);
      await emulator.stop();
      await rm(folder, { recursive: true });
    },
  };

  async function applyGroup(group: string): Promise<void> {
    const text = (await readFile(SAMPLE, "utf8"))
      .replaceAll("ingester", group)
      .replaceAll('ready-after-ms: "600"', `ready-after-ms: "${readyMs}"`);
    for (const document of parseAllDocuments(text)) {
      const body = document.toJS() as { readonly kind: string };
      await reconciler.cluster.create(KINDS[body.kind] ?? statefulSets, { namespace: NAMESPACE, body });
    }
  }
}

/** Resolves once all groups are Ready by their RolloutGroups. */
async function untilReady({ store }: Emulator): Promise<void> {
  const isReady = (group: object): boolean =>
    (group as { readonly status?: { readonly phase?: string } }).status?.phase === "Ready";
  while (store.list("rolloutgroups.zonewise.dev", NAMESPACE).filter(isReady).length < GROUPS.length) await sleep(100);
}

/** Debian's Chromium, or one that CHROMIUM names. */
const PATH = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** False, or why tests in a browser are left out. */
export const WITHOUT_BROWSER = existsSync(PATH)
  ? false
  : `there is no browser: apt-get install chromium, or set CHROMIUM to the path of one`;

/** Root may not use the browser's sandbox; the pages are our own. */
export const openBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: PATH, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
