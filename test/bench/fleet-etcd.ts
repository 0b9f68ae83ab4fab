/**
 * Pods of a fleet written into etcd directly, as copies of pods that the API server has stored: through the API server
 * 100,000 pods take two requests each, and an hour. Values are replaced by values of the same length, so that the
 * lengths in the stored protobuf hold. Source: https://etcd.io/docs/latest/dev-guide/api_grpc_gateway/
 */
import { randomUUID } from "node:crypto";
import { visitEach } from "../../infra/slots.ts";

/** A zone that has pods, or is to have some. */
export interface Owner {
  readonly namespace: string;
  readonly group: string;
  readonly name: string;
  readonly uid: string;
}

export interface Pair {
  readonly key: string;
  readonly value: string;
}

/** One after the other for each pod: an API server's check of its cache fails beside transactions of many. */
const PUTS_AT_ONCE = 8;
/** Of a pod itself: metadata.uid follows the names in the stored object. */
const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

const encode = (text: string): string => Buffer.from(text, "latin1").toString("base64");
const decode = (text: string): string => Buffer.from(text, "base64").toString("latin1");

/**
 * Copies the pods of a zone to another one, as pods of its own UIDs and owner. The names of their groups, and of their
 * namespaces, are as long as each other.
 */
export async function copyPods(etcd: string, pods: readonly Pair[], from: Owner, to: Owner): Promise<void> {
  await visitEach(pods, { atOnce: PUTS_AT_ONCE }, async ({ key, value }) => {
    const renamed = decode(key).replace(prefixOf(from), prefixOf(to));
    await post(`${etcd}/v3/kv/put`, { key: encode(renamed), value: encode(adopt(decode(value), from, to)) });
  });
}

/** The stored pods of a zone. */
export async function readPods(etcd: string, zone: Owner): Promise<readonly Pair[]> {
  const prefix = prefixOf(zone);
  // The character after "-" ends the range.
  const range = { key: encode(prefix), range_end: encode(`${prefix.slice(0, -1)}.`) };
  return (await post<{ readonly kvs?: readonly Pair[] }>(`${etcd}/v3/kv/range`, range)).kvs ?? [];
}

const prefixOf = ({ namespace, name }: Owner): string => `/registry/pods/${namespace}/${name}-`;

function adopt(pod: string, from: Owner, to: Owner): string {
  const foreign = pod.replaceAll(from.uid, "");
  const [own = ""] = UUID.exec(foreign) ?? [];
  return pod
    .replaceAll(from.name, to.name)
    .replaceAll(field(GROUP_TAG, from.group), field(GROUP_TAG, to.group))
    .replaceAll(field(NAMESPACE_TAG, from.namespace), field(NAMESPACE_TAG, to.namespace))
    .replaceAll(from.uid, to.uid)
    .replaceAll(own, randomUUID());
}

/** Of a label's value, and of metadata.namespace. */
const [GROUP_TAG, NAMESPACE_TAG] = ["\x12", "\x1a"] as const;

/** A string in protobuf: after its tag, its length. */
const field = (tag: string, text: string): string => `${tag}${String.fromCharCode(text.length)}${text}`;

async function post<T>(url: string, body: object): Promise<T> {
  const answer = await fetch(url, { method: "POST", body: JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`etcd answered ${answer.status}: ${text}`);
  return JSON.parse(text) as T;
}
