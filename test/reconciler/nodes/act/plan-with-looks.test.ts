/** Which nodes are looked at in one pass. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type LookMemory, planWithLooks } from "../../../../reconciler/nodes/act/plan-with-looks.ts";
import type { NodeLook } from "../../../../reconciler/nodes/snapshot.ts";
import { busyNode, entry, FREE, node, NOW, policy, snapshot } from "../fixture.ts";

/** Looks, and how many were under way at once. */
function watchLooks(answer: (node: string) => NodeLook = () => FREE) {
  const looked: string[] = [];
  let running = 0;
  let most = 0;
  const lookAt = async ({ node }: { readonly node: string }): Promise<NodeLook> => {
    looked.push(node);
    most = Math.max(most, ++running);
    await Promise.resolve();
    running--;
    return answer(node);
  };
  return { looked, questions: { lookAt, askChecks: async () => new Map() }, most: () => most };
}

const memory = (): LookMemory => ({ obstacles: new Map(), departures: new Map(), lookedAt: new Map() });

describe("the looks of a pass", () => {
  const names = Array.from({ length: 100 }, (_, i) => `n${String(i).padStart(3, "0")}`);
  const monitored = names.map((name) =>
    busyNode(name, "MonitoringUpdate", "MonitoringUpdate", {
      node: { bootId: "boot-2", readySince: 0 },
      status: { current_version: "1.1.0", boot_reported_at: "2026-01-01T00:00:00Z" },
    }),
  );
  const active = names.map((name) => entry(name, { phase: "Monitoring" }));
  const input = (now: number) => snapshot(monitored, { now, policy: policy({ maxConcurrent: "unlimited" }, { active }) });

  it("come round to every active node, however many of them are not well", async () => {
    const { looked, questions, most } = watchLooks(() => ({ ...FREE, missing: "StatefulSet shop/db has 2 ready pods" }));
    const kept = memory();
    for (let pass = 0; pass < 3; pass++) await planWithLooks(input(NOW + pass * 5000), questions, kept);
    assert.deepEqual(new Set(looked), new Set(names));
    assert.ok(looked.length <= 120 && most() <= 5, `${looked.length} looks, ${most()} at once`);
  });

  it("are no more than the starts need", async () => {
    const { looked, questions } = watchLooks();
    await planWithLooks(snapshot(names.map((name) => node(name))), questions, memory());
    assert.deepEqual(looked, ["n000"]);
  });
});
