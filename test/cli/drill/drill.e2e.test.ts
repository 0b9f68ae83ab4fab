/** `zonewise drill` against installations in memory: whole ones, and such that are broken on purpose. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Report } from "../../../cli/output/drill-table.ts";
import {
  buildPod,
  changeHook,
  type Ended,
  EVICTION_HOOK,
  FUNCTIONS,
  listLeft,
  NAMESPACE,
  openInstallation,
} from "./stage.ts";

/** Enough for a storm. */
const SHORT = { namespace: NAMESPACE, timeout: "20s", output: "json" };

const reportOf = ({ out }: Ended): Report => JSON.parse(out) as Report;
const having = (ended: Ended, verdict: string): string[] =>
  reportOf(ended)
    .promises.filter((row) => row.verdict === verdict)
    .map(({ promise }) => promise);

describe("zonewise drill", { timeout: 300_000 }, () => {
  it("against a whole installation all promises hold, in a table of 80 columns, and nothing is left", async (t) => {
    const { store, play, run } = await openInstallation(t);
    store.create("pods", buildPod("functions", FUNCTIONS));
    await run(60_000);
    const before = listLeft(store);
    const { code, out, err, error } = await play({ namespace: NAMESPACE });
    t.diagnostic(out);
    assert.equal(code, 0, out + err + error);
    assert.match(out, /^8 of 8 promises held: zonewise-drill-\w{5} in zonewise, /m);
    assert.match(out, /^rollout +9 of 9 pods +held +3 zones in turn/m);
    assert.ok(out.split("\n").every(({ length }) => length <= 80));
    assert.match(err, /storm: 8 clients/);
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

  it("so it does if the webhook allows everything", async (t) => {
    const { store, play } = await openInstallation(t);
    changeHook(store, EVICTION_HOOK, (hook) => {
      const { clientConfig } = hook as { clientConfig: { service: object } };
      const service = { ...clientConfig.service, path: "/admission/raise-partition" };
      return { ...hook, clientConfig: { ...clientConfig, service } };
    });
    const ended = await play(SHORT);
    assert.equal(ended.code, 1);
    assert.deepEqual(having(ended, "did not hold"), ["one zone at a time", "the limit of a zone", "refusals"]);
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

  it("without a reconciler it has not seen a rollout, and says why", async (t) => {
    const { play } = await openInstallation(t, { reconciles: false });
    const ended = await play({ namespace: NAMESPACE });
    assert.equal(ended.code, 3, ended.out);
    assert.match(ended.out, /^rollout +0 of 9 pods +not seen +not over after 5m$/m);
    assert.match(ended.out, /^downscale in turn +1 of 3 zones +not seen /m);
    assert.match(ended.out, /^one zone at a time .* held /m);
    assert.match(ended.out, /^reconciler {2}/m);
  });

  it("where the installation serves its own namespace, it does not begin in another, and says how", async (t) => {
    const { store, play } = await openInstallation(t);
    const before = listLeft(store);
    const { code, error } = await play();
    assert.equal(code, 4);
    assert.match(error, /can prove nothing: pod-eviction-zonewise does not select evictions in zonewise-drill-/);
    assert.match(error, /zonewise -n zonewise drill/);
    assert.deepEqual(listLeft(store), before);
  });

  it("it makes a namespace of its own, and removes it", async (t) => {
    const { store, start, until, untilEnded } = await openInstallation(t);
    const before = listLeft(store);
    changeHook(store, EVICTION_HOOK, (hook) => ({ ...hook, namespaceSelector: {} }));
    const drill = start({ timeout: "10s", output: "json" });
    await until(() => store.list("pods").length === 9);
    const own = store.list("namespaces").find(({ metadata }) => metadata.labels?.["zonewise/drill"]);
    assert.deepEqual(
      new Set(store.list("pods").map(({ metadata }) => metadata.namespace)),
      new Set([own?.metadata.name]),
    );
    const ended = await untilEnded(drill);
    assert.equal(ended.code, 3, ended.err);
    assert.equal(reportOf(ended).made, true);
    assert.deepEqual(listLeft(store), before);
  });

  for (const where of ["in its namespace", "in a namespace of its own"]) {
    const isOwn = where !== "in its namespace";
    const place = isOwn ? {} : { namespace: NAMESPACE };

    it(`${where}, a Ctrl-C removes what was made`, async (t) => {
      const { store, start, until, untilEnded } = await openInstallation(t, { reconciles: false });
      changeHook(store, EVICTION_HOOK, (hook) => ({ ...hook, namespaceSelector: {} }));
      const before = listLeft(store);
      const drill = start(place);
      await until(() => /storm/.test(drill.out()));
      drill.interrupt();
      const { err } = await untilEnded(drill);
      assert.match(err, /stopped: what was made is being removed/);
      assert.deepEqual(listLeft(store), before);
    });

    it(`${where}, what a killed one has left is removed by --clean, and what a living one has made is not`, async (t) => {
      const { store, start, run, play, until } = await openInstallation(t, { reconciles: false });
      changeHook(store, EVICTION_HOOK, (hook) => ({ ...hook, namespaceSelector: {} }));
      const before = listLeft(store);
      const [killed, living] = [start(place), start(place)];
      await until(() => store.list("pods").length === 18);
      killed.kill();
      await run(30_000);
      const first = await play({ ...place, clean: true });
      assert.deepEqual(
        [first.code, store.list("statefulsets.apps").length],
        [3, 3],
        first.out + first.err + first.error,
      );
      assert.match(first.out, /is alive in /);
      living.kill();
      await run(61_000);
      // The next run removes it as well as --clean.
      const next = await play({ ...place, timeout: "1s" });
      assert.match(next.err, /^removing what zonewise-drill-/);
      assert.deepEqual(listLeft(store), before);
      assert.deepEqual((await play({ ...place, clean: true })).out, "nothing is left\n");
    });
  }

  for (const [name, flags, says] of [
    ["all namespaces", { namespace: "" }, /one namespace/],
    ["a time that is none", { timeout: "soon" }, /no duration/],
    ["a time without end", { timeout: "24h" }, /no duration up to 30m/],
    ["a selector that is none", { nodeSelector: ["disk"] }, /not label=value/],
  ] as const)
    it(`it refuses ${name}`, async (t) => {
      const { store, play } = await openInstallation(t);
      const before = listLeft(store);
      const { code, error } = await play(flags);
      assert.equal(code, 2);
      assert.match(error, says);
      assert.deepEqual(listLeft(store), before);
    });
});
