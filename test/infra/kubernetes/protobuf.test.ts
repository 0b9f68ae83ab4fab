/**
 * Lists of pods in protobuf come to what they are in JSON, as far as it is read; whatever else arrives is refused, and
 * at once.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { PbfWriter } from "pbf";
import { createPodListDecoder, decodeStatus } from "../../../infra/kubernetes/protobuf.ts";
import type { ListBody, PodObject } from "../../../infra/kubernetes/resources.ts";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { podJson } from "../../bench/pod-list.ts";
import { seal, writeMessage } from "../../emulator/protobuf/write.ts";
import { podObject } from "../../builders/zones.ts";

const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
const time = fc
  .date({ min: new Date("0001-01-01T00:00:01Z"), max: new Date("9999-12-31T23:59:59Z"), noInvalidDate: true })
  .map((date) => formatTimestamp(date.getTime()));
const part = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(fields, { requiredKeys: [], noNullPrototype: true });
const list = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 1, maxLength: 3 });
const map = fc.dictionary(fc.stringMatching(/^[a-z][-a-z./]{0,20}$/), fc.string({ unit: "grapheme" }), {
  minKeys: 1,
  maxKeys: 4,
  noNullPrototype: true,
});
const container = fc.record(
  { ready: fc.boolean(), state: part({ waiting: part({ reason: text }), running: part({ startedAt: time }) }) },
  { requiredKeys: ["ready"], noNullPrototype: true },
);

const arbitraryPod = part({
  metadata: part({
    name: text,
    namespace: text,
    uid: text,
    resourceVersion: text,
    deletionTimestamp: time,
    labels: map,
    annotations: map,
    ownerReferences: list(part({ apiVersion: text, kind: text, name: text, uid: text, controller: fc.boolean() })),
  }),
  status: part({
    phase: fc.constantFrom("Running", "Pending", "Failed"),
    startTime: time,
    conditions: list(
      part({
        type: fc.constantFrom("Ready", "PodScheduled"),
        status: fc.constantFrom("True", "False"),
        lastTransitionTime: time,
        reason: text,
      }),
    ),
    containerStatuses: list(container),
    initContainerStatuses: list(container),
  }),
});

const encode = (list: object): Buffer => seal("PodList", writeMessage("PodList", list));

/** The list of a response that arrives in pieces of so many bytes, of which the last size counts for the rest. */
function decodePodList(bytes: Buffer, sizes: readonly number[] = [bytes.length]): ListBody<PodObject> {
  const decoder = createPodListDecoder();
  const list: { metadata?: object; items?: PodObject[] } = {};
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[Math.min(i, sizes.length - 1)] || 1;
    const { metadata, items } = decoder.read(bytes.subarray(at, (at += size))) as typeof list;
    if (metadata) list.metadata = metadata;
    if (items) list.items = [...(list.items ?? []), ...items];
  }
  decoder.end();
  return list;
}
const decode = (pods: readonly object[], sizes?: readonly number[]) =>
  decodePodList(encode({ metadata: {}, items: pods }), sizes).items;

/** A field that is a message. */
const nest = (field: number, bytes: Iterable<number>): Buffer =>
  Buffer.concat([Buffer.of((field << 3) | 2, [...bytes].length), Buffer.from([...bytes])]);

/** Pods as JSON has them, with nothing that is not read. */
const PODS: Readonly<Record<string, object>> = {
  "nothing at all": {},
  "empty parts": { metadata: {}, status: {} },
  names: { metadata: { name: "zone-a-0", namespace: "cache", uid: "1-2-3", resourceVersion: "42" } },
  owners: {
    metadata: {
      ownerReferences: [
        { apiVersion: "apps/v1", kind: "StatefulSet", name: "zone-a", uid: "4", controller: true },
        { apiVersion: "v1", kind: "ConfigMap", name: "c", uid: "5", controller: false },
        { apiVersion: "v1", kind: "ConfigMap", name: "d", uid: "6" },
      ],
    },
  },
  "times before 1970 and far ahead": {
    metadata: { deletionTimestamp: "1601-01-01T00:00:00Z" },
    status: { startTime: "9999-12-31T23:59:59Z" },
  },
  "times that are not set": {
    metadata: { deletionTimestamp: null },
    status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: null }] },
  },
};

describe("a list of pods in protobuf", () => {
  for (const [name, pod] of Object.entries(PODS))
    it(`reads ${name} as JSON has it`, () => {
      assert.deepEqual(decode([pod, {}, pod]), [pod, {}, pod]);
    });

  it("reads its own metadata", () => {
    const metadata = { resourceVersion: "7", continue: "eyJ2Ij==", remainingItemCount: 12_345_678_901 };
    assert.deepEqual(decodePodList(encode({ metadata })), { metadata });
  });

  it("skips fields that are not read, and keeps nothing of them", () => {
    const whole = JSON.parse(podJson(3)) as PodObject;
    const [pod] = decode([whole]) ?? [];
    assert.ok(pod);
    assert.deepEqual(readPod(pod), readPod(whole));
    assert.ok(JSON.stringify(pod).length < 1400);
  });

  it("passes over fields that are not known yet, of every wire type", () => {
    const writer = new PbfWriter();
    writer.writeVarintField(90, 2 ** 52);
    writer.writeFixed32Field(91, 1);
    writer.writeFixed64Field(92, 1);
    writer.writeStringField(93, "later");
    const pod = Buffer.concat([writer.finish(), writeMessage("Pod", PODS["names"])]);
    const list = new PbfWriter();
    list.writeBytesField(2, pod);
    assert.deepEqual(decodePodList(seal("PodList", list.finish())).items, [PODS["names"]]);
  });

  it("reads a pod as soon as its last byte is there, and its own metadata before", () => {
    const decoder = createPodListDecoder();
    const bytes = encode({ metadata: { resourceVersion: "7" }, items: [PODS["owners"], PODS["names"]] });
    const parts = [...bytes].map((byte) => decoder.read(Buffer.of(byte)));
    decoder.end();
    const read = parts.flatMap((part, at) => (Object.keys(part).length > 0 ? [[at, part] as const] : []));
    assert.deepEqual(
      read.map(([, part]) => part),
      [{ metadata: { resourceVersion: "7" } }, { items: [PODS["owners"]] }, { items: [PODS["names"]] }],
    );
    assert.equal(read.at(-1)?.[0], bytes.length - 1);
  });

  it("gives the rules the same pods as JSON, for any pods in pieces of any sizes", () => {
    const anySizes = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(arbitraryPod), anySizes, (pods, sizes) => {
        assert.deepEqual(decode(pods, sizes) ?? [], pods);
        assert.deepEqual((decode(pods) ?? []).map(readPod), (pods as PodObject[]).map(readPod));
      }),
    );
  });
});

function readOrRefuse(bytes: Buffer): unknown {
  try {
    return decodePodList(bytes);
  } catch (error) {
    assert.ok(error instanceof Error);
    return undefined;
  }
}

describe("what is no list of pods in protobuf", () => {
  const PAGE = encode({
    metadata: { resourceVersion: "7" },
    items: [podObject("zone-a", 0), podObject("zone-a", 1, { broken: "CrashLoopBackOff" })],
  });

  it("is refused wherever it is cut off", () => {
    for (let length = 0; length < PAGE.length; length++)
      for (const size of [length, 7, 1])
        assert.throws(() => decodePodList(PAGE.subarray(0, length), [size]), `${length} bytes in pieces of ${size}`);
  });

  it("is refused, or read as something else, with any of its bytes changed: neither takes long, nor more than a list does", () => {
    for (let at = 0; at < PAGE.length; at++)
      for (const byte of [0x00, 0x07, 0x7f, 0x80, 0xff]) {
        const bytes = Buffer.from(PAGE);
        bytes[at] = byte;
        const list = readOrRefuse(bytes);
        assert.ok(JSON.stringify(list ?? "").length < 4 * PAGE.length, `${at}: ${byte}`);
      }
  });

  it("is refused, or read as something else, when it is noise", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
        const list = readOrRefuse(seal("PodList", noise));
        assert.ok(JSON.stringify(list ?? "").length <= 40 * (noise.length + 1));
      }),
    );
  });

  const REFUSED: Readonly<Record<string, readonly [Buffer, RegExp]>> = {
    JSON: [Buffer.from('{"items": []}'), /does not begin/],
    nothing: [Buffer.alloc(0), /does not begin/],
    "an envelope without a message": [Buffer.from("k8s\0"), /not a PodList/],
    "an envelope without a list": [Buffer.from("6b3873000a0d0a0276311207506f644c697374", "hex"), /is missing/],
    "another kind": [seal("Status", writeMessage("Status", { code: 400 })), /a Status, not a PodList/],
    "a number where a text should be": [seal("PodList", Buffer.from([0x0a, 0x02, 0x10, 0x05])), /beyond its message/],
    "a text where a number should be": [seal("PodList", Buffer.from([0x0a, 0x03, 0x22, 0x01, 0x61])), /not the number/],
    "a text that is longer than its message": [
      seal("PodList", Buffer.from([0x0a, 0x03, 0x12, 0x7f, 0x61])),
      /beyond its message/,
    ],
    "an unread value that is longer than its message": [seal("PodList", nest(2, [0x12, 0x7f])), /beyond its message/],
    "a length of 2^63": [
      seal("PodList", Buffer.from([0x12, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01])),
      /beyond its message/,
    ],
    "a number without an end": [seal("PodList", Buffer.alloc(40, 0x80)), /varint/],
    "a time that no calendar has": [
      seal("PodList", nest(2, nest(1, nest(9, [0x08, ...Array<number>(8).fill(0xff), 0x0f])))),
      /time/,
    ],
  };
  for (const [name, [bytes, message]] of Object.entries(REFUSED))
    it(`is refused when it is ${name}`, () => {
      assert.throws(() => decodePodList(bytes), message);
    });
});

it("a failure in protobuf has its message", () => {
  const status = {
    status: "Failure",
    message: "The provided continue parameter is too old",
    reason: "Expired",
    code: 410,
  };
  assert.deepEqual(
    decodeStatus(seal("Status", writeMessage("Status", { ...status, metadata: { continue: "x" } }))),
    status,
  );
});
