/**
 * Records the StatefulSets and pods of a namespace, and judges by their versions which zones lost pods by a downscale
 * at the same time.
 */
import type { TestContext } from "node:test";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { Admin } from "../stage/client.ts";
import { follow, type Followed } from "../stage/follow.ts";
import { recordTimeline, type Timeline } from "../stage/timeline.ts";

interface Change {
  readonly version: bigint;
  /** A StatefulSet, or a pod of it. */
  readonly zone: string;
  readonly replicas?: number;
  readonly pod?: { readonly ordinal: number; readonly isGone: boolean };
}

export interface Downscales {
  /** The zones that were scaled down, in order. */
  readonly order: () => readonly string[];
  /** Each moment at which two zones or more had pods beyond their replicas. */
  readonly overlaps: () => readonly string[];
}

/** Records a namespace until the test ends. */
export async function recordForTest(
  t: TestContext,
  { admin, namespace }: { readonly admin: Admin; readonly namespace: string },
): Promise<{ readonly timeline: Timeline; readonly downscales: Downscales }> {
  const over = new AbortController();
  const timeline = await recordTimeline(admin, namespace);
  t.after(() => {
    timeline.stop();
    over.abort();
  });
  return { timeline, downscales: await recordDownscales(admin, namespace, over.signal) };
}

/** Follows the namespace until `signal` fires; resolves once it has listed all objects. */
async function recordDownscales(admin: Admin, namespace: string, signal: AbortSignal): Promise<Downscales> {
  const changes: Change[] = [];
  const versionOf = ({ metadata }: Followed): bigint => BigInt(metadata?.resourceVersion ?? 0);
  await follow(admin, `/apis/apps/v1/namespaces/${namespace}/statefulsets`, signal, (_, object) => {
    changes.push({
      version: versionOf(object),
      zone: object.metadata?.name ?? "",
      replicas: (object as StatefulSet).spec?.replicas ?? 1,
    });
  });
  await follow(admin, `/api/v1/namespaces/${namespace}/pods`, signal, (type, object) => {
    const { zone = "", ordinal = "" } = /^(?<zone>.*)-(?<ordinal>\d+)$/.exec(object.metadata?.name ?? "")?.groups ?? {};
    changes.push({ version: versionOf(object), zone, pod: { ordinal: Number(ordinal), isGone: type === "DELETED" } });
  });

  function replay() {
    const order: string[] = [];
    const overlaps: string[] = [];
    const replicas = new Map<string, number>();
    const pods = new Map<string, Set<number>>();
    for (const { version, zone, replicas: wanted, pod } of changes.toSorted((a, b) => Number(a.version - b.version))) {
      if (wanted !== undefined) {
        if (wanted < (replicas.get(zone) ?? 0)) order.push(zone);
        replicas.set(zone, wanted);
      }
      const own = pods.get(zone) ?? new Set();
      pods.set(zone, own);
      if (pod?.isGone) own.delete(pod.ordinal);
      else if (pod) own.add(pod.ordinal);
      const shrinking = [...pods].filter(([name, ordinals]) =>
        [...ordinals].some((ordinal) => ordinal >= (replicas.get(name) ?? Infinity)),
      );
      if (shrinking.length > 1) overlaps.push(`${version}: ${shrinking.map(([name]) => name).join(", ")}`);
    }
    return { order, overlaps };
  }
  return { order: () => replay().order, overlaps: () => replay().overlaps };
}
