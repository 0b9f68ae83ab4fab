/** Request bodies in protobuf, for the few kinds that kubectl sends so (field numbers: generated.proto of k8s.io/api). */
import { refusal } from "./api-error.ts";
import type { Fields } from "./objects.ts";

type Type = "text" | "int" | "bool" | "bytes" | "labels" | "bytesMap" | Message;
/** Field number to name and type; a name that ends in "[]" repeats. */
interface Message {
  readonly [field: number]: readonly [name: string, type: Type];
}

const META: Message = {
  1: ["name", "text"],
  2: ["generateName", "text"],
  3: ["namespace", "text"],
  11: ["labels", "labels"],
  12: ["annotations", "labels"],
  14: ["finalizers[]", "text"],
};
const PRECONDITIONS: Message = { 1: ["uid", "text"], 2: ["resourceVersion", "text"] };
const DELETE_OPTIONS: Message = {
  1: ["gracePeriodSeconds", "int"],
  2: ["preconditions", PRECONDITIONS],
  4: ["propagationPolicy", "text"],
  5: ["dryRun[]", "text"],
};
const metadata = ["metadata", META] as const;

/** Of these only the kind matters: what they ask is answered without looking. */
const UNREAD: Message = {};

const MESSAGES: Readonly<Record<string, Message>> = {
  Namespace: { 1: metadata },
  ServiceAccount: { 1: metadata },
  ConfigMap: { 1: metadata, 2: ["data", "labels"] },
  Secret: { 1: metadata, 2: ["data", "bytesMap"], 3: ["type", "text"] },
  Eviction: { 1: metadata, 2: ["deleteOptions", DELETE_OPTIONS] },
  DeleteOptions: DELETE_OPTIONS,
  SelfSubjectAccessReview: UNREAD,
  SelfSubjectReview: UNREAD,
  TokenRequest: { 1: metadata, 2: ["spec", { 1: ["audiences[]", "text"], 4: ["expirationSeconds", "int"] }] },
};

/** What all bodies are wrapped in: runtime.Unknown behind four bytes of magic. */
const MAGIC = "k8s\0";
const ENVELOPE: Message = { 1: ["type", { 1: ["apiVersion", "text"], 2: ["kind", "text"] }], 2: ["raw", "bytes"] };

interface Raw {
  readonly field: number;
  readonly value: number | Buffer;
}

function readVarint(bytes: Buffer, at: number): [value: number, next: number] {
  let value = 0;
  for (let i = at, scale = 1; i < bytes.length; i++, scale *= 128) {
    const byte = bytes[i] ?? 0;
    value += (byte & 127) * scale;
    if (byte < 128) return [value, i + 1];
  }
  throw refusal("BadRequest", "unexpected EOF");
}

function* rawFields(bytes: Buffer): Generator<Raw> {
  for (let at = 0; at < bytes.length;) {
    const [key, next] = readVarint(bytes, at);
    const [value, end] = readVarint(bytes, next);
    const isLong = (key & 7) === 2;
    yield { field: key >> 3, value: isLong ? bytes.subarray(end, end + value) : value };
    at = isLong ? end + value : end;
  }
}

function decodeMessage(bytes: Buffer, message: Message): Fields {
  const result: Fields = {};
  for (const { field, value } of rawFields(bytes)) {
    const [name, type] = message[field] ?? [];
    if (name === undefined || type === undefined) continue;
    const decoded = decodeValue(value, type);
    if (decoded === "") continue;
    const plain = name.replace("[]", "");
    const before = result[plain];
    if (plain !== name) result[plain] = [...(Array.isArray(before) ? before : []), decoded];
    else if (type === "labels" || type === "bytesMap") result[plain] = Object.assign({}, before, decoded);
    else result[plain] = decoded;
  }
  return result;
}

function decodeValue(value: number | Buffer, type: Type): unknown {
  if (typeof value === "number") return type === "bool" ? value !== 0 : value;
  if (type === "text") return value.toString();
  if (type === "labels" || type === "bytesMap") {
    const entry = [...rawFields(value)].map((one) => one.value);
    return { [String(entry[0])]: Buffer.isBuffer(entry[1]) ? entry[1].toString(type === "labels" ? "utf8" : "base64") : "" };
  }
  return typeof type === "object" ? decodeMessage(value, type) : value;
}

/** The body as JSON text; throws UnsupportedMediaType for kinds that are not known here. */
export function protobufToJson(body: Buffer): string {
  if (body.subarray(0, 4).toString("latin1") !== MAGIC)
    throw refusal("BadRequest", "provided data does not appear to be a protobuf message, expected prefix");
  const { type, raw } = decodeMessage(body.subarray(4), ENVELOPE);
  const { kind, apiVersion } = Object.assign({ kind: "", apiVersion: "" }, type);
  const message = MESSAGES[kind];
  if (!message || !Buffer.isBuffer(raw)) throw refusal("UnsupportedMediaType", "415: Unsupported Media Type", {});
  return JSON.stringify({ apiVersion, kind, ...decodeMessage(raw, message) });
}
