import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ErrorCode, RolloutError } from "../../../infra/errors.ts";
import type { Cluster, Replacement } from "../../../infra/kubernetes/cluster.ts";
import { type CustomObject, rolloutGates } from "../../../infra/kubernetes/custom-resources.ts";
import { logUnwritten, type StatusChange, writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Log } from "../../../infra/log.ts";
import { make } from "../../builders/objects.ts";

const object = { namespace: "cache", name: "one", uid: "u1", resourceVersion: "7" };
const place = { namespace: "cache", name: "one", subresource: "status" };
const STORED: CustomObject = { metadata: { resourceVersion: "8" } };

/** What is called of the cluster, and of the fence by one write. */
async function write(change: Partial<StatusChange<object>>, fails?: ErrorCode) {
  const calls: (readonly [string, unknown])[] = [];
  const cluster: Pick<Cluster, "replace"> = {
    async replace<T>(_: unknown, sent: Replacement<T>) {
      calls.push(["replace", sent]);
      if (fails) throw new RolloutError(fails, "said the API server");
      return STORED as T;
    },
  };
  const tools = {
    cluster: cluster as Cluster,
    fence: { write: () => (calls.push(["fence", undefined]), {}) },
  };
  const whole = { kind: "RolloutGate", object, before: { a: 1, b: 2 }, after: { a: 3 }, ...change };
  const stored = await writeStatus(rolloutGates, whole, tools).catch((error: unknown) => {
    assert.deepEqual([hasCode(error), calls.at(-1)?.[0]], [fails, "replace"]);
    return "failed" as const;
  });
  return { stored, calls };
}

const hasCode = (error: unknown): unknown => (error instanceof RolloutError ? error.code : error);

describe("writing a status", () => {
  it("makes no call, and asks no fence, if it says the same", async () => {
    for (const change of [
      { before: { a: 1, b: { c: 1, d: 2 } }, after: { b: { d: 2, c: 1 }, a: 1, e: undefined } },
      { isSame: () => true },
    ])
      assert.deepEqual(await write(change), { stored: undefined, calls: [] });
  });

  it("replaces the status of the UID and the version that were read", async () => {
    const body = make("RolloutGate", "one", {
      namespace: "cache",
      metadata: { uid: "u1", resourceVersion: "7" },
      status: { a: 3 },
    });
    assert.deepEqual(await write({}), {
      stored: STORED,
      calls: [
        ["fence", undefined],
        ["replace", { ...place, body }],
      ],
    });
  });

  it("names no namespace of an object that has none", async () => {
    const { calls } = await write({ object: { ...object, namespace: "" } });
    const { namespace, body } = calls[1]?.[1] as { namespace?: string; body: CustomObject };
    assert.deepEqual([namespace, body.metadata], [undefined, { name: "one", uid: "u1", resourceVersion: "7" }]);
  });

  it("rejects if another writer was faster, and does not try again", async () => {
    const { stored, calls } = await write({}, "Conflict");
    assert.deepEqual([stored, calls.length], ["failed", 2]);
  });
});

describe("a status that was not written", () => {
  const CASES: readonly (readonly [ErrorCode, "debug" | "warn"])[] = [
    ["Conflict", "debug"],
    ["NotFound", "debug"],
    ["LeaseLost", "debug"],
    ["Cancelled", "debug"],
    ["Timeout", "warn"],
    ["Forbidden", "warn"],
    ["Invalid", "warn"],
  ];
  for (const [code, level] of CASES)
    it(`is logged at level ${level} after ${code}`, () => {
      const lines: string[] = [];
      const at = (of: string) => (message: string) => void lines.push(`${of}: ${message}`);
      const log: Log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
      logUnwritten(log, "it was not written", { error: new RolloutError(code, "") });
      assert.deepEqual(lines, [`${level}: it was not written`]);
    });
});
