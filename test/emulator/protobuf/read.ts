/**
 * Protobuf request bodies: kubectl sends them when it creates objects without a file (generated.proto of
 * k8s.io/api).
 */
import { PbfReader } from "pbf";
import { statusError } from "../api-error.ts";

/**
 * The length-delimited values (wire type 2: strings, messages, map entries) of a message, by field number.
 */
function readFields(message: Uint8Array = new Uint8Array()): Partial<Record<number, Uint8Array[]>> {
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
  return Object.fromEntries(
    entries.map((entry) => readFields(entry)).map(({ 1: key, 2: value }) => [textOf(key), textOf(value)]),
  );
}

/**
 * Returns the body as an object; throws UnsupportedMediaType for kinds other than Namespace and ConfigMap.
 */
export function readProtobuf(body: Buffer): object {
  // Four magic bytes, then runtime.Unknown.
  const { 1: type, 2: raw } = readFields(body.subarray(4));
  const { 1: apiVersion, 2: kind } = readFields(type?.[0]);
  const object = readFields(raw?.[0]);
  const metadata = readFields(object[1]?.[0]);
  if (!["Namespace", "ConfigMap"].includes(textOf(kind)))
    throw statusError("UnsupportedMediaType", "415: Unsupported Media Type", {});
  return {
    apiVersion: textOf(apiVersion),
    kind: textOf(kind),
    metadata: { name: textOf(metadata[1]), labels: mapOf(metadata[11]), annotations: mapOf(metadata[12]) },
    ...(textOf(kind) === "ConfigMap" && { data: mapOf(object[2]) }),
  };
}
