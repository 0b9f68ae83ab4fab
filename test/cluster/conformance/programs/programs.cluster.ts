/**
 * Random programs of API calls, the same on an embedded cluster and on this one: what they answer, what controllers
 * make of it, and in which order.
 *
 *     PROGRAMS=1-40 STEPS=60        which seeds, of how many steps each (these are the defaults)
 *     PROGRAMS=17 KEEP=0,3,9        one of them, with these steps alone
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { visitEach } from "../../../../infra/slots.ts";
import { readKubeconfig } from "../recording.ts";
import { describe } from "../compare.ts";
import { connectAdmin } from "../../stage/client.ts";
import { define } from "../../stage/definitions.ts";
import { connect } from "../client.ts";
import { drawProgram } from "./generate.ts";
import { OWN_KINDS } from "./grounds.ts";
import { contrast, shrinkProgram } from "./contrast.ts";

const env = (name: string, otherwise: string): string => process.env[name] || otherwise;
const [first = 1, last = first] = env("PROGRAMS", "1-45").split("-").map(Number);
const STEPS = Number(env("STEPS", "50"));
const kept = process.env["KEEP"]?.split(",").map(Number);
/** A difference that counts is there each time. */
const TRIES = 5;
/** Milliseconds before the second try; more before each further one. */
const PAUSE_MS = 3000;
const AT_ONCE = Number(env("AT_ONCE", "12"));

test("random programs come to the same on an embedded cluster and on this one", { timeout: 3_600_000 }, async (t) => {
  const kubeconfig = process.env["KUBECONFIG"] ?? "";
  const admin = await connectAdmin(kubeconfig);
  t.after(() => admin.close());
  await define(admin, ...OWN_KINDS);
  const client = connect(readKubeconfig(kubeconfig));
  t.after(() => client.close());
  const seeds = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const failed: string[] = [];
  const used = new Map<string, number>();
  let calls = 0;
  await visitEach(seeds, { atOnce: AT_ONCE }, async (seed) => {
    const drawn = drawProgram(seed, STEPS);
    const positions = kept ?? drawn.program.map((_, index) => index);
    let result = await contrast(client, drawn, positions);
    calls += result.calls;
    for (let tries = 1; tries < TRIES && result.unexplained.length > 0; tries++) {
      // What a real cluster does only sometimes, on a machine under load, the embedded one need not do.
      t.diagnostic(`seed ${seed} is played again: ${result.unexplained.slice(0, 3).map(describe).join("\n")}`);
      await sleep(PAUSE_MS * tries);
      result = await contrast(client, drawn, positions);
    }
    for (const { reason } of result.explained) used.set(reason, (used.get(reason) ?? 0) + 1);
    if (result.unexplained.length === 0) return;
    const shrunk =
      env("SHRINK", "yes") === "yes" ? await shrinkProgram(client, drawn, positions, result) : { positions, result };
    const words = [
      `seed ${seed} (${drawn.theme}): PROGRAMS=${seed} STEPS=${STEPS} KEEP=${shrunk.positions.join(",")}`,
      ...shrunk.result.entries.map(({ step, status }) => `  ${step} -> ${status ?? ""}`),
      ...shrunk.result.unexplained.slice(0, 12).map(describe),
    ].join("\n");
    failed.push(words);
    t.diagnostic(words);
  });
  t.diagnostic(`${calls} calls in ${seeds.length} programs`);
  for (const [reason, count] of used) t.diagnostic(`${count} differences explained: ${reason}`);
  assert.equal(failed.length, 0, `${failed.length} of ${seeds.length} programs differ`);
});
