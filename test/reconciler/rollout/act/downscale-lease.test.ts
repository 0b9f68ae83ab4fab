/** The downscale Lease of a group while pods of a rollout are deleted. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Lease } from "../../../../infra/kubernetes/resources.ts";
import type { Effect } from "../../../emulator/faults.ts";
import { deploy, setStage, tickOnce, type Stage } from "../../stage.ts";
import { witness, type Witness } from "../../witness.ts";

const LEASES = "leases.coordination.k8s.io";
const JUDGED = { "grafana.com/prepare-downscale": "true" };

/** Three zones of three pods with a new image; a webhook judges the downscales of `judged`. */
async function set(t: TestContext, judged: readonly string[]): Promise<{ stage: Stage; seen: Witness }> {
  const stage = await setStage();
  t.after(() => stage.close());
  for (const zone of ["a", "b", "c"])
    deploy(stage, "x:1", { zones: [zone], labels: judged.includes(zone) ? JUDGED : {} });
  await stage.time.advance(3000);
  deploy(stage, "x:2");
  await stage.time.advance(500);
  return { stage, seen: witness(stage, 3) };
}

const leaseOf = ({ emulator }: Stage): Lease | undefined => emulator.store.list(LEASES, "default")[0];

/** One tick: the writes of Leases and pods in order. */
async function tickAndWrites(stage: Stage): Promise<string[]> {
  const { cluster, calls } = stage.connect();
  await tickOnce(stage, cluster);
  const writes = calls.filter((call) => !call.startsWith("GET") && /leases|pods/.test(call));
  return writes.map((call) => call.replace(/ (?:\S+\/)*(leases|pods)\b.*$/, " $1"));
}

describe("a rollout", () => {
  it("takes the Lease if a webhook judges the downscales of another zone, and releases it after the deletions", async (t) => {
    const { stage, seen } = await set(t, ["b"]);
    assert.deepEqual(await tickAndWrites(stage), ["POST leases", "DELETE pods", "PUT leases"]);
    assert.deepEqual([seen.deleted.length, leaseOf(stage)?.spec?.holderIdentity], [1, ""]);
  });

  for (const judged of [[], ["a"]])
    it(`takes no Lease if a webhook judges the downscales of ${judged.length === 0 ? "no zone" : "its own zone alone"}`, async (t) => {
      const { stage } = await set(t, judged);
      assert.deepEqual(await tickAndWrites(stage), ["DELETE pods"]);
    });

  it("deletes nothing once the Lease may have passed to another", async (t) => {
    const { stage, seen } = await set(t, ["b"]);
    const { cluster } = stage.connect();
    const slow = {
      ...cluster,
      patch: async (...call: Parameters<typeof cluster.patch>) => (
        await stage.time.advance(8000),
        cluster.patch(...call)
      ),
    };
    const [outcome] = (await tickOnce(stage, slow)).outcomes;
    assert.match(
      outcome?.state === "superseded" ? outcome.error.message : "",
      /a downscale of another zone may be admitted again/,
    );
    assert.deepEqual([seen.deleted, leaseOf(stage)?.spec?.holderIdentity], [[], ""]);
  });

  const ENDS: readonly [name: string, effect: Effect, holder: RegExp][] = [
    ["leaves the Lease free after a deletion that was refused", { kind: "tooMany", retryAfterSeconds: 60 }, /^$/],
    ["leaves the Lease to expire after a deletion without an answer", { kind: "dropBefore" }, /^reconciler_/],
  ];
  for (const [name, effect, holder] of ENDS)
    it(name, async (t) => {
      const { stage } = await set(t, ["b"]);
      stage.emulator.faults.inject({ effect, verb: "delete", resource: "pods", times: 1 });
      await tickAndWrites(stage);
      assert.match(leaseOf(stage)?.spec?.holderIdentity ?? "", holder);
    });
});
