/** Request bodies in protobuf: how kubectl sends what it creates without a file (field numbers: generated.proto of k8s.io/api). */
import { PbfReader } from "pbf";
import { refusal } from "./api-error.ts";

/** The values of a message by their field's number. Only texts, messages and entries of maps, which come with their length: type 2. */
function read(message: Uint8Array = new Uint8Array()): Partial<Record<number, Uint8Array[]>> {
  const values: Partial<Record<number, Uint8Array[]>> = {};
  new PbfReader(message).readFields((number, _, reader) => {
    if (reader.type === 2) (values[number] ??= []).push(reader.readBytes());
  }, undefined);
  return values;
}

function textOf([value]: Uint8Array[] = []): string {
  return Buffer.from(value ?? []).toString();
}

function mapOf(entries: Uint8Array[] = []): Record<string, string> {
  return Object.fromEntries(entries.map((entry) => read(entry)).map(({ 1: key, 2: value }) => [textOf(key), textOf(value)]));
}

/** The body as JSON; throws UnsupportedMediaType for other kinds than namespaces and ConfigMaps. */
export function readProtobuf(body: Buffer): object {
  // Four bytes of magic, then runtime.Unknown.
  const { 1: type, 2: raw } = read(body.subarray(4));
  const { 1: apiVersion, 2: kind } = read(type?.[0]);
  const object = read(raw?.[0]);
  const metadata = read(object[1]?.[0]);
  if (!["Namespace", "ConfigMap"].includes(textOf(kind))) throw refusal("UnsupportedMediaType", "415: Unsupported Media Type", {});
  return {
    apiVersion: textOf(apiVersion),
    kind: textOf(kind),
    metadata: { name: textOf(metadata[1]), labels: mapOf(metadata[11]), annotations: mapOf(metadata[12]) },
    ...(textOf(kind) === "ConfigMap" && { data: mapOf(object[2]) }),
  };
}
