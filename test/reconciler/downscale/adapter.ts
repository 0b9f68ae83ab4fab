/**
 * The one door to the decisions about downscales: facts in, as the objects that a cluster has, the review of an API
 * server and the answers of pods; the verdict of admission out. Whoever rewrites how they are read and decided has this
 * file to keep, and no case.
 */
import { recordInAnnotation, recordInTracker } from "../../../functions/downscale/downscale-record.ts";
import { createBackgroundTasks } from "../../../functions/http/rim.ts";
import type { AdmissionRequest, Answer } from "../../../functions/http/webhook.ts";
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Lease, PodObject, StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { PodHttp, PodRequest } from "../../../infra/pod-http.ts";
import { createConcluder } from "../../../reconciler/downscale/act/conclude-downscales.ts";
import { nameLease, pendingOf } from "../../../reconciler/downscale/act/downscale-lease.ts";
import type { PendingDownscales } from "../../../reconciler/downscale/pending.ts";
import type { Draft } from "../../../reconciler/report/events.ts";
import { callWebhook, keepingLog, startPrepareDownscale } from "../../functions/stage.ts";
import { keepObjects, type Kept } from "../kept-objects.ts";

/** All objects are in one namespace. */
export interface Facts {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly statefulSets: readonly StatefulSet[];
  readonly pods: readonly PodObject[];
  /** Whether times are recorded in the zone tracker, and its entries if it exists. */
  readonly isTracked?: boolean;
  readonly tracker?: Readonly<Record<string, string>> | undefined;
  /** The downscales that the Lease records, by StatefulSet. */
  readonly pending?: object | undefined;
  /** The calls to the API server that fail, such as `list pods`. */
  readonly failing?: readonly string[] | undefined;
  /** What a pod answers; 200 by default. */
  readonly answers?: (method: string, pod: string) => number;
}

export interface Decision extends Answer {
  /** `POST ingester-zone-a-2`, in order. */
  readonly called: readonly string[];
  readonly requests: readonly ({ readonly url: string } & PodRequest)[];
  /** The downscales that the Leases record, and what the zone tracker does. */
  readonly pending: PendingDownscales;
  readonly tracker: Readonly<Record<string, string>>;
  readonly events: readonly Draft[];
  /** Calls to the API server, such as `list pods`. */
  readonly calls: readonly string[];
  /** Of the group's Lease, or of the one of a StatefulSet without a group. */
  readonly leaseOwners: readonly object[] | undefined;
}

const TRACKER = "tracker";

/** What `prepare-downscale` says to the review. */
export async function admit(facts: Facts, request: AdmissionRequest): Promise<Decision> {
  const { now, statefulSets, pods, tracker, answers = () => 200 } = facts;
  const own = statefulSets.find(({ metadata }) => metadata?.name === request.name)?.metadata;
  const lease = nameLease(own?.labels?.["rollout-group"], request.name ?? "");
  const annotations = { "zonewise/pending-downscales": JSON.stringify(facts.pending) };
  const objects = {
    statefulsets: statefulSets,
    pods,
    configmaps: tracker ? [{ metadata: { name: TRACKER, resourceVersion: "1" }, data: tracker } as Kept] : [],
    leases: facts.pending ? [{ metadata: { name: lease, resourceVersion: "1", annotations } }] : [],
  };
  const { cluster, calls, get } = keepObjects(objects, { failing: facts.failing });
  // The pause after a lost race is over at once; the wait for a deadline never ends.
  const sleep = (ms: number): Promise<void> => (ms < 1000 ? Promise.resolve() : new Promise(() => {}));
  const clock: Clock = { now: () => now, monotonic: () => now, sleep };
  const called: string[] = [];
  const requests: ({ readonly url: string } & PodRequest)[] = [];
  const podHttp: PodHttp = {
    async send(method, url, request) {
      const [pod = ""] = new URL(url).hostname.split(".");
      called.push(`${method} ${pod}`);
      requests.push({ url, ...request });
      return { status: answers(method, pod), body: "" };
    },
  };
  const events: Draft[] = [];
  const tasks = createBackgroundTasks();
  const webhook = startPrepareDownscale({
    cluster,
    clock,
    podHttp,
    clusterDomain: "cluster.local.",
    record: (facts.isTracked ? recordInTracker : recordInAnnotation)({ cluster, clock }, TRACKER),
    emitEvents: (drafts) => void events.push(...drafts),
    tasks,
  });
  const answer = await callWebhook(webhook, request, { clock });
  await tasks.settled();
  const left: Lease | undefined = get("leases", lease);
  const { data = {} } = (get("configmaps", TRACKER) ?? {}) as { readonly data?: Record<string, string> };
  return {
    ...answer,
    called,
    requests,
    events,
    calls,
    pending: pendingOf(left),
    tracker: data,
    leaseOwners: left?.metadata?.ownerReferences,
  };
}

/** Of a Lease: the downscales that it records, and its spec. */
interface Note {
  readonly pending: object;
  readonly spec?: object;
}

interface Recorded extends Pick<Facts, "now" | "statefulSets" | "answers"> {
  /** By the names of Leases. */
  readonly notes: Readonly<Record<string, Note>>;
  /** What is between the process and the API server. */
  readonly through?: (cluster: Cluster, pass: (ms: number) => void) => Cluster;
}

interface Concluding {
  readonly namespaces?: readonly string[];
  readonly stop?: AbortSignal;
  readonly isLeftOut?: (lease: { readonly namespace: string; readonly name: string }) => boolean;
}

/** A process that concludes what Leases record; its clock stands still unless it is told to pass. */
export function startConcluder({ now, statefulSets, answers = () => 200, notes, through = (one) => one }: Recorded) {
  const lease = ([name, { pending, spec = { holderIdentity: "" } }]: readonly [string, Note]): Kept => {
    const annotations = { "zonewise/pending-downscales": JSON.stringify(pending) };
    const labels = { "zonewise/downscale": "pending" };
    return { metadata: { name, namespace: "test", resourceVersion: "1", labels, annotations }, spec } as Kept;
  };
  const kept = keepObjects({ statefulsets: statefulSets, leases: Object.entries(notes).map(lease) });
  let later = 0;
  const pass = (ms: number): void => void (later += ms);
  const clock: Clock = { now: () => now + later, monotonic: () => later, sleep: async () => {} };
  const told: string[] = [];
  const events: Draft[] = [];
  const { log, entries } = keepingLog();
  const podHttp: PodHttp = {
    async send(method, url) {
      const [pod = ""] = new URL(url).hostname.split(".");
      told.push(`${method} ${pod}`);
      return { status: answers(method, pod), body: "a secret of the pod" };
    },
  };
  const cluster = through(kept.cluster, pass);
  const conclude = createConcluder({ log, podHttp, clusterDomain: "x", zoneTracker: TRACKER });
  return {
    told,
    events,
    entries,
    pass,
    /** Concludes once; resolves with whether some are left, and with the calls to the API server. */
    async conclude({ namespaces = ["test"], stop = new AbortController().signal, ...more }: Concluding = {}) {
      kept.calls.length = 0;
      const recorder = { emitEvents: (drafts: readonly Draft[]) => void events.push(...drafts) };
      const context = { cluster, clock, fence: { write: () => ({}) }, stop };
      const isLeft = await conclude(context, { namespaces, recorder, ...more });
      return { isLeft, calls: [...kept.calls] };
    },
    /** What the Lease records; nothing of it is pending if it has no label. */
    noted: (name: string): PendingDownscales => pendingOf(kept.get("leases", name)),
    isPending: (name: string): boolean =>
      kept.get("leases", name)?.metadata?.labels?.["zonewise/downscale"] !== undefined,
    /** The `last-downscale` of a StatefulSet. */
    written: (name: string): string | undefined =>
      kept.get("statefulsets", name)?.metadata?.annotations?.["grafana.com/last-downscale"],
  };
}
