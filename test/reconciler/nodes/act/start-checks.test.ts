/** Checks of a policy, asked of a scripted Prometheus. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { type ScriptedPrometheus, startPrometheus } from "../../../prometheus/scripted.ts";
import { createPolicy, label, type NodeStage, setNode, setNodeStage, shadowOf, statusOf, stepAgent } from "./stage.ts";
import { add } from "../../../builders.ts";

const NODES = ["node-1", "node-2", "node-3"];
let stage: NodeStage;
let prometheus: ScriptedPrometheus;
beforeEach(async () => void (prometheus = await startPrometheus()));
afterEach(async () => {
  await stage.close();
  await prometheus[Symbol.asyncDispose]();
});

async function setUp(query: object = {}, options: Parameters<typeof setNodeStage>[0] = {}): Promise<void> {
  stage = await setNodeStage(options);
  for (const node of NODES) {
    label(stage, node);
    setNode(stage, node, {});
  }
  const rates = { successWhen: "NoData", initialDelaySeconds: 0, periodSeconds: 10, successThreshold: 2 };
  const checks = [{ name: "errors", query: { expr: "up == 0", url: prometheus.url, ...query }, ...rates }];
  createPolicy(stage, "default", { checks });
  await stage.tick();
  for (const node of NODES) stepAgent(stage, node);
}

/** Ticks of new processes, ten seconds apart. */
async function play(rounds: number, step = false): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    stage.restart();
    await stage.tick();
    if (step) for (const node of NODES) stepAgent(stage, node);
    await stage.time.advance(10_000);
  }
}

const wanted = (): number => NODES.filter((node) => shadowOf(stage, node)?.spec.state !== "Idle").length;

describe("the checks of a policy", () => {
  it("hold the first start until they have succeeded often enough, over the deaths of processes", async () => {
    await setUp();
    await play(1);
    assert.deepEqual([wanted(), statusOf(stage).skipped], [0, { CheckPending: 3 }]);
    await play(2);
    assert.equal(wanted(), 1);
  });

  it("hold the next node while they fail, and let the active one finish", async () => {
    await setUp();
    await play(3);
    prometheus.answer = () => 1;
    await play(30, true);
    const { nodes, skipped, message } = statusOf(stage);
    assert.deepEqual([nodes.upToDate, nodes.active, skipped], [1, 0, { CheckFailing: 2 }]);
    assert.match(message, /^check "errors" fails: up\{/);
    prometheus.answer = () => 0;
    await play(60, true);
    assert.equal(statusOf(stage).nodes.upToDate, 3);
  });

  it("hold while Prometheus cannot be reached", async () => {
    await setUp({ url: "http://127.0.0.1:1" });
    await play(5);
    assert.deepEqual([wanted(), statusOf(stage).skipped], [0, { CheckUnreachable: 3 }]);
    assert.match(statusOf(stage).message, /check "errors" has no answer: .*127\.0\.0\.1:1/);
  });

  it("ask only hosts that the installation allows", async () => {
    await setUp({}, { allowedHosts: ["prometheus.example"] });
    await play(3);
    assert.deepEqual([wanted(), prometheus.seen.length], [0, 0]);
    assert.match(statusOf(stage).message, /PROMETHEUS_ALLOWED_HOSTS/);
  });

  it("read their Secret in the reconciler's namespace, and never show it", async () => {
    await setUp({ secretRef: "prom" });
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

  it("are not asked once nothing is left to start (silence)", async () => {
    await setUp();
    await play(120, true);
    assert.equal(statusOf(stage).nodes.upToDate, 3);
    const asked = prometheus.seen.length;
    stage.calls.length = 0;
    await play(3, true);
    assert.deepEqual([prometheus.seen.length, stage.calls.filter((call) => !call.startsWith("GET"))], [asked, []]);
  });
});
