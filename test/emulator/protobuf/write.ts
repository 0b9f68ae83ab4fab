/**
 * Objects in protobuf, as an API server writes them: texts that are not set are written as empty ones, times as empty
 * messages.
 */
import { PbfWriter } from "pbf";
import { type Fields, fieldsOf, plainText } from "../objects.ts";
import { type Field, FIELDS, isMessage, type MessageName, type Scalar } from "./messages.ts";

/** What an answer in protobuf begins with. */
const MAGIC = Buffer.from("k8s\0");
const LENGTH_DELIMITED = 2;

/** An answer: `k8s\0`, then a runtime.Unknown with the message in it, which may come in parts and is copied once. */
export function seal(kind: MessageName, ...parts: readonly Uint8Array[]): Buffer {
  const head = new PbfWriter();
  head.writeMessage(1, writeTexts, ["v1", kind]);
  head.writeTag(2, LENGTH_DELIMITED);
  head.writeVarint(parts.reduce((sum, { length }) => sum + length, 0));
  return Buffer.concat([MAGIC, head.finish(), ...parts]);
}

/** The object as a message; throws if it has fields that the table has not. */
export function writeMessage(name: MessageName, object: unknown): Uint8Array {
  const unknown = unknownFields(name, fieldsOf(object));
  if (unknown.length > 0) throw new Error(`no numbers are known of ${unknown.join(", ")}`);
  const writer = new PbfWriter();
  writeFields(writer, name, fieldsOf(object));
  return writer.finish();
}

/** Paths of what the tables have no number of. */
export function unknownFields(name: MessageName, object: Fields): string[] {
  const known = knownFields(name);
  return Object.entries(object).flatMap(([key, value]) => {
    const type = known.get(key)?.type;
    if (type === undefined) return value === undefined ? [] : `${name}.${key}`;
    return isMessage(type) ? [value].flat().flatMap((one) => unknownFields(type, fieldsOf(one))) : [];
  });
}

/** By their names in JSON. */
function knownFields(name: MessageName): Map<string, Field> {
  const spread = (key: string, field: Field) =>
    field.inline && isMessage(field.type) ? [...knownFields(field.type)] : [[key, field] as const];
  return new Map([...FIELDS[name]].flatMap(([key, field]) => spread(key, field)));
}

/** One element of a list, as it stands in the list. */
export function writeItem(name: MessageName, list: string, item: Fields): Buffer {
  return Buffer.from(writeMessage(name, { [list]: [item] }));
}

function writeFields(writer: PbfWriter, name: MessageName, object: Fields): void {
  for (const [key, field] of FIELDS[name]) {
    const { type, number, inline } = field;
    if (!isMessage(type)) SCALARS[type](writer, number, object[key]);
    else
      for (const one of inline ? [object] : listed(object[key]))
        writer.writeMessage(number, (value, inner) => writeFields(inner, type, value), fieldsOf(one));
  }
}

const listed = (value: unknown): readonly unknown[] => (value === undefined || value === null ? [] : [value].flat());

const SCALARS: Readonly<Record<Scalar, (writer: PbfWriter, number: number, value: unknown) => void>> = {
  text: (writer, number, value) => writeText(writer, number, plainText(value)),
  list: (writer, number, value) => listed(value).forEach((one) => writeText(writer, number, plainText(one))),
  int: (writer, number, value) => void (value === undefined || writer.writeVarintField(number, Number(value))),
  flag: (writer, number, value) => void (value === undefined || writer.writeBooleanField(number, value === true)),
  time: (writer, number, value) => void (value === undefined || writer.writeMessage(number, writeTime, value)),
  map: (writer, number, value) =>
    Object.entries(fieldsOf(value)).forEach((entry) => writer.writeMessage(number, writeTexts, entry.map(plainText))),
  quantities: (writer, number, value) =>
    Object.entries(fieldsOf(value)).forEach((entry) => writer.writeMessage(number, writeQuantity, entry)),
  json: (writer, number, value) => writer.writeMessage(number, writeTexts, [JSON.stringify(value)]),
  intOrText: (writer, number, value) => writer.writeMessage(number, writeIntOrText, value),
};

// PbfWriter's own texts are wrong from U+20000 on.
function writeText(writer: PbfWriter, number: number, text: string): void {
  writer.writeBytesField(number, Buffer.from(text));
}

/** As fields 1, 2 and so on. */
function writeTexts(texts: readonly string[], writer: PbfWriter): void {
  texts.forEach((text, index) => writeText(writer, index + 1, text));
}

function writeTime(value: unknown, writer: PbfWriter): void {
  if (value !== null) writer.writeVarintField(1, Math.floor(Date.parse(plainText(value)) / 1000));
}

function writeQuantity([name, quantity]: readonly [string, unknown], writer: PbfWriter): void {
  writeText(writer, 1, name);
  writer.writeMessage(2, writeTexts, [plainText(quantity)]);
}

function writeIntOrText(value: unknown, writer: PbfWriter): void {
  const isText = typeof value === "string";
  writer.writeVarintField(1, isText ? 1 : 0);
  writer.writeVarintField(2, isText ? 0 : Number(value));
  writeText(writer, 3, isText ? value : "");
}
