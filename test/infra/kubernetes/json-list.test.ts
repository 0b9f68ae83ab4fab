import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { createJsonListDecoder } from "../../../infra/kubernetes/json-list.ts";

/** The list as it is decoded from a text that arrives in pieces of this size. */
function decode(text: string, size: number) {
  const [bytes, decoder] = [Buffer.from(text), createJsonListDecoder<unknown>()];
  const items: unknown[] = [];
  for (let at = 0; at < bytes.length; at += size)
    items.push(...(decoder.read(bytes.subarray(at, at + size)).items ?? []));
  return { items, metadata: decoder.end().metadata };
}

describe("a list in JSON", () => {
  it("has every item and its metadata, wherever the network cuts it and in whatever order its fields are", () => {
    const value = fc.jsonValue({ maxDepth: 3 });
    const text = fc.oneof(fc.constantFrom('"items":[', "\\", '\\"', "]}", "zöne-😀"), fc.string());
    const item = fc.oneof(value, fc.dictionary(text, fc.oneof(value, text)));
    const list = fc.record({
      items: fc.array(item, { maxLength: 5 }),
      metadata: fc.record({ resourceVersion: text, continue: text }),
      before: value,
    });
    fc.assert(
      fc.property(list, fc.integer({ min: 1, max: 40 }), fc.boolean(), fc.boolean(), (all, size, isLast, isWide) => {
        const { before, items, metadata } = all;
        const ordered = isLast ? { before, metadata, items } : { items, metadata, before };
        const sent = JSON.stringify(ordered, undefined, isWide ? 2 : 0);
        assert.deepEqual(decode(sent, size), JSON.parse(JSON.stringify({ items, metadata })));
      }),
    );
  });

  for (const text of ["{}", '{"items":null}', '{"items":[]}', '{"items":[ \n]}', '{"other":[1,2]}'])
    it(`${JSON.stringify(text)} has no items`, () => assert.deepEqual(decode(text, 3).items, []));

  for (const text of [
    "",
    "<html>",
    '{"items":[{}',
    '{"items":[{}]',
    '{"items":[{} {}]}',
    '{"items":[1,,2]}',
    '{"items":[tru]}',
  ])
    it(`${JSON.stringify(text)} is none`, () => assert.throws(() => decode(text, 3), SyntaxError));
});
