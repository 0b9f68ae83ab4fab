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

type Message = ReturnType<typeof readFields>;

const messageAt = (message: Message, number: number): Message => readFields(message[number]?.[0]);

/** The texts of these names that are not empty, numbered from 1. */
const textsOf = (message: Message, ...names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name, i) => [name, textOf(message[i + 1])]).filter(([, text]) => text !== ""));

/** What is read of a body besides its type, by its kind. */
const KINDS: Readonly<Record<string, (body: Message) => object>> = {
  Namespace: (body) => ({ metadata: metadataOf(body) }),
  ConfigMap: (body) => ({ metadata: metadataOf(body), data: mapOf(body[2]) }),
  SelfSubjectReview: () => ({}),
  SelfSubjectRulesReview: (body) => ({ spec: textsOf(messageAt(body, 2), "namespace") }),
  SelfSubjectAccessReview(body) {
    const { 1: resource, 2: path } = messageAt(body, 2);
    const names = ["namespace", "verb", "group", "version", "resource", "subresource", "name"];
    return {
      spec: {
        ...(resource && { resourceAttributes: textsOf(readFields(resource[0]), ...names) }),
        ...(path && { nonResourceAttributes: textsOf(readFields(path[0]), "path", "verb") }),
      },
    };
  },
};

function metadataOf(body: Message): object {
  const metadata = messageAt(body, 1);
  return { name: textOf(metadata[1]), labels: mapOf(metadata[11]), annotations: mapOf(metadata[12]) };
}

/** Returns the body as an object; throws UnsupportedMediaType for other kinds than those above. */
export function readProtobuf(body: Buffer): object {
  // Four magic bytes, then runtime.Unknown.
  const { 1: type, 2: raw } = readFields(body.subarray(4));
  const { 1: apiVersion, 2: name } = readFields(type?.[0]);
  const kind = textOf(name);
  const read = KINDS[kind];
  if (!read) throw statusError("UnsupportedMediaType", "415: Unsupported Media Type", {});
  return { apiVersion: textOf(apiVersion), kind, ...read(readFields(raw?.[0])) };
}
