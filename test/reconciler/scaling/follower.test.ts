import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Cluster } from "../../../infra/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { hold } from "../../../reconciler/model/decision.ts";
import type { TickInput } from "../../../reconciler/tick.ts";
import { deploy, setStage, tickOnce, witness, type Stage, type Witness } from "../stage.ts";

const FOLLOWS_A = { "grafana.com/rollout-downscale-leader": "ingester-zone-a" };
const TWO = { "rollout-max-unavailable": "2" };
const LABEL = { "grafana.com/min-time-between-zones-downscale": "12h" };

let stage: Stage;
let seen: Witness;
let patches: unknown[];
beforeEach(async () => {
  stage = await setStage();
  patches = [];
});
afterEach(() => stage.close());

/** Zone a leads, zone b follows; all pods up, then those named get another image. */
async function zones(a: number, b: number, { outdated = ["b"], lastDownscale = "" } = {}): Promise<void> {
  deploy(stage, "x:1", {
    zones: ["a"],
    replicas: a,
    annotations: { ...TWO, ...(lastDownscale && { "grafana.com/last-downscale": lastDownscale }) },
  });
  deploy(stage, "x:1", { zones: ["b"], replicas: b, annotations: { ...TWO, ...FOLLOWS_A }, labels: LABEL });
  await stage.time.advance(3000);
  seen = witness(stage, 2);
  for (const zone of outdated) deploy(stage, "x:2", { zones: [zone], replicas: zone === "a" ? a : b });
  await stage.time.advance(200);
}

function connect(refuse = false): Cluster {
  const { cluster } = stage.connect();
  return {
    ...cluster,
    patch: async (resource, ref, type, body, call) => {
      if (ref.subresource === undefined && resource.plural === "statefulsets") {
        patches.push(body);
        if (refuse) throw new RolloutError("Forbidden", "denied the request");
      }
      return cluster.patch(resource, ref, type, body, call);
    },
  };
}

const denyOrdinal =
  (ordinal: number): TickInput["mayDisrupt"] =>
  async (pod, zone) =>
    pod.name.endsWith(`-${ordinal}`) ? hold("BudgetSpent", "no", [zone]) : undefined;

const replicasOf = (name: string): unknown =>
  (stage.emulator.store.get("statefulsets.apps", "default", name)?.["spec"] as { replicas?: number }).replicas;
const oneHourAgo = (): string => new Date(stage.time.now() - 3_600_000).toISOString();

describe("scaling and rollout in one tick", () => {
  it("R24 a follower that has to wait is not scaled, and the rollout goes on", async () => {
    await zones(2, 3, { lastDownscale: oneHourAgo() });
    const { outcomes } = await tickOnce(stage, connect());
    assert.deepEqual([patches, seen.deleted], [[], ["ingester-zone-b-0", "ingester-zone-b-1"]]);
    assert.match(
      outcomes[0]?.waits[0]?.message ?? "",
      /^ingester-zone-b waits: ingester-zone-a was downscaled 1h ago, 10h59m left of 12h$/,
    );
  });

  it("R25 a follower is scaled by one patch with its version and the time, and nothing is deleted in that pass", async () => {
    await zones(2, 3);
    const before = stage.emulator.store.get("statefulsets.apps", "default", "ingester-zone-b")?.metadata.resourceVersion;
    const { outcomes, acted } = await tickOnce(stage, connect());
    const annotations = { "grafana.com/last-downscale": `${new Date(stage.time.now()).toISOString().slice(0, 19)}Z` };
    assert.deepEqual([patches, seen.deleted], [[{ metadata: { resourceVersion: before, annotations }, spec: { replicas: 2 } }], []]);
    assert.deepEqual([outcomes[0]?.state, acted, replicasOf("ingester-zone-b")], ["acted", true, 2]);
  });

  it("R26 a patch that is refused does not end the pass: the rollout goes on", async () => {
    await zones(2, 3);
    const { outcomes } = await tickOnce(stage, connect(true));
    assert.deepEqual([patches.length, seen.deleted, replicasOf("ingester-zone-b")], [1, ["ingester-zone-b-0", "ingester-zone-b-1"], 3]);
    assert.deepEqual(
      outcomes[0]?.waits.map(({ reason }) => reason),
      ["ScaleRefused"],
    );
  });

  it("R27 so does one beside a budget that denies the second pod", async () => {
    await zones(1, 3);
    await tickOnce(stage, connect(true), { mayDisrupt: denyOrdinal(1) });
    assert.deepEqual(seen.deleted, ["ingester-zone-b-0"]);
  });

  it("R28 growing, refused: the rollout goes on", async () => {
    await zones(3, 2);
    await tickOnce(stage, connect(true));
    assert.deepEqual([patches.length, seen.deleted], [1, ["ingester-zone-b-0", "ingester-zone-b-1"]]);
  });

  it("R29 growing with a new template in both zones, refused, and a budget that denies the second pod", async () => {
    await zones(3, 2, { outdated: ["a", "b"] });
    await tickOnce(stage, connect(true), { mayDisrupt: denyOrdinal(1) });
    assert.deepEqual(seen.deleted, ["ingester-zone-a-0"]);
  });

  it("a zone that changed since it was read is not scaled, and nothing else is done to its group", async () => {
    await zones(2, 3);
    const { cluster } = stage.connect();
    const late: Cluster = {
      ...cluster,
      patch: (resource, ref, type, body, call) => {
        deploy(stage, "x:3", { zones: ["b"], replicas: 4 });
        return cluster.patch(resource, ref, type, body, call);
      },
    };
    const { outcomes } = await tickOnce(stage, late);
    assert.deepEqual([outcomes[0]?.state, seen.deleted, replicasOf("ingester-zone-b")], ["outrun", [], 4]);
  });

  it("a chain of three goes up one zone after the other, each once the one before is ready, and down again", async () => {
    const readyOnly = { "grafana.com/rollout-upscale-only-when-leader-ready": "true" };
    deploy(stage, "x:1", { zones: ["a"] });
    deploy(stage, "x:1", { zones: ["b"], annotations: { ...FOLLOWS_A, ...readyOnly } });
    deploy(stage, "x:1", { zones: ["c"], annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-b", ...readyOnly } });
    await stage.time.advance(3000);
    const { cluster } = stage.connect();
    const scaled: string[] = [];
    const play = async (): Promise<void> => {
      for (let i = 0; i < 60; i++) {
        await stage.time.advance(100);
        const { outcomes } = await tickOnce(stage, cluster);
        const [outcome] = outcomes;
        if (outcome?.state !== "acted" || outcome.decision.action !== "scaleZone") continue;
        const ready = ["a", "b", "c"].map(
          (zone) =>
            (stage.emulator.store.get("statefulsets.apps", "default", `ingester-zone-${zone}`)?.["status"] as { readyReplicas?: number })
              .readyReplicas,
        );
        scaled.push(`${outcome.decision.zone.name} to ${outcome.decision.replicas} with ${ready.join(",")} ready`);
      }
    };
    deploy(stage, "x:1", { zones: ["a"], replicas: 5 });
    await play();
    assert.deepEqual(scaled.splice(0), ["ingester-zone-b to 5 with 5,3,3 ready", "ingester-zone-c to 5 with 5,5,3 ready"]);
    deploy(stage, "x:1", { zones: ["a"], replicas: 2 });
    await play();
    assert.deepEqual(
      scaled.map((line) => line.split(" with")[0]),
      ["ingester-zone-b to 2", "ingester-zone-c to 2"],
    );
  });
});
