/**
 * The world behind the Kubernetes port and behind HTTP to pods of one reconciler process: calls may fail in every way.
 */
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { hasCode, RolloutError } from "../../../infra/errors.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import { portOf, type Carry, type Deed } from "../store-port.ts";
import { lose, scaleTo, TEMPLATES, type World } from "./world.ts";

/** The outcome of a call. A late one takes effect after its caller has given up. */
export const FATES = ["well", "lostBefore", "lostAfter", "late", "refused", "leaseLost"] as const;
export type Fate = (typeof FATES)[number];

/** The number of times that all plays together reached each case. */
export type Reached = Record<
  "lostBefore" | "lostAfter" | "late" | "refused" | "leaseLost" | "killed" | "shrunk" | "shrinkUnanswered" | "deleted",
  number
>;

/** The process died. */
export class Killed extends Error {}

export interface Process {
  readonly cluster: Cluster;
  readonly podHttp: PodHttp;
  /** Throws `LeaseLost` once the Lease is lost. */
  readonly write: () => object;
  /** Makes late calls take effect. */
  readonly end: () => void;
}

/**
 * A process that dies after `callsToLive` calls; `fates` are those of its first calls in order; later calls succeed, a
 * downscale by `shrinkFate`.
 */
export function startProcess(
  world: World,
  options: { callsToLive: number; fates: readonly Fate[]; shrinkFate: Fate; reached: Reached },
): Process {
  const { cluster: small } = world;
  const { fates, shrinkFate, reached } = options;
  let { callsToLive } = options;
  let calls = 0;
  let leaseLost = false;
  const late: (() => unknown)[] = [];

  /** The process may die before a call takes effect, or after it and before its answer. */
  async function call<T>(effect: () => T, isWrite = false, further: Fate = "well"): Promise<T> {
    const fate = fates[calls++] ?? further;
    if (--callsToLive < 0) die();
    if (fate === "leaseLost") leaseLost = true;
    if (fate === "lostBefore") fail("lostBefore", "Timeout");
    if (fate === "refused" && isWrite) fail("refused", "Forbidden");
    if (fate === "late" && isWrite) {
      late.push(effect);
      fail("late", "Timeout");
    }
    const result = effect();
    callsToLive -= 0.5;
    if (callsToLive < 0) die();
    if (fate === "lostAfter") fail("lostAfter", "Unreachable");
    return result;
  }

  function fail(fate: keyof Reached, code: "Timeout" | "Forbidden" | "Unreachable"): never {
    reached[fate]++;
    throw new RolloutError(code, fate);
  }

  function die(): never {
    reached.killed++;
    throw new Killed();
  }

  /** The world judges what takes effect. */
  function judged<T>({ verb, name, body }: Deed, effect: () => T): T {
    const to = (body as { readonly spec?: { readonly replicas?: number } } | undefined)?.spec?.replicas;
    const pod = verb === "remove" ? small.pod(name) : undefined;
    const set = verb === "change" ? small.set(name) : undefined;
    const result = effect();
    if (pod) reached.deleted++;
    if (pod) lose(world, pod);
    if (set && to !== undefined) {
      if (to < (set.spec.replicas ?? 0)) reached.shrunk++;
      scaleTo(world, set, to);
    }
    return result;
  }

  const carry: Carry = async (deed, effect) => {
    const { replicas = Infinity } = (deed.body as { readonly spec?: { readonly replicas?: number } })?.spec ?? {};
    const shrinks = deed.verb === "change" && replicas < (small.set(deed.name).spec.replicas ?? 0);
    const isWrite = !["list", "get", "discover"].includes(deed.verb);
    try {
      return await call(() => judged(deed, effect), isWrite, shrinks ? shrinkFate : "well");
    } catch (error) {
      if (shrinks && hasCode(error, "Timeout", "Unreachable")) reached.shrinkUnanswered++;
      throw error;
    }
  };

  const write = (): object => {
    if (!leaseLost) return {};
    reached.leaseLost++;
    throw new RolloutError("LeaseLost", "another process has it");
  };

  function end(): void {
    for (const effect of late) {
      try {
        effect();
      } catch {}
    }
  }
  return {
    cluster: portOf(small.store, carry, { discovered: [TEMPLATES] }),
    podHttp: { send: (method, url) => call(() => answerOf(world, method, url)) },
    write,
    end,
  };
}

/** A pod that answers by the world's `podMood`; some pods do not answer although they got the request. */
function answerOf({ cluster, podMood, preparedAt }: World, method: string, url: string) {
  const { name = "" } = /\/\/(?<name>.+zone-[a-c]-\d+)\./.exec(url)?.groups ?? {};
  const pod = cluster.pod(name);
  const mood = (podMood * 7 + Number(name.split("-").at(-1)) * 3) % 11;
  if (mood === 0 || !pod) throw new RolloutError("Unreachable", "refused");
  if (mood === 1) return { status: 500, body: "" };
  const { uid } = pod.metadata;
  if (method === "DELETE") preparedAt.delete(uid);
  else if (!preparedAt.has(uid)) preparedAt.set(uid, cluster.now());
  if (mood === 2) throw new RolloutError("Timeout", "no answer, but it was heard");
  if (mood === 3) return { status: 200, body: "what?" };
  return { status: 200, body: JSON.stringify({ timestamp: Math.ceil((preparedAt.get(uid) ?? 0) / 1000) }) };
}
