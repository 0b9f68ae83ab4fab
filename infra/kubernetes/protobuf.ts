/**
 * Decodes protobuf of the API server to the JSON form of the same object. Each message lists the fields to decode;
 * other fields are skipped. A value of the wrong type, or one that exceeds its message, throws.
 * https://protobuf.dev/programming-guides/encoding/
 */
import { PbfReader } from "pbf";
import { formatTimestamp } from "../timestamp.ts";

export const PROTOBUF = "application/vnd.kubernetes.protobuf";

/** The decoders of a message's fields, by their numbers in generated.proto. */
export type Message = Readonly<Record<number, OnField>>;
type OnField = (into: Fields, source: Source) => void;
type Fields = Record<string, unknown>;

interface Source {
  readonly reader: PbfReader;
  readonly bytes: Buffer;
  /** Cached texts of times, by their seconds: the pods of a list share most of them. */
  readonly times: Map<number, string>;
  /**
   * Recent texts, by a hash of their bytes: most texts of a list are in all its pods, and each need be made but once.
   */
  readonly texts: (string | undefined)[];
}

/** The wire types. */
const NUMBER = 0;
const WITH_LENGTH = 2;

/** A text; omitted if empty. */
export const text =
  (name: string): OnField =>
  (into, source) => {
    const value = readText(source);
    if (value !== "") into[name] = value;
  };

/** True or false. */
export const flag =
  (name: string): OnField =>
  (into, source) =>
    void (into[name] = readNumber(source) !== 0);

export const integer =
  (name: string): OnField =>
  (into, source) =>
    void (into[name] = readNumber(source));

/** RFC 3339 in UTC, to the second; null for the zero time. */
export const time =
  (name: string): OnField =>
  (into, source) => {
    const { seconds } = readMessage(TIME, source) as { seconds?: number };
    into[name] = seconds === undefined ? null : (source.times.get(seconds) ?? nameTime(seconds, source));
  };

/** An object. */
export const object =
  (name: string, message: Message): OnField =>
  (into, source) =>
    void (into[name] = readMessage(message, source));

/** An element of a list of objects. */
export const element =
  (name: string, message: Message): OnField =>
  (into, source) => {
    const list = (into[name] ??= []) as unknown[];
    list.push(readMessage(message, source));
  };

/** An entry of a map of texts. */
export const entry =
  (name: string): OnField =>
  (into, source) => {
    const map = (into[name] ??= {}) as Fields;
    const { key = "", value = "" } = readMessage(ENTRY, source) as { key?: string; value?: string };
    map[key] = value;
  };

const TIME: Message = { 1: integer("seconds") };
const ENTRY: Message = { 1: text("key"), 2: text("value") };
// runtime.Unknown, of k8s.io/apimachinery/pkg/runtime.
const ENVELOPE = (message: Message): Message => ({
  1: object("type", { 2: text("kind") }),
  2: object("object", message),
});
const LAST_ASCII = 127;
const SLOTS = 512;
// No Buffer while modules load: browsers load this one, too, and decode nothing.
const MAGIC = "k8s\0";

/**
 * Decodes a response of the expected kind.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
 */
export function decodeResponse(bytes: Buffer, kind: string, message: Message): Fields {
  if (bytes.toString("latin1", 0, MAGIC.length) !== MAGIC)
    throw new Error("it does not begin as protobuf of Kubernetes does");
  const reader = new PbfReader(bytes);
  reader.pos = MAGIC.length;
  const { type, object } = readFields(ENVELOPE(message), {
    reader,
    bytes,
    times: new Map(),
    texts: [],
  }) as {
    type?: { kind?: string };
    object?: Fields;
  };
  if (type?.kind !== kind) throw new Error(`it is a ${type?.kind?.slice(0, 100)}, not a ${kind}`);
  if (!object) throw new Error(`the ${kind} is missing`);
  return object;
}

function readMessage(message: Message, source: Source): Fields {
  const { reader } = source;
  const outerEnd = reader.length;
  reader.length = endOfValue(reader);
  const fields = readFields(message, source);
  reader.length = outerEnd;
  return fields;
}

function readFields(message: Message, source: Source): Fields {
  const { reader } = source;
  const into: Fields = {};
  for (let field = reader.nextField(); field !== 0; field = reader.nextField()) message[field]?.(into, source);
  if (reader.pos !== reader.length) throw new Error("a value reaches beyond its message");
  return into;
}

function readText({ reader, bytes, texts }: Source): string {
  const end = endOfValue(reader);
  const start = reader.pos;
  reader.pos = end;
  if (start === end) return "";
  const [first = 0, middle = 0, last = 0] = [bytes[start], bytes[(start + end) >> 1], bytes[end - 1]];
  const slot = (first * 7 + middle * 31 + last + end - start) % SLOTS;
  const recent = texts[slot];
  if (recent !== undefined && recent.length === end - start && isAscii(recent, bytes, start)) return recent;
  const made = bytes.toString("utf8", start, end);
  texts[slot] = made;
  return made;
}

/** True if the bytes from `start` on are those of the text, all of them ASCII. */
function isAscii(text: string, bytes: Buffer, start: number): boolean {
  for (let at = 0; at < text.length; at++) {
    const byte = bytes[start + at] ?? 0;
    if (byte > LAST_ASCII || byte !== text.charCodeAt(at)) return false;
  }
  return true;
}

function readNumber({ reader }: Source): number {
  if (reader.type !== NUMBER) throw new Error("a value is not the number that it should be");
  return reader.readVarint(true);
}

function nameTime(seconds: number, { times }: Source): string {
  const name = formatTimestamp(seconds * 1000);
  times.set(seconds, name);
  return name;
}

function endOfValue(reader: PbfReader): number {
  const length = reader.type === WITH_LENGTH ? reader.readVarint() : Infinity;
  const end = reader.pos + length;
  if (end > reader.length) throw new Error("a value reaches beyond its message");
  return end;
}
