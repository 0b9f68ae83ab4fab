/** Checks of a policy, asked of a scripted Prometheus. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it, type TestContext } from "node:test";
import { type ScriptedPrometheus, startPrometheus } from "../../../prometheus/scripted.ts";
import { createPolicy, NODES, type NodeStage, setFleet, shadowOf, statusOf, stepAgent } from "./stage.ts";
import { add } from "../../../builders.ts";

let stage: NodeStage;
let prometheus: ScriptedPrometheus;
beforeEach(async () => void (prometheus = await startPrometheus()));
afterEach(() => prometheus[Symbol.asyncDispose]());

async function setUp(t: TestContext, query: object = {}, options: Parameters<typeof setFleet>[1] = {}): Promise<void> {
  stage = await setFleet(t, options);
  const rates = { successWhen: "NoData", initialDelaySeconds: 0, periodSeconds: 10, successThreshold: 2 };
  const checks = [{ name: "errors", query: { expr: "up == 0", url: prometheus.url, ...query }, ...rates }];
  createPolicy(stage, "default", { checks });
  await stage.tick();
  for (const node of NODES) stepAgent(stage, node);
}

/** Ticks of new processes, ten seconds apart. */
async function play(rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    stage.restart();
    await stage.tick();
    await stage.time.advance(10_000);
  }
}

const wanted = (): number => NODES.filter((node) => shadowOf(stage, node)?.spec.state !== "Idle").length;

describe("the checks of a policy", () => {
  it("hold the first start until they have succeeded often enough, over the deaths of processes", async (t) => {
    await setUp(t);
    await play(1);
    assert.deepEqual([wanted(), statusOf(stage).skipped], [0, { CheckPending: 3 }]);
    await play(2);
    assert.equal(wanted(), 1);
  });

  it("ask only hosts that the installation allows", async (t) => {
    await setUp(t, {}, { allowedHosts: ["prometheus.example"] });
    await play(3);
    assert.deepEqual([wanted(), prometheus.seen.length], [0, 0]);
    assert.match(statusOf(stage).message, /PROMETHEUS_ALLOWED_HOSTS/);
  });

  it("read their Secret in the reconciler's namespace, and never show it", async (t) => {
    await setUp(t, { secretRef: "prom" });
    await play(1);
    assert.match(statusOf(stage).message, /Secret prom does not exist/);
    add(stage.emulator.store, "Namespace", "zonewise");
    const data = { token: Buffer.from("s3cret").toString("base64") };
    add(stage.emulator.store, "Secret", "prom", { namespace: "zonewise", data });
    prometheus.answer = () => ({ status: 400, body: { status: "error", errorType: "bad_data", error: "no s3cret" } });
    await play(2);
    assert.equal(prometheus.seen.at(-1)?.headers.authorization, "Bearer s3cret");
    assert.match(statusOf(stage).message, /no \*\*\*/);
    assert.doesNotMatch(JSON.stringify(statusOf(stage)), /s3cret/);
  });
});
