import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createTurns } from "../../../../reconciler/checks/act/turns.ts";

const never = new AbortController().signal;

/** Takes turns for these, and says which of them have one. */
function take(...kinds: readonly (readonly [name: string, dueAt: number, isTroubled?: boolean, namespace?: string])[]) {
  const turns = createTurns();
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const add = (name: string, asking: Partial<Parameters<typeof turns.take>[0]>, signal = never): Promise<void> =>
    turns.take({ dueAt: 0, isTroubled: false, namespace: "one", ...asking }, signal).then((turn) => {
      begun.push(name);
      ends.set(name, () => turn[Symbol.dispose]());
    });
  for (const [name, dueAt, isTroubled = false, namespace = "one"] of kinds)
    void add(name, { dueAt, isTroubled, namespace });
  return { begun, add, end: (name: string) => ends.get(name)?.() };
}

const many = (count: number, name: string, isTroubled: boolean) =>
  Array.from({ length: count }, (_, i) => [`${name}${i}`, i, isTroubled] as const);
const countOf = (begun: readonly string[], kind: string): number =>
  begun.filter((name) => name.startsWith(kind)).length;

describe("turns", () => {
  for (const [troubled, regular, expected] of [
    [200, 0, [8, 0]],
    [0, 200, [0, 12]],
    [200, 200, [8, 8]],
    [3, 200, [3, 12]],
  ] as const)
    it(`of ${troubled} troubled questions and ${regular} others go to ${expected.join(" and ")} of them at once`, async () => {
      const { begun } = take(...many(troubled, "troubled", true), ...many(regular, "regular", false));
      await setImmediate();
      assert.deepEqual([countOf(begun, "troubled"), countOf(begun, "regular")], expected);
    });

  it("go to the question that is overdue longest, of its kind if only that has room", async () => {
    const { begun, end } = take(
      ...many(8, "t", true),
      ...many(8, "r", false),
      ["late", 50],
      ["later", 40],
      ["latest", 30, true],
      ["last", 60, true],
    );
    for (const name of ["r0", "t0", "t1", "r1"]) {
      await setImmediate();
      end(name);
    }
    await setImmediate();
    assert.deepEqual(begun.slice(16), ["later", "latest", "late", "last"]);
  });

  it("go round the namespaces: hundreds of slow checks of one, overdue for hours, delay no other", async () => {
    const slow = many(400, "slow", false).map(([name, dueAt]) => [name, dueAt - 9_000_000, false, "tenant"] as const);
    const { begun, end } = take(...slow, ["a", 50, false, "a"], ["b", 60, false, "b"], ["a2", 40, false, "a"]);
    for (const name of ["slow0", "slow1", "slow2", "slow3", "slow4"]) {
      await setImmediate();
      end(name);
    }
    await setImmediate();
    assert.deepEqual(begun.slice(12), ["slow12", "a2", "b", "slow13", "a"]);
  });

  it("skip a namespace that only has questions for which there is no room", async () => {
    const { begun, end } = take(
      ...many(8, "t", true),
      ...many(8, "r", false),
      ["silent", 0, true, "silent"],
      ["other", 50, false, "other"],
    );
    await setImmediate();
    end("r0");
    await setImmediate();
    assert.deepEqual(begun.slice(16), ["other"]);
  });

  it("end for those whose signal fires", async () => {
    const { begun, add, end } = take(...many(12, "r", false));
    const stop = new AbortController();
    const waiting = add("gone", {}, stop.signal);
    stop.abort();
    await assert.rejects(waiting, { code: "Cancelled" });
    await assert.rejects(add("late", {}, stop.signal), { code: "Cancelled" });
    end("r0");
    await setImmediate();
    assert.equal(begun.length, 12);
  });
});
