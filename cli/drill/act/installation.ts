/** The installation that a drill tries: its image, its eviction webhook, its pods. */
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { messageOf } from "../../../infra/errors.ts";
import { collect } from "../../../infra/kubernetes/collect.ts";
import { type CronJob, cronJobs, namespaces, pods, type PodObject } from "../../../infra/kubernetes/resources.ts";
import { readHooks, type GuardReading } from "../../../reconciler/budget/act/read-guard.ts";
import { judgeGuard, maySelect, selects, type EvictionHook, type Guard } from "../../../reconciler/budget/guard.ts";
import { CRON_JOB, HOME } from "../../gather/settings.ts";
import { INSTALLED_PODS, KILLS, marks } from "../plan.ts";
import type { Drill } from "./context.ts";
import type { Place } from "./place.ts";

export interface Installation {
  readonly reading: GuardReading;
  /** The namespaces in which its image may be found, the likeliest first. */
  readonly homes: readonly string[];
}

/** Never rejects: objects that may not be read count as unknown. */
export async function findInstallation(cluster: Cluster, namespace: string): Promise<Installation> {
  const reading = await readHooks({ cluster });
  const asked = (reading.hooks ?? []).filter((hook) => maySelect(hook, namespace));
  return { reading, homes: [...new Set([...homesOf(asked), namespace, HOME])] };
}

/** The image of the reconciler; undefined if there is none, or if it may not be read. */
export async function findImage(cluster: Cluster, { homes }: Installation): Promise<string | undefined> {
  for (const namespace of homes) {
    const image = await cluster.get(cronJobs, { namespace, name: CRON_JOB }).then(imageOf, () => undefined);
    if (image !== undefined) return image;
  }
  return undefined;
}

const imageOf = ({ spec }: CronJob): string | undefined =>
  spec?.jobTemplate?.spec?.template?.spec?.containers?.[0]?.image;

/** Judges whether an eviction webhook is called for a namespace that a drill has made. */
export function guardOf({ reading }: Installation, namespace: string): Guard {
  return judgeGuard({ ...reading, namespace, labels: ownLabels(namespace), labelsKnown: true, probe: undefined });
}

/** The labels of a namespace that a drill makes. */
const ownLabels = (name: string) => ({ ...marks(name, 0).labels, "kubernetes.io/metadata.name": name });

/**
 * The namespaces of the webhooks' Services that get every eviction in the drill's namespace, by its labels. If the
 * namespace may not be read, only its name is known. Never rejects.
 */
export async function findAsked(
  cluster: Cluster,
  { reading }: Installation,
  { namespace, isOwn }: Place,
): Promise<string[]> {
  const read = isOwn ? undefined : await cluster.get(namespaces, { name: namespace }).catch(() => undefined);
  const labels = isOwn ? ownLabels(namespace) : { ...read?.metadata?.labels, "kubernetes.io/metadata.name": namespace };
  const asked = (reading.hooks ?? []).filter((hook) =>
    selects(hook, { labels, labelsKnown: isOwn || read !== undefined }),
  );
  return homesOf(asked);
}

/** Namespaces of the Services of eviction webhooks: an installation most likely serves these. */
export const servedElsewhere = ({ reading }: Installation): string[] => homesOf(reading.hooks ?? []);

const homesOf = (hooks: readonly Pick<EvictionHook, "service">[]): string[] => [
  ...new Set(hooks.flatMap(({ service }) => service?.split("/")[0] ?? [])),
];

/** The pods to kill. The selector is chosen once: if none of them run, no other pods are killed instead. */
export interface Killed {
  readonly namespace: string;
  readonly labelSelector: string;
}

/** The pods of the installation in this namespace; undefined if none run there. */
export async function findKilled(cluster: Cluster, namespace: string): Promise<Killed | undefined> {
  for (const labelSelector of INSTALLED_PODS) {
    const killed = { namespace, labelSelector };
    if ((await listRunning(cluster, killed)).length > 0) return killed;
  }
  return undefined;
}

/** Kills pods of the installation, one after the other in random order, until the signal fires. Never rejects. */
export async function killPods(drill: Drill, killed: Killed, tell: (text: string) => void): Promise<void> {
  const { cluster, clock, history, random, signal } = drill;
  for (let i = 0; i < KILLS.count; i++) {
    await clock.sleep(KILLS.pauseMs, signal);
    if (signal.aborted) return;
    try {
      const found = await listRunning(cluster, killed);
      const pod = found[Math.floor(random() * found.length)];
      if (!pod) continue;
      const { namespace = "", name = "", uid = "" } = pod.metadata ?? {};
      await cluster.remove(pods, { namespace, name, preconditions: { uid } }, { signal });
      history.add({ what: "killed", pod: `${namespace}/${name}` });
    } catch (error) {
      if (!signal.aborted) tell(`no pod of the installation was killed: ${messageOf(error)}`);
    }
  }
}

async function listRunning(cluster: Cluster, killed: Killed): Promise<PodObject[]> {
  const all = await collect(cluster.list(pods, killed));
  return all.filter(({ metadata, status }) => !metadata?.deletionTimestamp && status?.phase === "Running");
}
