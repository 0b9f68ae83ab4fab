/** The watch as a stream of hints that may be cut anywhere. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Hint } from "../../../infra/kubernetes/watch.ts";
import { pods } from "../../../infra/kubernetes/resources.ts";
import { splitLines } from "../../../infra/kubernetes/watch.ts";
import { failure, type Reply, reset, silence, stage } from "../stage.ts";

interface Event {
  readonly type: string;
  readonly object: unknown;
}

const BORN = { creationTimestamp: "2026-01-01T00:00:00Z", generation: 3 };

const event = (type: string, name: string, resourceVersion: string): Event => ({
  type,
  object: {
    kind: "PartialObjectMetadata",
    metadata: { namespace: "cache", name, resourceVersion, ...BORN, annotations: { who: "Zoë" } },
  },
});
const bookmark: Event = {
  type: "BOOKMARK",
  object: { kind: "PartialObjectMetadata", metadata: { resourceVersion: "12" } },
};
const tooOld: Event = {
  type: "ERROR",
  object: {
    kind: "Status",
    status: "Failure",
    code: 410,
    reason: "Expired",
    message: "too old resource version: 1 (9)",
  },
};
const lines = (...events: readonly Event[]): string => events.map((one) => `${JSON.stringify(one)}\n`).join("");

async function hintsOf(cluster: Cluster, signal = new AbortController().signal, version = "7"): Promise<Hint[]> {
  const hints: Hint[] = [];
  await cluster.watch(
    pods,
    { namespace: "cache", labelSelector: "a=b", resourceVersion: version },
    { onHint: (hint) => hints.push(hint), signal },
  );
  return hints;
}

describe("a watch", () => {
  it("turns events into hints, bookmarks included, until the server ends it", async () => {
    const { cluster } = await stage([
      (response) =>
        response.end(
          lines(event("ADDED", "p", "8"), event("MODIFIED", "p", "9"), bookmark, event("DELETED", "p", "13")),
        ),
    ]);
    const own = { namespace: "cache", name: "p", createdAt: "2026-01-01T00:00:00Z", generation: 3 };
    assert.deepEqual(await hintsOf(cluster), [
      { type: "ADDED", ...own, resourceVersion: "8" },
      { type: "MODIFIED", ...own, resourceVersion: "9" },
      { type: "BOOKMARK", namespace: "", name: "", resourceVersion: "12", createdAt: "", generation: 0 },
      { type: "DELETED", ...own, resourceVersion: "13" },
    ]);
  });

  it("requests metadata only, bookmarks, events from the version on, and a bounded duration", async () => {
    const { cluster, seen } = await stage([(response) => response.end()]);
    await hintsOf(cluster);
    const [one] = seen;
    const { watch, allowWatchBookmarks, resourceVersion, labelSelector, timeoutSeconds } = one?.query ?? {};
    assert.deepEqual(
      [watch, allowWatchBookmarks, resourceVersion, labelSelector, timeoutSeconds],
      ["true", "true", "7", "a=b", "300"],
    );
    assert.match(one?.headers.accept ?? "", /^application\/json;as=PartialObjectMetadata;g=meta\.k8s\.io;v=v1/);
  });

  it("gives whole objects to whom wants them, before the hint, and no bookmarks", async () => {
    const { cluster, seen } = await stage([
      (response) => response.end(lines(event("ADDED", "p", "8"), bookmark, event("DELETED", "p", "13"))),
    ]);
    const told: string[] = [];
    await cluster.watch(
      pods,
      { namespace: "cache", resourceVersion: "7" },
      {
        onHint: ({ type }) => void told.push(`hint ${type}`),
        onObject: (type, { metadata }) => void told.push(`${type} ${metadata?.annotations?.["who"]}`),
        signal: new AbortController().signal,
      },
    );
    assert.deepEqual(told, ["ADDED Zoë", "hint ADDED", "hint BOOKMARK", "DELETED Zoë", "hint DELETED"]);
    assert.equal(seen[0]?.headers.accept, "application/json");
  });

  it("gives a hint as soon as its line is there, not when the next comes", async () => {
    const stop = new AbortController();
    const { cluster } = await stage([
      (response) => void response.writeHead(200).write(lines(event("ADDED", "p", "8"))),
    ]);
    const hints: Hint[] = [];
    const take = (hint: Hint): void => {
      hints.push(hint);
      stop.abort();
    };
    await cluster.watch(pods, { namespace: "cache", resourceVersion: "7" }, { onHint: take, signal: stop.signal });
    assert.equal(hints.length, 1);
  });

  it("ends quietly when the caller has had enough, at any stage", async () => {
    const open: Reply = (response) => response.flushHeaders();
    for (const reply of [silence, open]) {
      const stop = new AbortController();
      const { cluster } = await stage([(response, seen) => (reply(response, seen), setImmediate(() => stop.abort()))]);
      assert.deepEqual(await hintsOf(cluster, stop.signal), []);
    }
    const { cluster, seen } = await stage([silence]);
    assert.deepEqual(await hintsOf(cluster, AbortSignal.abort()), []);
    assert.equal(seen.length, 0);
  });
});

const ENDS: readonly [name: string, Reply, code: string][] = [
  ["a version that is too old, said in the stream", (response) => response.end(lines(tooOld)), "Expired"],
  ["a version that is too old, said at once", failure(410, "Expired", "too old"), "Expired"],
  ["no permission", failure(403, "Forbidden", "no"), "Forbidden"],
  [
    "an error of the server in the stream",
    (response) => response.end(lines({ type: "ERROR", object: { kind: "Status", status: "Failure", code: 500 } })),
    "ServerError",
  ],
  ["a connection cut before the stream", reset, "Unreachable"],
  [
    "a connection cut in a line",
    (response) => response.write('{"type":"ADD', () => response.socket?.destroy()),
    "Unreachable",
  ],
  ["a line that is no JSON", (response) => response.end("<html>\n"), "ServerError"],
];

describe("a watch that fails", () => {
  for (const [name, reply, code] of ENDS) {
    it(`for ${name} rejects with ${code}`, async () => {
      const { cluster } = await stage([reply]);
      await assert.rejects(hintsOf(cluster), (error: Error & { code?: string }) => {
        assert.equal(error.code, code);
        assert.match(error.message, /^watch pods cache: /);
        return true;
      });
    });
  }

  it("to open within the deadline rejects with Timeout", async () => {
    const { cluster } = await stage([silence], { timeoutMs: 50 });
    await assert.rejects(hintsOf(cluster), { code: "Timeout" });
  });
});

describe("splitting a stream into lines", () => {
  it("gives the same lines wherever the bytes are cut, within a character too", () => {
    const line = fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => !text.includes("\n"));
    fc.assert(
      fc.property(fc.array(line), fc.infiniteStream(fc.integer({ min: 1, max: 7 })), (texts, sizes) => {
        const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(""));
        const split = splitLines();
        const found: string[] = [];
        for (let at = 0; at < bytes.length;) {
          const size = sizes.next().value ?? 1;
          found.push(...split(bytes.subarray(at, at + size)));
          at += size;
        }
        // A byte order mark at the very start is not text.
        assert.deepEqual(
          found,
          texts.map((text, index) => (index === 0 ? text.replace(/^\uFEFF/, "") : text)).filter((text) => text !== ""),
        );
      }),
    );
  });
});
