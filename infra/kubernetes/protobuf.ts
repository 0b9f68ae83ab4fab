/**
 * Decodes lists of pods, and failures, from protobuf of the API server to the JSON form of the same object. Each message
 * lists the fields to decode; other fields are skipped. A value of the wrong type, or one that exceeds its message, throws.
 * https://protobuf.dev/programming-guides/encoding/
 */
import { PbfReader } from "pbf";
import { formatTimestamp, LAST_SECOND } from "../timestamp.ts";

export const PROTOBUF = "application/vnd.kubernetes.protobuf";

/** The decoders of a message's fields, by their numbers in generated.proto. */
type Message = Readonly<Record<number, OnField>>;
type OnField = (into: Fields, source: Source) => void;
type Fields = Record<string, unknown>;

interface Source {
  readonly reader: PbfReader;
  readonly bytes: Buffer;
  /** Cached texts of times, by their seconds: the pods of a list share most of them. */
  readonly times: Map<number, string>;
  /**
   * Recent texts, by a hash of their bytes: most texts of a list are in all its pods, and each needs to be made only
   * once.
   */
  readonly texts: (string | undefined)[];
}

const NUMBER = 0;
const WITH_LENGTH = 2;

/** A text; omitted if empty. */
const text =
  (name: string): OnField =>
  (into, source) => {
    const value = readText(source);
    if (value !== "") into[name] = value;
  };

const flag =
  (name: string): OnField =>
  (into, source) =>
    void (into[name] = readNumber(source) !== 0);

const integer =
  (name: string): OnField =>
  (into, source) =>
    void (into[name] = readNumber(source));

/** RFC 3339 in UTC, to the second; null for the zero time. */
const time =
  (name: string): OnField =>
  (into, source) => {
    const { seconds } = readMessage(TIME, source) as { seconds?: number };
    into[name] = seconds === undefined ? null : (source.times.get(seconds) ?? nameTime(seconds, source));
  };

const object =
  (name: string, message: Message): OnField =>
  (into, source) =>
    void (into[name] = readMessage(message, source));

const element =
  (name: string, message: Message): OnField =>
  (into, source) => {
    const list = (into[name] ??= []) as unknown[];
    list.push(readMessage(message, source));
  };

const entry =
  (name: string): OnField =>
  (into, source) => {
    const map = (into[name] ??= {}) as Fields;
    const { key = "", value = "" } = readMessage(ENTRY, source) as { key?: string; value?: string };
    map[key] = value;
  };

const TIME: Message = { 1: integer("seconds") };
const ENTRY: Message = { 1: text("key"), 2: text("value") };
// runtime.Unknown, of k8s.io/apimachinery/pkg/runtime.
const ENVELOPE: Message = { 1: object("type", { 2: text("kind") }) };
const OBJECT_FIELD = 2;
/** Bytes of a field's number and length together, at most. */
const HEAD_BYTES = 20;
const LAST_ASCII = 127;
const SLOTS = 512;
/** Bytes of a text that is cached, at most: a pod's annotations may have 256 KiB. */
const CACHED_BYTES = 256;
const MAGIC = "k8s\0";

/**
 * Decodes a response of the expected kind.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
 */
function decodeResponse(bytes: Buffer, kind: string, message: Message): Fields {
  const decoder = createDecoder(kind, message);
  const object = decoder.read(bytes);
  decoder.end();
  return object;
}

/** Decodes a response as it arrives, so that a long list is never in memory as a whole. */
export interface Decoder<T = Fields> {
  /** The fields of the object that these bytes complete. Throws as soon as the response cannot be of the kind. */
  readonly read: (bytes: Buffer) => T;
  /** The fields that only the end completes. Throws unless the object is complete. */
  readonly end: () => T;
}

function createDecoder(kind: string, message: Message): Decoder {
  const times: Source["times"] = new Map();
  const texts: Source["texts"] = [];
  const envelope: Fields = {};
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let neededBytes = MAGIC.length;
  let hasBegun = false;
  let hasObject = false;
  let isInside = false;
  /** Bytes of the object that are still to be read; Infinity in the envelope, whose end is not known. */
  let left = Infinity;

  function read(bytes: Buffer, isLast: boolean): Fields {
    const into: Fields = {};
    waiting.push(bytes);
    waitingBytes += bytes.length;
    if (waitingBytes < neededBytes && !isLast) return into;
    const all = waiting.length === 1 ? bytes : Buffer.concat(waiting);
    const source = { reader: new PbfReader(all), bytes: all, times, texts };
    neededBytes = 1;
    if (!hasBegun) begin(source);
    let at = source.reader.pos;
    while (at < all.length) {
      const missing = readField(source, into, isLast);
      if (missing > 0) {
        neededBytes = missing;
        break;
      }
      at = source.reader.pos;
    }
    // A copy: a slice would keep what was read.
    waiting = at < all.length ? [Buffer.from(all.subarray(at))] : [];
    waitingBytes = all.length - at;
    return into;
  }

  function begin({ reader, bytes }: Source): void {
    if (bytes.toString("latin1", 0, MAGIC.length) !== MAGIC)
      throw new Error("it does not begin as protobuf of Kubernetes does");
    reader.pos = MAGIC.length;
    hasBegun = true;
  }

  /** Reads a field of the envelope or of the object. Returns the bytes that an incomplete field needs; otherwise 0. */
  function readField(source: Source, into: Fields, isLast: boolean): number {
    const { reader, bytes } = source;
    const start = reader.pos;
    reader.length = Math.min(bytes.length, start + left);
    if (!isLast && !hasHead(bytes, start, left)) return bytes.length - start + 1;
    const field = reader.nextField();
    const end = peekEnd(reader);
    if (end - start > left || (isLast && end > bytes.length)) throw tooLong();
    if (!isInside && field === OBJECT_FIELD) return enter(reader);
    if (end > bytes.length) return end - start;
    readValue(source, field, into);
    reader.pos = end;
    if (isInside) goOn(left - (end - start));
    return 0;
  }

  /** Reads the value of a complete field; skips an unknown field. */
  function readValue(source: Source, field: number, into: Fields): void {
    if (isInside) message[field]?.(into, source);
    else ENVELOPE[field]?.(envelope, source);
  }

  function enter(reader: PbfReader): 0 {
    confirmKind();
    hasObject = true;
    const length = reader.type === WITH_LENGTH ? reader.readVarint() : Infinity;
    if (length === Infinity) throw tooLong();
    goOn(length);
    return 0;
  }

  /** Continues with the rest of the object, or after it. */
  function goOn(bytes: number): void {
    isInside = bytes > 0;
    left = isInside ? bytes : Infinity;
  }

  function confirmKind(): void {
    const found = (envelope["type"] as { kind?: string } | undefined)?.kind;
    if (found !== kind) throw new Error(`it is a ${found?.slice(0, 100)}, not a ${kind}`);
  }

  return {
    read: (bytes) => read(bytes, false),
    end() {
      const rest = read(Buffer.alloc(0), true);
      confirmKind();
      if (!hasObject) throw new Error(`the ${kind} is missing`);
      if (isInside) throw tooLong();
      return rest;
    },
  };
}

/**
 * True if the bytes from `start` on contain a field's number, and its length or number. The message ends after `left`
 * bytes.
 */
function hasHead(bytes: Buffer, start: number, left: number): boolean {
  if (bytes.length - start >= Math.min(HEAD_BYTES, left)) return true;
  const type = (bytes[start] ?? 0) & 7;
  let missing = type === NUMBER || type === WITH_LENGTH ? 2 : 1;
  for (let at = start; at < bytes.length && missing > 0; at++) if ((bytes[at] ?? 0) <= LAST_ASCII) missing--;
  return missing === 0;
}

/** The end of the field whose number has been read; beyond the bytes if the field is incomplete. */
function peekEnd(reader: PbfReader): number {
  const at = reader.pos;
  reader.skip(reader.type);
  const end = reader.pos;
  reader.pos = at;
  return end;
}

const tooLong = (): Error => new Error("a value reaches beyond its message");

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
  if (reader.pos !== reader.length) throw tooLong();
  return into;
}

function readText({ reader, bytes, texts }: Source): string {
  const end = endOfValue(reader);
  const start = reader.pos;
  reader.pos = end;
  if (start === end) return "";
  if (end - start > CACHED_BYTES) return bytes.toString("utf8", start, end);
  const [first = 0, middle = 0, last = 0] = [bytes[start], bytes[(start + end) >> 1], bytes[end - 1]];
  const slot = (first * 7 + middle * 31 + last + end - start) % SLOTS;
  const recent = texts[slot];
  if (recent !== undefined && recent.length === end - start && isAscii(recent, bytes, start)) return recent;
  const made = bytes.toString("utf8", start, end);
  texts[slot] = made;
  return made;
}

/** True if the bytes from `start` on spell the text, all of them ASCII. */
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
  if (Math.abs(seconds) > LAST_SECOND) throw new Error("a time is out of range");
  const name = formatTimestamp(seconds * 1000);
  times.set(seconds, name);
  return name;
}

function endOfValue(reader: PbfReader): number {
  const length = reader.type === WITH_LENGTH ? reader.readVarint() : Infinity;
  const end = reader.pos + length;
  if (end > reader.length) throw tooLong();
  return end;
}

// The messages. The field numbers are those of k8s.io/api/core/v1/generated.proto and
// k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto; every field that is read is also in the type `PodObject`.

const OWNER: Message = {
  1: text("kind"),
  3: text("name"),
  4: text("uid"),
  5: text("apiVersion"),
  6: flag("controller"),
};

const METADATA: Message = {
  1: text("name"),
  3: text("namespace"),
  5: text("uid"),
  6: text("resourceVersion"),
  8: time("creationTimestamp"),
  9: time("deletionTimestamp"),
  11: entry("labels"),
  12: entry("annotations"),
  13: element("ownerReferences", OWNER),
};

const CONDITION: Message = { 1: text("type"), 2: text("status"), 4: time("lastTransitionTime"), 5: text("reason") };

const CONTAINER: Message = {
  2: object("state", { 1: object("waiting", { 1: text("reason") }), 2: object("running", { 1: time("startedAt") }) }),
  4: flag("ready"),
  5: integer("restartCount"),
  6: text("image"),
};

const POD_STATUS: Message = {
  1: text("phase"),
  2: element("conditions", CONDITION),
  7: time("startTime"),
  8: element("containerStatuses", CONTAINER),
  10: element("initContainerStatuses", CONTAINER),
};

const LIST_METADATA: Message = { 2: text("resourceVersion"), 3: text("continue"), 4: integer("remainingItemCount") };
const POD: Message = { 1: object("metadata", METADATA), 3: object("status", POD_STATUS) };
const POD_LIST: Message = { 1: object("metadata", LIST_METADATA), 2: element("items", POD) };
const STATUS: Message = { 2: text("status"), 3: text("message"), 4: text("reason"), 6: integer("code") };

/** A decoder of one list of pods, or of one page. */
export const createPodListDecoder = (): Decoder => createDecoder("PodList", POD_LIST);

/** Decodes a metav1.Status; throws if `bytes` is none. */
export function decodeStatus(bytes: Buffer): unknown {
  return decodeResponse(bytes, "Status", STATUS);
}
