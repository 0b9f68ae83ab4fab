/**
 * Lists of pods, and errors, for clients that accept protobuf; the emulator has everything else in JSON only, as
 * servers may.
 */
import { PROTOBUF } from "../../../infra/kubernetes/protobuf.ts";
import type { Status } from "../api-error.ts";
import type { Draft, Fields } from "../objects.ts";
import { seal, unknownFields, writeItem, writeMessage } from "./write.ts";

interface ProtobufAnswer {
  readonly code: number;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

const HEADERS = { "content-type": PROTOBUF };
/**
 * Made once and kept as long as the object, so that long lists are quick; none of those with fields that have no number
 * in the tables.
 */
const items = new WeakMap<Draft, Buffer | undefined>();

function itemOf(pod: Draft): Buffer | undefined {
  if (items.has(pod)) return items.get(pod);
  const { apiVersion: _, kind: __, ...fields } = pod;
  const item = unknownFields("Pod", fields).length > 0 ? undefined : writeItem("PodList", "items", fields);
  items.set(pod, item);
  return item;
}

/** Undefined if one of them has to be sent in JSON. */
export function podListAnswer(pods: readonly Draft[], metadata: Fields): ProtobufAnswer | undefined {
  const written = pods.map(itemOf);
  if (!written.every((item) => item !== undefined)) return undefined;
  return { code: 200, headers: HEADERS, body: seal("PodList", writeMessage("PodList", { metadata }), ...written) };
}

export function statusAnswer({ code, ...status }: Status): ProtobufAnswer {
  const { kind: _, apiVersion: __, ...fields } = status;
  return { code, headers: HEADERS, body: seal("Status", writeMessage("Status", { ...fields, code })) };
}
