/** The injection of the CA follows the webhook configurations for as long as a run goes on (§7.6). */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { RolloutError } from "../../../infra/errors.ts";
import type { CaInjectionInput } from "../../../reconciler/run/ca-injection.ts";
import * as on from "../../infra/certs/stage.ts";
import { bundle, giveSecret, injector } from "./ca-injector.ts";
import { setStage, type Stage } from "../stage.ts";

let stage: Stage;
beforeEach(async () => void (stage = await setStage()));
afterEach(() => stage.close());

describe("CA injection while a run goes on", () => {
  let stop: AbortController;
  let followed: Promise<void>;
  beforeEach(() => {
    stop = new AbortController();
    followed = Promise.resolve();
  });
  afterEach(async () => {
    stop.abort();
    await followed;
  });

  /** Starts to follow; counts the lists (two per check) and the watches (one per kind). */
  function follow(more: Partial<CaInjectionInput> = {}) {
    const { cluster } = stage.connect();
    const counts = { lists: 0, watches: 0 };
    const list: typeof cluster.list = (...call) => {
      counts.lists++;
      return (more.cluster ?? cluster).list(...call);
    };
    const watch: typeof cluster.watch = (...call) => {
      counts.watches++;
      return (more.cluster ?? cluster).watch(...call);
    };
    const started = injector(stage, { ...more, cluster: { ...cluster, list, watch } });
    followed = started.follow(stop.signal);
    return { ...started, counts };
  }

  /** Waits until the condition holds while the clock stands still. */
  async function until(holds: () => boolean, what: string): Promise<void> {
    for (let turn = 0; !holds(); turn++) {
      assert.ok(turn < 300_000, what);
      await setImmediate();
    }
  }

  /** Advances the clock as slowly as calls are answered. */
  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 250) {
      await stage.time.advance(250);
      for (let turn = 0; turn < 30; turn++) await setImmediate();
    }
  }

  /** Waits until the condition holds while time passes. */
  async function passUntil(holds: () => boolean, what: string): Promise<void> {
    for (let passed = 0; !holds(); passed++) {
      assert.ok(passed < 1000, what);
      await pass(250);
    }
  }

  const addHook = (name: string): void => on.addHook(stage.emulator.store, on.VALIDATING, name);
  const clearBundle = (name: string): void => {
    const { store } = stage.emulator;
    const before = store.get(on.VALIDATING, undefined, name) as unknown as { webhooks: { clientConfig: object }[] };
    const webhooks = before.webhooks.map((entry) => ({ ...entry, clientConfig: { service: {} } }));
    store.update(on.VALIDATING, { ...before, webhooks } as never);
  };

  it("injects into added or edited configurations before any time passes", async () => {
    const ca = await giveSecret(stage);
    const { counts } = follow();
    await until(() => counts.watches === 2, "both kinds are watched");
    await pass(1000);
    const from = stage.time.now();
    addHook("late");
    await until(() => bundle(stage, "late")[0] === ca, "what is added has the bundle");
    assert.equal(stage.time.now(), from);
    await passUntil(() => counts.lists === 6, "the check after its own injection");
    await pass(1000);
    clearBundle("late");
    const edited = stage.time.now();
    await until(() => bundle(stage, "late")[0] === ca, "what is edited has the bundle");
    assert.equal(stage.time.now(), edited);
  });

  it("checks again when a watch has ended, and watches again", async () => {
    const ca = await giveSecret(stage);
    const { counts } = follow();
    await until(() => counts.watches === 2, "both kinds are watched");
    await pass(1000);
    assert.equal(stage.emulator.faults.cutWatches(on.VALIDATING), 1);
    await pass(250);
    addHook("meanwhile");
    const from = stage.time.now();
    await passUntil(() => bundle(stage, "meanwhile")[0] === ca && counts.watches === 3, "a check, and a new watch");
    assert.ok(stage.time.now() - from < 25_000, "before the next periodic check");
    await pass(3000);
    addHook("afterwards");
    await until(() => bundle(stage, "afterwards")[0] === ca, "the new watch hears of it");
  });

  it("without the right to watch checks every 30 s, and logs that once", async () => {
    const ca = await giveSecret(stage);
    const { cluster } = stage.connect();
    const watch: typeof cluster.watch = () => Promise.reject(new RolloutError("Forbidden", "not you"));
    const { counts, lines } = follow({ cluster: { ...cluster, watch } });
    await until(() => counts.watches === 2, "it tried");
    addHook("late");
    await pass(29_000);
    assert.deepEqual([counts.lists, bundle(stage, "late")], [2, [""]]);
    await passUntil(() => bundle(stage, "late")[0] === ca, "the next check");
    await passUntil(() => counts.lists === 6 && counts.watches === 6, "the one after it, and that it tried again");
    assert.equal(lines.filter((line) => line.includes("are not watched")).length, 1);
  });
});
