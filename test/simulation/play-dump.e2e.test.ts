/** From a half-rolled group on the embedded cluster, through `zonewise dump`, into the simulated cluster, to its end. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { openTerminal } from "../cli/stage.ts";
import { setRollout } from "../cli/commands/half-rolled.ts";
import { type Dump, readDump } from "./from-dump.ts";
import { playDump } from "./play-dump.ts";

const SIMULATE = join(import.meta.dirname, "simulate.ts");

async function dumped(t: TestContext): Promise<{ readonly path: string; readonly dump: Dump }> {
  const folder = await mkdtemp(join(tmpdir(), "dump-"));
  t.after(() => rm(folder, { recursive: true }));
  const { run } = await openTerminal(t, await setRollout(t));
  const path = join(folder, "group.json.gz");
  const { code, err } = await run(`dump ingester --file ${path}`);
  assert.equal(code, 0, err);
  return { path, dump: readDump(path) };
}

it("the rollout goes on where the dump was taken: only outdated pods are replaced, zone by zone", async (t) => {
  const { dump } = await dumped(t);
  const lines: string[] = [];
  const played = await playDump(dump, { tell: (line) => void lines.push(line) });
  assert.deepEqual([played.phase, played.isReady], ["Ready", true], lines.join("\n"));
  // Zone a is finished, zone b has one pod of the new revision.
  const zones = played.replaced.map((name) => name.replace(/-\d+$/, ""));
  assert.deepEqual(zones, [...Array<string>(2).fill("ingester-zone-b"), ...Array<string>(3).fill("ingester-zone-c")]);
  assert.ok(!played.replaced.includes("ingester-zone-b-0"));
  const again = await playDump(dump, { tell() {} });
  assert.deepEqual(again, played, "the same file gives the same history");
});

it("a group that waits for somebody still waits at the end, and the reason is said", async (t) => {
  const { dump } = await dumped(t);
  const objects = dump.objects.map((object) =>
    object.kind === "StatefulSet"
      ? { ...object, metadata: { ...object.metadata, annotations: { "grafana.com/rollout-paused": "true" } } }
      : object,
  );
  const { phase, isReady, replaced, message } = await playDump({ ...dump, objects }, { forMs: 300_000, tell() {} });
  assert.deepEqual([phase, isReady, replaced.length], ["Paused", false, 0], message);
});

it("npm run simulate -- --from FILE plays it, and says how it ends", async (t) => {
  const { path } = await dumped(t);
  const { status, stdout, stderr } = spawnSync(process.execPath, [SIMULATE, "--from", path], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^group ingester after [\d.]+ minutes: Ready, .*; 5 pods replaced$/m);
});

it("npm run simulate -- --from a file that is no dump says so", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "dump-"));
  t.after(() => rm(folder, { recursive: true }));
  for (const [name, text, said] of [
    ["text.json", "no JSON", /text\.json is no JSON/],
    ["other.json", '{"kind":"List"}', /other\.json is no dump of this version/],
  ] as const) {
    await writeFile(join(folder, name), text);
    const { status, stderr } = spawnSync(process.execPath, [SIMULATE, "--from", join(folder, name)], {
      encoding: "utf8",
    });
    assert.equal(status, 2);
    assert.match(stderr, said);
  }
});
