import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { jsonPatch, mergePatch, strategicPatch } from "./patch.ts";

const MERGES: readonly [title: string, target: unknown, patch: unknown, result: unknown][] = [
  ["sets and keeps", { a: 1, b: 2 }, { b: 3 }, { a: 1, b: 3 }],
  ["null removes", { a: { b: 1, c: 2 } }, { a: { b: null } }, { a: { c: 2 } }],
  ["lists are replaced", { a: [1, 2] }, { a: [3] }, { a: [3] }],
  ["an object over a text", { a: "x" }, { a: { b: 1 } }, { a: { b: 1 } }],
];

for (const [title, target, patch, result] of MERGES)
  test(`merge patch: ${title}`, () => assert.deepEqual(mergePatch(target, patch), result));

const JSON_PATCHES: readonly [title: string, target: unknown, patch: unknown, result: unknown][] = [
  ["add to a list's end", { a: [1] }, [{ op: "add", path: "/a/-", value: 2 }], { a: [1, 2] }],
  ["add in front", { a: [1] }, [{ op: "add", path: "/a/0", value: 0 }], { a: [0, 1] }],
  ["remove", { a: { b: 1, c: 2 } }, [{ op: "remove", path: "/a/b" }], { a: { c: 2 } }],
  [
    "replace by escaped path",
    { "a/b": { "~": 1 } },
    [{ op: "replace", path: "/a~1b/~0", value: 2 }],
    { "a/b": { "~": 2 } },
  ],
  ["move", { a: 1 }, [{ op: "move", from: "/a", path: "/b" }], { b: 1 }],
  ["copy", { a: 1 }, [{ op: "copy", from: "/a", path: "/b" }], { a: 1, b: 1 }],
  ["a test that holds", { a: [1] }, [{ op: "test", path: "/a", value: [1] }], { a: [1] }],
];

for (const [title, target, patch, result] of JSON_PATCHES)
  test(`JSON patch: ${title}`, () => assert.deepEqual(jsonPatch(target, patch), result));

const UNFIT: readonly [title: string, patch: unknown][] = [
  ["removing what is not there", [{ op: "remove", path: "/x" }]],
  ["a parent that is not there", [{ op: "add", path: "/x/y", value: 1 }]],
  ["an index beyond the list", [{ op: "add", path: "/list/2", value: 1 }]],
  ["a test that fails", [{ op: "test", path: "/a", value: 2 }]],
  ["an operation that is none", [{ op: "frob", path: "/a" }]],
  ["no list at all", { op: "remove", path: "/a" }],
];

for (const [title, patch] of UNFIT)
  test(`JSON patch refuses ${title}`, () =>
    assert.throws(() => jsonPatch({ a: 1, list: [0] }, patch), { message: /our request due to an error/ }));

const containers = (...names: string[]): object => ({
  containers: names.map((name) => ({ name, image: `${name}:1` })),
});

const STRATEGIC: readonly [title: string, target: unknown, patch: unknown, result: unknown][] = [
  [
    "a container's image by its name",
    containers("a", "b"),
    { containers: [{ name: "b", image: "b:2" }] },
    {
      containers: [
        { name: "a", image: "a:1" },
        { name: "b", image: "b:2" },
      ],
    },
  ],
  [
    "$patch delete of an item",
    containers("a", "b"),
    { containers: [{ name: "a", $patch: "delete" }] },
    containers("b"),
  ],
  [
    "$patch replace of a list",
    containers("a", "b"),
    { containers: [{ $patch: "replace" }, { name: "c" }] },
    { containers: [{ name: "c" }] },
  ],
  [
    "$patch replace of a map",
    { labels: { a: "1" } },
    { labels: { $patch: "replace", b: "2" } },
    { labels: { b: "2" } },
  ],
  ["new items come first", { env: [{ name: "A" }] }, { env: [{ name: "B" }] }, { env: [{ name: "B" }, { name: "A" }] }],
  [
    "$setElementOrder",
    { env: [{ name: "A" }, { name: "B" }] },
    { $setElementOrder: 0, "$setElementOrder/env": [{ name: "B" }, { name: "A" }], env: [{ name: "A", value: "1" }] },
    { env: [{ name: "B" }, { name: "A", value: "1" }] },
  ],
  [
    "conditions by type",
    { conditions: [{ type: "Ready", status: "False" }] },
    { conditions: [{ type: "Ready", status: "True" }] },
    { conditions: [{ type: "Ready", status: "True" }] },
  ],
  ["finalizers as a set", { finalizers: ["a", "c"] }, { finalizers: ["b", "a"] }, { finalizers: ["b", "a", "c"] }],
  [
    "$deleteFromPrimitiveList",
    { finalizers: ["a", "b"] },
    { "$deleteFromPrimitiveList/finalizers": ["a"] },
    { finalizers: ["b"] },
  ],
  [
    "container ports by containerPort",
    { ports: [{ containerPort: 80 }] },
    { ports: [{ containerPort: 80, name: "web" }] },
    { ports: [{ containerPort: 80, name: "web" }] },
  ],
  [
    "tolerations are one value",
    { tolerations: [{ key: "a" }] },
    { tolerations: [{ key: "b" }] },
    { tolerations: [{ key: "b" }] },
  ],
];

for (const [title, target, patch, result] of STRATEGIC)
  test(`strategic patch: ${title}`, () => assert.deepEqual(strategicPatch(target, patch), result));

test("no patch mutates its arguments, and a merge patch that is applied twice has the effect of one", () => {
  const tree = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(tree, tree, (target, patch) => {
      const before = structuredClone(target);
      mergePatch(target, patch);
      strategicPatch(target, patch);
      assert.deepEqual(target, before);
      assert.deepEqual(mergePatch(mergePatch(target, patch), patch), mergePatch(target, patch));
    }),
    { numRuns: 200 },
  );
});
