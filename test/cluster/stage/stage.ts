/**
 * The environment of a scenario: a namespace of its own, its zones, the timeline of its pods, and the
 * reconcilers under test.
 */
import { test } from "node:test";
import type { Event } from "../../../infra/kubernetes/resources.ts";
import { applyRbac, writeKubeconfig } from "./access.ts";
import type { Admin } from "./client.ts";
import { openPlace, type Place } from "./place.ts";
import { type TestProcess, startReconciler } from "./process.ts";
import { describe, recordTimeline, type Timeline, type Written } from "./timeline.ts";
import { buildTemplate, buildZone, isDone, type Sim, type ZoneOptions } from "./zones.ts";

export interface Stage extends Place {
  /** Prints a diagnostic of the test. */
  readonly diagnostic: (text: string) => void;
  readonly timeline: Timeline;
  /** Creates the zones and resolves once all their pods are ready. */
  readonly create: (zones: readonly ZoneOptions[]) => Promise<void>;
  /** Changes the zones' template, which begins a rollout. */
  readonly setImage: (image: string, zones: readonly ZoneOptions[], sim?: Sim) => Promise<void>;
  /** Resolves once all pods of `zones` have the image and are ready, and the status says so. */
  readonly done: (image: string, zones: readonly ZoneOptions[], timeoutMs?: number) => Promise<void>;
  readonly deletePod: (name: string) => Promise<void>;
  readonly annotatePod: (name: string, annotations: Readonly<Record<string, string | null>>) => Promise<void>;
  /** Merges `patch` into the StatefulSet. Like all writes here, it resolves once the timeline has it. */
  readonly patchZone: (name: string, patch: object) => Promise<void>;
  readonly events: (reason: string) => Promise<readonly Event[]>;
  /** Starts a reconciler under the ServiceAccount; it is killed at the end if it still runs. */
  readonly start: (env?: Readonly<Record<string, string>>) => TestProcess;
  /** All processes of the test, whose output is printed if it fails. */
  readonly processes: TestProcess[];
}

/** A stage for its owner, who has to close it. */
export interface OpenStage extends Stage {
  readonly reconcilers: readonly TestProcess[];
  /** Kills the remaining processes and deletes the namespace. */
  readonly close: () => Promise<void>;
}

/** Registers a test. If it fails, it prints the timeline and the output of its processes. */
export function scenario(name: string, run: (stage: Stage & Pick<OpenStage, "reconcilers">) => Promise<void>): void {
  test(name, async (t) => {
    const stage = await openStage((text) => t.diagnostic(text));
    try {
      await run(stage);
    } catch (error) {
      t.diagnostic(describe(stage.timeline.entries));
      for (const process of stage.processes) t.diagnostic(process.output());
      throw error;
    } finally {
      await stage.close();
    }
  });
}

/** Opens a stage on the cluster of KUBECONFIG. */
export async function openStage(diagnostic: Stage["diagnostic"] = () => {}): Promise<OpenStage> {
  const place = await openPlace();
  const { admin, namespace } = place;
  const [reconcilers, processes]: [TestProcess[], TestProcess[]] = [[], []];
  await applyRbac(admin, namespace);
  const kubeconfig = await writeKubeconfig(place);
  const timeline = await recordTimeline(admin, namespace);
  place.defer(timeline.stop);
  place.defer(() => Promise.all(reconcilers.map((reconciler) => reconciler.kill())));
  return {
    ...place,
    ...buildActions(admin, namespace, timeline),
    diagnostic,
    timeline,
    reconcilers,
    processes,
    start(env = {}) {
      const own = { KUBERNETES_NAMESPACE: namespace, KUBECONFIG: kubeconfig, RECONCILE_TIME_BUDGET: "10m" };
      const reconciler = startReconciler({ PATH: process.env["PATH"] ?? "", ...own, ...env });
      reconcilers.push(reconciler);
      processes.push(reconciler);
      return reconciler;
    },
  };
}

/** What tests do to the zones of a namespace. */
export type Actions = Omit<
  Stage,
  Exclude<keyof Place, "namespace" | "call"> | "timeline" | "start" | "diagnostic" | "processes"
>;

export function buildActions(admin: Admin, namespace: string, timeline: Timeline): Actions {
  const core = `/api/v1/namespaces/${namespace}`;
  const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;

  const patchZone: Stage["patchZone"] = async (name, patch) =>
    await timeline.seen("statefulSet", await admin.call<Written>("PATCH", `${sets}/${name}`, patch));
  const done: Stage["done"] = async (image, zones, timeoutMs) => {
    const areDone = (): boolean => zones.every(({ name }) => isDone(timeline.statefulSets.get(name), image));
    await timeline.until(`every zone done with ${image}`, areDone, timeoutMs);
    // Pods have a watch of their own, which may be later.
    await timeline.caughtUp();
  };
  return {
    namespace,
    call: admin.call,
    done,
    patchZone,
    async create(zones) {
      const created = await Promise.all(zones.map((zone) => admin.call<Written>("POST", sets, buildZone(zone))));
      await Promise.all(created.map((zone) => timeline.seen("statefulSet", zone)));
      await done("app:1", zones);
    },
    async setImage(image, zones, sim = {}) {
      const templates = zones.map(
        (zone) => [zone.name, buildTemplate({ ...zone, image, sim: { ...zone.sim, ...sim } })] as const,
      );
      await Promise.all(templates.map(([name, template]) => patchZone(name, { spec: { template } })));
    },
    async deletePod(name) {
      await timeline.seen("pod", await admin.call<Written>("DELETE", `${core}/pods/${name}`));
    },
    async annotatePod(name, annotations) {
      await timeline.seen(
        "pod",
        await admin.call<Written>("PATCH", `${core}/pods/${name}`, { metadata: { annotations } }),
      );
    },
    async events(reason) {
      const query = `fieldSelector=${encodeURIComponent(`reason=${reason}`)}`;
      return (await admin.call<{ items: Event[] }>("GET", `${core}/events?${query}`)).items;
    },
  };
}
