/**
 * What the node API says yes to, judged from what was so throughout its request: a node counts as drained only if its
 * reboot is wanted, its policy not frozen, the node cordoned by an earlier request and no pod left (§17.2), and as given
 * back only without our cordon (§17.6).
 */
import { dig, fieldsOf, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, Store, StoreEvent } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import { type Facts, isMarked, mustLeave, nodeOf, REBOOTS, wantedOf } from "./facts.ts";
import type { NodeAnswerTold } from "./network.ts";
import { POLICIES, SHADOWS } from "./shape.ts";

export interface NodeAnswerSafetyOptions {
  readonly facts: Pick<Facts, "wasSo">;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly store: () => Pick<Store, "get" | "list">;
}

const SHADOW = /\/bottlerocketshadows\/brs-([^/?]+)(?:\?|$)/;
/** Longer than a request of an agent takes. */
const REQUEST_MS = 60_000;
const FAILED = "ErrorReset";
/** What an agent reports once it has given its node back. */
const GIVEN_BACK: ReadonlySet<unknown> = new Set(["MonitoringUpdate", "Idle"]);
/** The last part of the path of a report. */
const REPORT = "bottlerocket-node-resource";
/** Statuses of an answer to somebody who may not speak for the node. */
const FORBIDDEN = 403;
const REFUSED: ReadonlySet<number> = new Set([401, FORBIDDEN]);
/** After so many refusals in a row, and so long, an agent has read its Node again. */
const [MANY, AGAIN_MS] = [5, 60_000];
const reportedOf = (shadow: KubeObject | undefined): unknown => dig(shadow, "status", "current_state");

/** Calls `violated` with what happened, in words. */
export function createNodeAnswerSafety({ facts, violated, now, store }: NodeAnswerSafetyOptions) {
  /** By node: who of the node APIs cordoned it last, and when. */
  const cordoned = new Map<string, { readonly by: string; readonly at: number }>();

  /** By node since when its agent is refused whatever it asks, and how often it was. */
  const refused = new Map<string, { readonly since: number; readonly times: number }>();

  /** By node what its agent reports too early. */
  const early = new Map<string, string>();

  /** By node API and node when it has read its shadow of late. */
  const reads = new Map<string, readonly number[]>();

  function whyNotDrained({ node, server, arrivedAt }: NodeAnswerTold): string | undefined {
    const at = arrivedAt;
    if (facts.wasSo(node, "wants no reboot", at)) return "whose reboot nobody wants";
    const policies = store()
      .list(POLICIES)
      .filter((policy) => listOf(dig(policy, "status", "active")).some((one) => dig(one, "node") === node));
    if (policies.some(({ metadata }) => facts.wasSo(metadata.name, "is frozen", at))) return "whose policy is frozen";
    const { by, at: cordonedAt = -Infinity } = cordoned.get(node) ?? {};
    if (by === server && cordonedAt >= arrivedAt) return "which it has cordoned just now";
    const isForced = dig(store().get(SHADOWS, NAMESPACE, `brs-${node}`), "status", "drain", "forced") === true;
    const left = store()
      .list("pods")
      .filter((pod) => dig(pod, "spec", "nodeName") === node && mustLeave(pod))
      .filter(({ metadata: { uid } }) => facts.wasSo(uid, "is on its node", at));
    return isForced || left.length === 0 ? undefined : `with ${left.map(({ metadata }) => metadata.name).join(", ")}`;
  }

  /** Of a node API that takes a node out of service, or a pod from it: it has read that nobody wants that. */
  function onTaken(node: string, what: string, { actor, sentAt = now() }: Caller): void {
    const firstRead = reads.get(`${actor} ${node}`)?.find((at) => at > sentAt - REQUEST_MS && at <= sentAt);
    if (firstRead !== undefined && facts.wasSo(node, "wants no reboot", firstRead))
      violated(`${actor} ${what}, whose reboot nobody wants`);
  }

  /** What a node API lets an agent say: its write has the version of the shadow that it has read. */
  function onShadow(object: KubeObject, previous: KubeObject | undefined, actor: string): void {
    const node = nodeOf(object);
    const [was, is] = [previous, object].map((one) => fieldsOf(one?.["status"]));
    const wanted = wantedOf(previous);
    const { drain } = was ?? {};
    const isDrained = dig(drain, "remaining") === 0 || dig(drain, "forced") === true;
    if (is?.["rebooting"] && !was?.["rebooting"]) {
      if (wanted !== REBOOTS) violated(`${actor} announces a reboot of ${node}, which nobody wants`);
      if (!isDrained) violated(`${actor} announces a reboot of ${node}, which is not drained`);
    }
    if (is?.["drain"] && JSON.stringify(is["drain"]) !== JSON.stringify(drain)) {
      if (wanted !== REBOOTS) violated(`${actor} records a drain of ${node}, whose reboot nobody wants`);
    }
    if (is?.["drain"] && is["current_state"] === "Idle")
      violated(`${actor} keeps the drain of ${node}, whose update is over`);
    if (reportedOf(previous) === FAILED && reportedOf(object) === "Idle" && wanted !== "Idle")
      early.set(node, `goes back to Idle after its failure, and ${String(wanted)} is wanted`);
  }

  /** The agent of a node is answered: one that is refused reads again which Node is its own. */
  function onOwn(node: string, status: number): void {
    if (status !== FORBIDDEN) return void refused.delete(node);
    const { since, times } = refused.get(node) ?? { since: now(), times: 0 };
    const isLong = times >= MANY && now() - since > AGAIN_MS && facts.wasSo(node, "is there", now() - AGAIN_MS);
    refused.set(node, { since, times: isLong ? -Infinity : times + 1 });
    if (isLong) violated(`the agent of ${node} is refused again and again`);
  }

  return {
    onRequest({ actor, sentAt = now() }: Caller, method: string, path: string): void {
      const [, node] = SHADOW.exec(path) ?? [];
      if (!actor.startsWith("node-api") || method !== "GET" || node === undefined) return;
      const key = `${actor} ${node}`;
      reads.set(key, [...(reads.get(key) ?? []).filter((at) => at > sentAt - REQUEST_MS), sentAt]);
    },
    onEvent({ type, resource, object, previous }: StoreEvent, caller: Caller | undefined): void {
      const { actor } = caller ?? {};
      if (!caller || !actor?.startsWith("node-api") || type !== "MODIFIED") return;
      const { name, deletionTimestamp } = object.metadata;
      if (resource === "nodes" && isMarked(object) && !isMarked(previous ?? object)) {
        onTaken(name, `cordons ${name}`, caller);
        cordoned.set(name, { by: actor, at: now() });
      }
      const on = textOf(dig(object, "spec", "nodeName"));
      if (resource === "pods" && on !== undefined && deletionTimestamp && !previous?.metadata.deletionTimestamp)
        onTaken(on, `evicts ${name} from ${on}`, caller);
      if (resource === SHADOWS) onShadow(object, previous, actor);
      const [before, after] = [reportedOf(previous), reportedOf(object)];
      if (resource !== SHADOWS || before === undefined || before === after || !GIVEN_BACK.has(after)) return;
      const node = store().get("nodes", undefined, nodeOf(object));
      if (node && isMarked(node) && wantedOf(object) === after)
        early.set(nodeOf(object), `reports ${String(after)}, and is cordoned by us`);
    },
    onAnswer(told: NodeAnswerTold): void {
      const { node, by, server, route, arrivedAt, status, as } = told;
      if (as === undefined) onOwn(node, status);
      if (as !== undefined && !REFUSED.has(status) && status < 500) violated(`${server} obeys ${as}, for ${node}`);
      if (status !== 200) return;
      const what = early.get(node);
      // Somebody else may have the token of the agent.
      if (what !== undefined && route === REPORT && by.startsWith("agent")) violated(`${node} ${what}`);
      if (route === REPORT) early.delete(node);
      const why = route === "cordon-and-drain" ? whyNotDrained(told) : undefined;
      if (why !== undefined) violated(`${server} calls ${node} drained, ${why}`);
      if (route === "uncordon" && facts.wasSo(node, "has announced its reboot", arrivedAt))
        violated(`${server} gives ${node} back, which has announced its reboot`);
      if (route === "uncordon" && facts.wasSo(node, "is cordoned by us", arrivedAt))
        violated(`${server} says that ${node} is given back, and it is cordoned by us`);
    },
  };
}
