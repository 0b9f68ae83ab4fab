/** Request bodies in protobuf: how kubectl sends what it creates without a file (field numbers: generated.proto of k8s.io/api). */
import { refusal } from "./api-error.ts";
import type { Fields } from "./objects.ts";

type Type = "text" | "map" | "bytes" | Message;
/** Field number to name and type. */
interface Message {
  readonly [field: number]: readonly [name: string, type: Type];
}

const metadata = [
  "metadata",
  { 1: ["name", "text"], 3: ["namespace", "text"], 11: ["labels", "map"], 12: ["annotations", "map"] },
] as const;
const MESSAGES: Readonly<Record<string, Message>> = {
  Namespace: { 1: metadata },
  ConfigMap: { 1: metadata, 2: ["data", "map"] },
};

/** What all bodies are wrapped in: runtime.Unknown behind four bytes of magic. */
const MAGIC = "k8s\0";
const ENVELOPE: Message = { 1: ["type", { 1: ["apiVersion", "text"], 2: ["kind", "text"] }], 2: ["raw", "bytes"] };

function readVarint(bytes: Buffer, at: number): [value: number, next: number] {
  let value = 0;
  for (let i = at, scale = 1; i < bytes.length; i++, scale *= 128) {
    const byte = bytes[i] ?? 0;
    value += (byte & 127) * scale;
    if (byte < 128) return [value, i + 1];
  }
  throw refusal("BadRequest", "unexpected EOF");
}

/** The fields of a message whose values have a length; numbers and flags are passed over. */
function* rawFields(bytes: Buffer): Generator<[field: number, value: Buffer]> {
  for (let at = 0; at < bytes.length;) {
    const [key, next] = readVarint(bytes, at);
    const [length, start] = readVarint(bytes, next);
    const isLong = (key & 7) === 2;
    if (isLong) yield [key >> 3, bytes.subarray(start, start + length)];
    at = isLong ? start + length : start;
  }
}

function decodeMessage(bytes: Buffer, message: Message): Fields {
  const result: Fields = {};
  for (const [field, value] of rawFields(bytes)) {
    const [name, type] = message[field] ?? [];
    if (name === undefined || value.length === 0) continue;
    if (type === "text") result[name] = value.toString();
    else if (type === "bytes") result[name] = value;
    else if (type === "map") result[name] = Object.assign({}, result[name], decodeEntry(value));
    else if (type) result[name] = decodeMessage(value, type);
  }
  return result;
}

function decodeEntry(bytes: Buffer): Record<string, string> {
  const [key, value] = [...rawFields(bytes)].map(([, text]) => text.toString());
  return { [key ?? ""]: value ?? "" };
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
