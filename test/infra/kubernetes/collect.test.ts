import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readEach } from "../../../infra/kubernetes/collect.ts";

/** Reads the name; "bad" ones fail with it. */
const read = (namespace: string): Promise<string> =>
  namespace.startsWith("bad") ? Promise.reject(new Error(namespace)) : Promise.resolve(namespace);

describe("reading each namespace", () => {
  it("reads those beside one that cannot be read, in their order", async () => {
    const { results, failures } = await readEach(["a", "bad", "b"], read);
    assert.deepEqual(results, ["a", "b"]);
    assert.deepEqual(
      [...failures].map(([namespace, error]) => [namespace, String(error)]),
      [["bad", "Error: bad"]],
    );
  });

  it("rejects with the first error if none can be read", () =>
    assert.rejects(readEach(["bad1", "bad2"], read), /^Error: bad1$/));

  it("rejects at once with an error that is for all", () =>
    assert.rejects(
      readEach(["a", "bad", "b"], read, () => true),
      /^Error: bad$/,
    ));

  it("reads nothing without namespaces", async () =>
    assert.deepEqual(await readEach([], read), { results: [], failures: new Map() }));
});
