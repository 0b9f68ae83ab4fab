/** The runner of these tests: nothing is lost, and nothing that fails goes unseen. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { describe, it } from "node:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findTests, isCounted, isInRest, isShort, longFirst, needsOwnProcess } from "./files.ts";
import { takeEach } from "./queue.ts";

const PLANTED = "test/runner/planted";

/** Runs planted files as a test run of its own. */
function play(...names: readonly string[]) {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const paths = names.map((name) => `${PLANTED}/${name}.ts`);
  const { status, stdout } = spawnSync(process.execPath, [join(import.meta.dirname, "main.ts"), ...paths], {
    env,
    encoding: "utf8",
  });
  return { status, stdout, last: stdout.trimEnd().split("\n").at(-1) };
}

describe("a run", () => {
  it("ends with 0 if all tests pass, and says how many", () => {
    const { status, stdout, last } = play("passes");
    assert.equal(last, "1 tests passed, 0 failed, 0 were skipped; all 1 files ran to their end");
    assert.equal(status, 0, stdout);
    for (const line of ["ℹ tests 1", "ℹ pass 1", "ℹ fail 0"]) assert.ok(stdout.includes(line), stdout);
  });

  it("ends with 1 if a test fails, a file throws on import, or leaves the process changed; the others run all the same", () => {
    const { status, stdout, last } = play("fails", "leaves", "passes", "throws");
    assert.equal(status, 1);
    assert.match(stdout, /^ {2}✖ fails /m);
    assert.match(stdout, /^ {2}✔ passes /m);
    assert.match(stdout, /✖ test\/runner\/planted\/throws\.ts /);
    assert.match(stdout, /thrown on import/);
    assert.match(stdout, /✖ test\/runner\/planted\/leaves\.ts leaves the process as it found it/);
    assert.match(last ?? "", /; all 4 files ran to their end$/);
  });

  it("fails the test beside which something throws or rejects, and no other", () => {
    const { status, stdout, last } = play("stray");
    assert.equal(status, 1);
    for (const name of ["✖ throws beside itself", "✖ rejects beside itself", "✔ passes beside them"])
      assert.match(stdout, new RegExp(`^ {4}${name} `, "m"));
    for (const text of ["thrown beside the test", "rejected beside the test"]) assert.ok(stdout.includes(text), stdout);
    assert.equal(last, "1 tests passed, 2 failed, 0 were skipped; all 1 files ran to their end");
  });

  it("ends with 1 if a process ends with 0 too soon, and names the files that did not run", () => {
    const { status, stdout, last } = play("exits", "exits-alone");
    assert.equal(status, 1);
    for (const name of ["exits", "exits-alone"])
      assert.match(stdout, new RegExp(`^✖ ${PLANTED}/${name}\\.ts did not run to its end`, "m"));
    assert.match(last ?? "", /; 2 of 2 files did not run to their end$/);
  });

  it("without any file ends with 1", () => assert.equal(play("nothing").status, 1));
});

describe("the files of a run", () => {
  const all = findTests(["test/**/*.test.ts"]);

  it("are taken once each by processes that share a queue, or alone", (t) => {
    const shared = all.filter((file) => !needsOwnProcess(file));
    const folder = mkdtempSync(join(tmpdir(), "queue-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const queues = Array.from({ length: 3 }, () => takeEach(longFirst(shared), folder));
    const taken = queues.map(() => [] as string[]);
    for (let turn = 0; turn < shared.length + queues.length; turn++) {
      const { value } = queues[turn % queues.length]?.next() ?? {};
      if (value) taken[turn % queues.length]?.push(value);
    }
    assert.ok(taken.every((files) => files.length > 0));
    assert.deepEqual(taken.flat().toSorted(), shared);
    assert.ok(shared.length > all.length / 2 && shared.length < all.length);
  });

  it("are alone if they start processes, themselves or by a helper", () => {
    for (const file of [
      "test/demo/start.e2e.test.ts",
      "test/functions/serve.e2e.test.ts",
      "test/functions/status/browser.e2e.test.ts",
    ])
      assert.ok(needsOwnProcess(file), file);
    assert.ok(!needsOwnProcess("test/reconciler/rollout/remaining.test.ts"));
  });

  it("are played by a short run, by what is left for the gate, or by both", () => {
    const [short, rest] = [all.filter(isShort), all.filter(isInRest)];
    assert.deepEqual([...new Set([...short, ...rest])].toSorted(), all);
    assert.ok(rest.includes("test/image/image.e2e.test.ts") && !short.includes("test/image/image.e2e.test.ts"));
    assert.ok(short.includes("test/reconciler/rollout/properties.test.ts"));
    assert.deepEqual(
      short.filter((file) => rest.includes(file)),
      short.filter(isCounted),
    );
  });

  it("whose counts are reduced are known by their import", () => {
    assert.ok(isCounted("test/reconciler/rollout/properties.test.ts"));
    assert.ok(!isCounted("test/reconciler/rollout/remaining.test.ts"));
  });
});
