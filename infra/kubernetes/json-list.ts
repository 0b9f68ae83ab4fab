/**
 * Decodes a list in JSON as it arrives, so that a long list of large objects is never in memory as a whole: each item is
 * parsed once its last byte is there. What surrounds the items is kept, and parsed at the end.
 */
import type { Decoder } from "./protobuf.ts";
import type { ListBody } from "./resources.ts";

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [BRACKET, BRACE, END_BRACKET, END_BRACE] = [0x5b, 0x7b, 0x5d, 0x7d];
/** The depth of the items' list inside the object of the response. */
const IN_ITEMS = 2;
const ITEMS_BEGIN = /(?<!\\)"items"\s*:\s*$/;

/** A decoder of one list, or of one page. Its metadata come at the end. */
export function createJsonListDecoder<T>(): Decoder<ListBody<T>> {
  const around: Buffer[] = [];
  /** The beginning of an item of which the rest has not arrived. */
  let begun: Buffer[] = [];
  let depth = 0;
  let isInText = false;
  let isEscaped = false;
  let isInItems = false;
  let isFirst = true;

  function parseItem(end: Buffer, into: T[]): void {
    const text = (begun.length === 0 ? end : Buffer.concat([...begun, end])).toString();
    begun = [];
    const isEmptyList = isFirst && text.trim() === "";
    isFirst = false;
    if (!isEmptyList) into.push(JSON.parse(text) as T);
  }

  function readItems(bytes: Buffer): T[] {
    const items: T[] = [];
    let from = 0;
    for (let at = isInText ? skipText(bytes, 0) + 1 : 0; at < bytes.length; at++) {
      const byte = bytes[at];
      const found = readMark(byte);
      if (isInText) at = skipText(bytes, at + 1);
      else if (found === "list" && ITEMS_BEGIN.test(textAround(bytes.subarray(from, at)))) {
        around.push(bytes.subarray(from, at + 1));
        [isInItems, from] = [true, at + 1];
      } else if (found === "item") {
        parseItem(bytes.subarray(from, at), items);
        isInItems = byte === COMMA;
        from = isInItems ? at + 1 : at;
      }
    }
    (isInItems ? begun : around).push(bytes.subarray(from));
    return items;
  }

  /** The index of the quote that ends the text, or one behind the bytes. Most bytes are in texts. */
  function skipText(bytes: Buffer, start: number): number {
    let at = isEscaped ? start + 1 : start;
    while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
    isEscaped = at > bytes.length;
    isInText = at >= bytes.length;
    return at;
  }

  /** Says if a list begins here that may be the items', or an item ends. */
  function readMark(byte: number | undefined): "list" | "item" | undefined {
    if (byte === BRACKET || byte === BRACE) depth++;
    if (byte === END_BRACKET || byte === END_BRACE) depth--;
    if (byte === BRACKET && depth === IN_ITEMS) return "list";
    if (byte === QUOTE) isInText = true;
    return isInItems && endsItem(byte) ? "item" : undefined;
  }

  const endsItem = (byte: number | undefined): boolean => depth < IN_ITEMS || (byte === COMMA && depth === IN_ITEMS);

  const textAround = (more: Buffer): string => Buffer.concat([...around, more]).toString();

  return {
    read: (bytes) => ({ items: readItems(bytes) }),
    end() {
      const { metadata } = JSON.parse(textAround(Buffer.alloc(0))) as ListBody<T>;
      return { ...(metadata && { metadata }) };
    },
  };
}
