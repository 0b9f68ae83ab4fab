/** What the gauges of node updates show from pass to pass, by the original's cases. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { createMetrics } from "../../../infra/metrics/metrics.ts";

/** The gauge of versions after each of these passes: as many nodes of each version. */
async function show(...passes: readonly Readonly<Record<string, number>>[]): Promise<Record<string, number>> {
  const metrics = createMetrics();
  for (const pass of passes) {
    const nodes = Object.entries(pass).flatMap(([current_version, count]) =>
      Array.from({ length: count }, (_, i) => ({
        name: `${current_version}-${i}`,
        shadow: { status: { current_version, current_state: "Idle", crash_count: 0 } },
      })),
    );
    metrics.nodeUpdates.seen({ nodes, policies: [], now: 0 });
  }
  const lines = (await metrics.render()).matchAll(/^brupop_hosts_version\{bottlerocket_version="(?<version>\w)"\} (?<count>\d+)$/gm);
  return Object.fromEntries([...lines].map(({ groups }) => [groups?.["version"] ?? "", Number(groups?.["count"])]));
}

for (const [title, passes, expected] of [
  ["a5 b10 c15, then a11", [{ a: 5, b: 10, c: 15 }, { a: 11 }], { a: 11, b: 0, c: 0 }],
  ["a1, then b11 c12", [{ a: 1 }, { b: 11, c: 12 }], { a: 0, b: 11, c: 12 }],
  ["a1, then a2", [{ a: 1 }, { a: 2 }], { a: 2 }],
] as const)
  it(`${title}: versions that are gone are 0`, async () => assert.deepEqual(await show(...passes), expected));
