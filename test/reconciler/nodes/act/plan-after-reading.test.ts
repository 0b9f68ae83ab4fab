/** Which nodes are read at in one pass. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ReadingMemory, planAfterReading } from "../../../../reconciler/nodes/act/plan-after-reading.ts";
import type { NodeReading } from "../../../../reconciler/nodes/snapshot.ts";
import { busyNode, entry, FREE, node, NOW, policy, snapshot } from "../fixture.ts";

/** Reads, and how many were under way at once. */
function watchReads(answer: (node: string) => NodeReading = () => FREE) {
  const read: string[] = [];
  let running = 0;
  let most = 0;
  const readPods = async ({ node }: { readonly node: string }): Promise<NodeReading> => {
    read.push(node);
    most = Math.max(most, ++running);
    await Promise.resolve();
    running--;
    return answer(node);
  };
  return { read, readPods, most: () => most };
}

const memory = (): ReadingMemory => ({
  intervalMs: 5000,
  held: new Map(),
  readAt: new Map(),
});

describe("the reads of a pass", () => {
  const names = Array.from({ length: 100 }, (_, i) => `n${String(i).padStart(3, "0")}`);
  const monitored = names.map((name) =>
    busyNode(name, "MonitoringUpdate", "MonitoringUpdate", {
      node: { bootId: "boot-2", readySince: 0 },
      status: { current_version: "1.1.0" },
    }),
  );
  const active = names.map((name) => entry(name, { phase: "Monitoring" }));
  const input = (now: number) =>
    snapshot(monitored, { now, policy: policy({ maxConcurrent: "unlimited" }, { active }) });

  it("come round to every active node, however many of them are not well", async () => {
    const { read, readPods, most } = watchReads(() => ({ ...FREE, missing: "StatefulSet shop/db has 2 ready pods" }));
    const kept = memory();
    for (let pass = 0; pass < 3; pass++) await planAfterReading(input(NOW + pass * 5000), readPods, kept);
    assert.deepEqual(new Set(read), new Set(names));
    assert.ok(read.length <= 120 && most() <= 5, `${read.length} reads, ${most()} at once`);
  });

  it("are no more than the starts need", async () => {
    const { read, readPods } = watchReads();
    await planAfterReading(snapshot(names.map((name) => node(name))), readPods, memory());
    assert.deepEqual(read, ["n000"]);
  });
});
