/** Drills against installations in memory: whole ones, and such that are broken on purpose. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { changeHook, type Ended, EVICTION_HOOK, listLeft, NAMESPACE, openInstallation } from "./installation.ts";
import type { Report } from "./report.ts";

/** Enough for refusals and drains. */
const SHORT = { timeoutMs: 25_000, json: true };

const reportOf = ({ out }: Ended): Report => JSON.parse(out) as Report;
const having = (ended: Ended, verdict: string): string[] =>
  reportOf(ended)
    .promises.filter((row) => row.verdict === verdict)
    .map(({ promise }) => promise);

describe("a drill", { timeout: 300_000 }, () => {
  it("against a whole installation all promises hold, in a table of 80 columns, and nothing is left", async (t) => {
    const { store, play, run } = await openInstallation(t);
    await run(60_000);
    const before = listLeft(store);
    const { code, out, err, error } = await play();
    t.diagnostic(out);
    assert.equal(code, 0, out + err + error);
    assert.match(out, /^8 of 8 promises held: zonewise-drill-\w{5} in zonewise, /m);
    assert.match(out, /^rollout +9 of 9 pods +held +3 zones in turn/m);
    assert.ok(out.split("\n").every(({ length }) => length <= 80));
    assert.match(err, /drains: two zones/);
    assert.deepEqual(listLeft(store), before);
  });

  it("without an eviction webhook it says what did not hold", async (t) => {
    const { store, play } = await openInstallation(t);
    store.remove(EVICTION_HOOK[0], undefined, EVICTION_HOOK[1]);
    const ended = await play(SHORT);
    assert.equal(ended.code, 1);
    const broken = ["one zone at a time", "the limit of a zone", "refusals"];
    assert.deepEqual(having(ended, "did not hold"), broken);
    assert.match(reportOf(ended).promises[0]?.broken[0] ?? "", /-\d was taken while zonewise-drill-.* was away$/);
  });

  it("and if the webhook does not answer", async (t) => {
    const { store, play, run } = await openInstallation(t);
    changeHook(store, EVICTION_HOOK, (hook) => {
      const { clientConfig } = hook as { clientConfig: { service: object } };
      return { ...hook, clientConfig: { ...clientConfig, service: { ...clientConfig.service, path: "/nobody" } } };
    });
    await run(1000);
    const ended = await play(SHORT);
    assert.equal(ended.code, 1);
    assert.deepEqual(having(ended, "did not hold"), ["answers"]);
    assert.deepEqual(having(ended, "held"), []);
  });

  it("without a reconciler it has not seen a rollout, and says by pods what it has seen", async (t) => {
    const { play } = await openInstallation(t, { reconciles: false });
    const ended = await play();
    assert.equal(ended.code, 3, ended.out);
    assert.match(ended.out, /^rollout +0 of 9 pods +not seen +not over after 5m, 9 not replaced$/m);
    assert.match(ended.out, /^downscale in turn +1 of 3 zones +not seen /m);
    assert.match(ended.out, /^one zone at a time .* held /m);
    assert.doesNotMatch(ended.out, /note:|reconciler|docs\/install/);
  });

  it("where Zonewise is installed and its reconciler does not tick, it says so", async (t) => {
    const { store, play } = await openInstallation(t, { reconciles: false });
    const containers = [{ name: "reconciler", image: "zonewise:x" }];
    const jobTemplate = { spec: { template: { spec: { containers } } } };
    const metadata = { name: "zonewise-reconciler", namespace: NAMESPACE };
    const spec = { suspend: true, schedule: "* * * * *", jobTemplate };
    store.create("cronjobs.batch", { apiVersion: "batch/v1", kind: "CronJob", metadata, spec });
    const { out } = await play({ timeoutMs: 1000 });
    assert.match(out, /^note: the reconciler has not run yet: CronJob zonewise\/zonewise-reconciler/m);
  });

  it("a Ctrl-C removes what was made", async (t) => {
    const { store, start, until, untilEnded } = await openInstallation(t, { reconciles: false });
    const before = listLeft(store);
    const drill = start();
    await until(() => /drains/.test(drill.out()));
    drill.interrupt();
    const { err } = await untilEnded(drill);
    assert.match(err, /stopped: what was made is being removed/);
    assert.deepEqual(listLeft(store), before);
  });

  it("what a killed one has left is removed by --clean, and what a living one has made is not", async (t) => {
    const { store, start, run, play, until } = await openInstallation(t, { reconciles: false });
    const before = listLeft(store);
    const [killed, living] = [start(), start()];
    await until(() => store.list("pods").length === 18);
    killed.kill();
    await run(30_000);
    const first = await play({ clean: true });
    assert.deepEqual([first.code, store.list("statefulsets.apps").length], [3, 3], first.out + first.err + first.error);
    assert.match(first.out, /is alive in /);
    living.kill();
    await run(61_000);
    // The next run removes it as well as --clean.
    const next = await play({ timeoutMs: 1000 });
    assert.match(next.err, /^removing what zonewise-drill-/);
    assert.deepEqual(listLeft(store), before);
    assert.deepEqual((await play({ clean: true })).out, "nothing is left\n");
  });
});
