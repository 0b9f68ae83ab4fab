/**
 * Two zones of a group with 3 pods each, on a small cluster: the reconciler is to shrink zone a to 2 replicas, or to roll it out
 * once it was deployed; a user shrinks zone b through the webhook prepare-downscale. Each list of StatefulSets, each
 * call about the downscale Lease and each stored write is a step of the play.
 */
import type { Answer } from "../../../functions/http/webhook.ts";
import type { Clock } from "../../../infra/clock.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { leases, statefulSets, type StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { Outcome } from "../../../reconciler/model/outcome.ts";
import { keepingLog, reviewOf, startPrepareDownscale } from "../../functions/stage.ts";
import { createSmallCluster, NAMESPACE } from "../small-cluster.ts";
import { keyOf, portOf, type Carry, type Deed } from "../store-port.ts";
import { MIRROR, NO_WRITE_BACK } from "../scaling/mirror-stage.ts";
import { tickOnce } from "../stage.ts";
import type { Stepper } from "./stepper.ts";

export const A = "ingester-zone-a";
export const B = "ingester-zone-b";
const START = Date.parse("2026-01-01T00:00:00Z");
/** Milliseconds of a call without a deadline, of a request of a webhook, and of a user's request. */
const CALL_MS = 10_000;
const WEBHOOK_MS = 10_000;
const REQUEST_MS = 60_000;
const LEASES = keyOf(leases);
const TEMPLATES = { group: "g", version: "v1", plural: "replicatemplates" };
const JUDGED = { "grafana.com/prepare-downscale": "true" };
const ANNOTATIONS = {
  "grafana.com/prepare-downscale-http-path": "prepare",
  "grafana.com/prepare-downscale-http-port": "80",
};

export interface ShrinkOptions {
  readonly stepper: Stepper;
  /** Whether zone a carries the label prepare-downscale as well. */
  readonly labelled?: boolean;
  /** Whether zone a keeps its replicas: the reconciler rolls it out after `deployA`. */
  readonly keepsReplicas?: boolean;
  /** False for a cluster whose webhook does not judge the reconciler's writes. */
  readonly judgesReconciler?: boolean;
  /** False for an API server that ignores versions, and that a Lease is there already. */
  readonly checksVersions?: boolean;
}

export function createShrinkWorld(options: ShrinkOptions) {
  const { stepper, labelled = false, keepsReplicas = false, judgesReconciler = true, checksVersions = true } = options;
  let now = START;
  const cluster = createSmallCluster(START);
  const { store } = cluster;
  const zones = [
    { name: A, labels: labelled ? JUDGED : {}, more: keepsReplicas ? {} : { ...MIRROR, ...NO_WRITE_BACK } },
    { name: B, labels: JUDGED, more: {} },
  ];
  for (const { name, labels, more } of zones)
    cluster.addSet({ name, labels, annotations: { ...ANNOTATIONS, ...more } });
  store.create(`${TEMPLATES.plural}.${TEMPLATES.group}`, {
    apiVersion: "g/v1",
    kind: "ReplicaTemplate",
    metadata: { namespace: NAMESPACE, name: "template" },
    spec: { replicas: 2 },
    status: { replicas: 2 },
  });
  cluster.settle();
  const shrunk: string[] = [];
  const deleted = new Set<string>();
  // The pause after a lost race is over at once; the wait for a deadline never ends.
  const sleep = (ms: number): Promise<void> => (ms < 1000 ? Promise.resolve() : new Promise(() => {}));
  const clock: Clock = { now: () => now, monotonic: () => now, sleep };
  const { log } = keepingLog();

  /** What is a step of the play: what is asked about StatefulSets and the Lease, and every write. */
  const isStep = ({ verb, plural }: Deed): boolean =>
    verb !== "discover" && (plural === "statefulsets" || plural === "leases" || verb === "remove");

  /** `isJudged`: the webhook is asked about its changes of replicas. */
  const connect = (isJudged: boolean) => {
    const carry: Carry = async (deed, effect, { deadlineMs = CALL_MS } = {}) => {
      if (!isStep(deed)) return effect();
      if (deed.verb === "change") return await request({ deed, effect, withinMs: deadlineMs }, isJudged);
      const begunAt = now;
      await stepper.step(`${deed.verb} ${deed.plural} ${deed.name}`, "process");
      if (now - begunAt >= deadlineMs) throw new RolloutError("Timeout", deed.name);
      if (!checksVersions && deed.verb === "create" && store.get(LEASES, NAMESPACE, deed.name))
        store.remove(LEASES, NAMESPACE, deed.name);
      const result = effect();
      if (deed.verb === "remove") lose(deed.name);
      return result;
    };
    return portOf(store, carry, { checksVersions, discovered: [TEMPLATES] });
  };

  /** The pod is gone at once, and its successor does not become ready. */
  function lose(pod: string): void {
    deleted.add(pod);
    cluster.runOut(pod);
    cluster.sync(A);
  }

  const webhook = startPrepareDownscale({ cluster: connect(false), clock });

  const zoneNamed = (name: string): StatefulSet => cluster.set(name);

  /**
   * What the API server does with a change of replicas: it asks the webhook if there is one, and stores the change in
   * time.
   */
  async function request<T>(
    { deed, effect, withinMs }: { readonly deed: Deed; readonly effect: () => T; readonly withinMs: number },
    isJudged: boolean,
  ): Promise<T> {
    const { name } = deed;
    const { replicas } = (deed.body as { readonly spec: { readonly replicas: number } }).spec;
    const begunAt = now;
    const answer = isJudged ? await judge(zoneNamed(name), replicas) : undefined;
    if (answer?.allowed === false) throw new RolloutError("Forbidden", answer.message ?? "");
    await stepper.step(`store ${name}`, "apiserver");
    if (now - begunAt >= withinMs) throw new RolloutError("Timeout", name);
    const stored = effect();
    shrunk.push(name);
    return stored;
  }

  async function judge(zone: StatefulSet, to: number): Promise<Answer> {
    const begunAt = now;
    const review = reviewOf(zone, to, { namespace: "test", uid: `${zone.metadata?.name} at ${now}` });
    const context = { path: "", signal: new AbortController().signal, deadlineAt: now + WEBHOOK_MS, log };
    const answer = await webhook.handle(review, context);
    return now - begunAt < WEBHOOK_MS ? answer : { allowed: false, message: "the webhook did not answer in time" };
  }

  return {
    /** The zones that were scaled down, in order. */
    shrunk,
    /** The pods that were deleted. */
    deleted,
    /** A user gives zone a another template, which the StatefulSet controller observes at once. */
    async deployA(): Promise<void> {
      await stepper.step("deploy", "user");
      cluster.changeTemplate(A, { image: "app:1" });
      cluster.sync(A);
    },
    /** A user scales zone b down; resolves with the message of a refusal. */
    shrinkB: async (): Promise<string | undefined> => {
      const { resourceVersion } = cluster.set(B).metadata;
      const body = { metadata: { resourceVersion }, spec: { replicas: 2 } };
      return await connect(true)
        .change(statefulSets, { namespace: NAMESPACE, name: B, type: "merge", body }, { deadlineMs: REQUEST_MS })
        .then(
          () => undefined,
          (error: RolloutError) => error.message,
        );
    },
    /** One tick of the reconciler. */
    reconcile: async (): Promise<Outcome | undefined> => {
      const port = connect(labelled && judgesReconciler);
      const fence = { write: () => ({ deadlineMs: CALL_MS }) };
      const result = await tickOnce({ clock }, port, { namespaces: ["test"], fence }).catch(() => undefined);
      return result?.outcomes[0];
    },
    elapse: (ms: number): void => void (now += ms),
  };
}
