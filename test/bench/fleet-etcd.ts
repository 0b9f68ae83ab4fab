/**
 * Pods of a fleet written into etcd directly, as copies of pods that the API server has stored: through the API server
 * 100,000 pods take two requests each, and an hour. Values are replaced by values of the same length, so that the
 * lengths in the stored protobuf hold. Source: https://etcd.io/docs/latest/dev-guide/api_grpc_gateway/
 */
import { randomUUID } from "node:crypto";

/** A zone that has pods, or is to have some. */
export interface Owner {
  readonly group: string;
  readonly name: string;
  readonly uid: string;
}

interface Pair {
  readonly key: string;
  readonly value: string;
}

/** Puts of one transaction: etcd takes 128 unless told otherwise. */
const PUTS = 100;
/** Of a pod itself: metadata.uid follows the names in the stored object. */
const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

const encode = (text: string): string => Buffer.from(text, "latin1").toString("base64");
const decode = (text: string): string => Buffer.from(text, "base64").toString("latin1");

/** Copies the pods of a zone to another one, whose group's name is as long, as pods of its own UIDs and owner. */
export async function copyPods(etcd: string, namespace: string, from: Owner, to: Owner): Promise<void> {
  const prefix = `/registry/pods/${namespace}/${from.name}-`;
  // The character after "-" ends the range.
  const range = { key: encode(prefix), range_end: encode(`${prefix.slice(0, -1)}.`) };
  const { kvs = [] } = await post<{ readonly kvs?: readonly Pair[] }>(`${etcd}/v3/kv/range`, range);
  const puts = kvs.map(({ key, value }) => ({
    requestPut: { key: encode(rename(decode(key), from, to)), value: encode(adopt(decode(value), from, to)) },
  }));
  for (let i = 0; i < puts.length; i += PUTS) await post(`${etcd}/v3/kv/txn`, { success: puts.slice(i, i + PUTS) });
}

const rename = (text: string, from: Owner, to: Owner): string => text.replaceAll(from.name, to.name);

function adopt(pod: string, from: Owner, to: Owner): string {
  const foreign = pod.replaceAll(from.uid, "");
  const [own = ""] = UUID.exec(foreign) ?? [];
  // The label of the group: a string of its length, with nothing beside its name.
  const field = `\x12${String.fromCharCode(from.group.length)}`;
  return rename(pod, from, to)
    .replaceAll(field + from.group, field + to.group)
    .replaceAll(from.uid, to.uid)
    .replaceAll(own, randomUUID());
}

async function post<T>(url: string, body: object): Promise<T> {
  const answer = await fetch(url, { method: "POST", body: JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`etcd answered ${answer.status}: ${text}`);
  return JSON.parse(text) as T;
}
