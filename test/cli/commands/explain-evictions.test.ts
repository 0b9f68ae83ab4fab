/** `zonewise explain` shows what the reconciler has answered to a requested eviction. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { reserved, writeBudget } from "../../reconciler/budget-stage.ts";
import { RESPONDER } from "../../../reconciler/evictions/eviction.ts";
import { DEADLINE_MS, EVICTOR } from "../../reconciler/evictions/play.ts";
import { answerer, play } from "../../reconciler/evictions/stage.ts";
import { openTerminal } from "../stage.ts";

const POD = "ingester-zone-a-0";

it("explain pod/POD says why a requested eviction waits, and until when", { timeout: 120_000 }, async (t) => {
  const scene = await play(t);
  const other = "ingester-zone-b-0";
  scene.evict(POD);
  scene.evict(other);
  await answerer(scene).visit();
  const [first] = Object.keys(reserved(scene.stage));
  const second = first === POD ? other : POD;
  const { run } = await openTerminal(t, scene.stage);
  const waits = await run(`explain pod/${second}`);
  assert.match(waits.out, /be evicted on request: no {2}BudgetSpent\n/);
  assert.match(waits.out, /asked for by drainer\.example\/node: 1 pod not ready in ingester-zone-[ab]/);
  assert.match(waits.out, /since .*\n +next +in 2m\n/);
  assert.equal(waits.out.split(`describe pod ${first}`).length, 3, "the remedy is that of the first answer");
  const goes = await run(`explain pod/${first}`);
  assert.match(goes.out, /be evicted on request: yes .*Allowed: zpdb met across 3 zones/);
});

it("explain pod/POD says whose turn it is, and that nobody answered", { timeout: 120_000 }, async (t) => {
  const scene = await play(t);
  writeBudget(scene.stage, { maxUnavailable: 0 });
  scene.evict(POD);
  scene.evict("ingester-zone-b-0", ["other.example/first", RESPONDER, EVICTOR]);
  const { run } = await openTerminal(t, scene.stage);
  assert.match((await run(`explain pod/${POD}`)).out, /Goes on by itself: .*the reconciler answers it/);
  assert.match((await run("explain pod/ingester-zone-b-0")).out, /it is the turn of another responder/);
  assert.doesNotMatch((await run("explain pod/ingester-zone-c-0")).out, /on request/);
  await scene.stage.time.advance(DEADLINE_MS);
  scene.control();
  const { code, out } = await run(`explain pod/${POD}`);
  assert.match(out, /be evicted on request: no {2}EvictionUnanswered\n/);
  assert.equal(code, 1);
});
