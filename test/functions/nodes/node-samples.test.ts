/** What the gauges of nodes show from scrape to scrape, by the original's cases. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { createNodeSampler } from "../../../functions/nodes/show-nodes.ts";

/** The gauge of versions after the last of these scrapes: as many nodes of each version. */
function show(...scrapes: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sample = createNodeSampler();
  const shown = scrapes.map((scrape) => {
    const nodes = Object.entries(scrape).flatMap(([current_version, count]) =>
      Array.from({ length: count }, (_, i) => ({
        name: `${current_version}-${i}`,
        status: { current_version, current_state: "Idle", crash_count: 0 } as const,
      })),
    );
    return sample(nodes, []).get("brupop_hosts_version") ?? [];
  });
  const versions = (shown.at(-1) ?? []).map(({ labels, value }) => [labels["bottlerocket_version"], value] as const);
  return Object.fromEntries(versions.filter(([version]) => version !== "other"));
}

for (const [title, scrapes, expected] of [
  ["a5 b10 c15, then a11", [{ a: 5, b: 10, c: 15 }, { a: 11 }], { a: 11, b: 0, c: 0 }],
  ["a1, then b11 c12", [{ a: 1 }, { b: 11, c: 12 }], { a: 0, b: 11, c: 12 }],
  ["a1, then a2", [{ a: 1 }, { a: 2 }], { a: 2 }],
] as const)
  it(`${title}: versions that are gone are 0`, () => assert.deepEqual(show(...scrapes), expected));

it("a node that has two shadows is shown once: Prometheus refuses a scrape that repeats a series", () => {
  const status = { current_version: "1", current_state: "Idle", crash_count: 2 } as const;
  const owner = { name: "n", uid: "u" };
  const twice = createNodeSampler()(
    ["a", "b"].map((name) => ({ name, owner, status })),
    [],
  );
  assert.deepEqual(twice.get("zonewise_node_update_crash_count"), [{ labels: { node: "n" }, value: 2 }]);
});
