/** Evictions on the embedded cluster, with the kind as Kubernetes publishes it and a stand-in for its controller. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RESPONDER } from "../../../../reconciler/evictions/eviction.ts";
import type { Draft } from "../../../emulator/objects.ts";
import { reserved, writeBudget } from "../../budget-stage.ts";
import { EVICTION_DEFINITION, EVICTIONS, type EvictionStatus } from "../definition.ts";
import { DEADLINE_MS, EVICTOR } from "../play.ts";
import { answerer, DEFINITIONS, EVERY_MS, isAllowedByWebhook, play, START_MS } from "../stage.ts";

describe("Evictions that name us", { timeout: 120_000 }, () => {
  it("of two zones go one after the other, and the second one says why it waits and until when", async (t) => {
    const scene = await play(t);
    const { stage, own, evict, control, uid } = scene;
    const [a, b] = ["ingester-zone-a-0", "ingester-zone-b-0"];
    evict(a);
    evict(b);
    const one = answerer(scene);
    await one.visit();
    const [first, second] = own(a).completionTime === undefined ? [b, a] : [a, b];
    assert.notEqual(own(first).completionTime, undefined);
    assert.match(own(first).message ?? "", /^Allowed: zpdb met across 3 zones; it may be evicted now/);
    assert.deepEqual(Object.keys(reserved(stage)), [first]);
    const waits = own(second);
    assert.equal(waits.completionTime, undefined);
    const words = await isAllowedByWebhook(stage, second, uid(second));
    assert.equal(waits.message, `BudgetSpent: ${words}`);

    control();
    const old = uid(first);
    assert.equal(await isAllowedByWebhook(stage, first, old), "Allowed");
    assert.equal(uid(first), old, "we never delete");
    stage.emulator.store.remove("pods", "default", first, { gracePeriodSeconds: 0 });
    await stage.time.advance(EVERY_MS);
    await one.visit();
    await stage.time.advance(EVERY_MS + 5000);
    await one.visit();
    const { heartbeatTime = "", expectedCompletionTime, completionTime } = own(second);
    assert.equal(completionTime, undefined);
    assert.ok(expectedCompletionTime !== undefined, "an estimate");
    // The reservation of the first one lasts for two minutes, whether anybody evicts it or not.
    assert.equal(Date.parse(expectedCompletionTime) - Date.parse(heartbeatTime), 120_000);

    for (let i = 0; i < 5; i++) {
      await stage.time.advance(EVERY_MS);
      await one.visit();
    }
    assert.notEqual(own(second).completionTime, undefined);
    assert.equal(own(second).expectedCompletionTime, undefined);
    assert.deepEqual([...new Set(one.events.map(({ reason }) => reason))].toSorted(), [
      "EvictionAwaited",
      "EvictionHandedOn",
    ]);
    assert.match(await one.metrics.render(), /zonewise_eviction_answers_total\{answer="stepBack"\} 2/);
  });

  it("wait for hours with a heartbeat that keeps the controller's deadline, and without one lose their turn", async (t) => {
    const scene = await play(t);
    const { stage, own, evict, control, statusOf } = scene;
    writeBudget(stage, { maxUnavailable: 0 });
    evict("ingester-zone-a-0");
    const one = answerer(scene);
    const states = () => statusOf("ingester-zone-a-0").targetResponders?.map(({ state }) => state);
    for (let i = 0; i < 120; i++) {
      await one.visit();
      await stage.time.advance(30_000);
      control();
    }
    assert.deepEqual(states(), ["Active", "Inactive"]);
    assert.match(own("ingester-zone-a-0").message ?? "", /^MaxUnavailableZero: max unavailable = 0$/);
    assert.equal(own("ingester-zone-a-0").expectedCompletionTime, undefined);
    const writes = one.calls.filter((call) => call.startsWith("PATCH lifecycle.k8s.io"));
    assert.ok(writes.length <= 61, `${writes.length} heartbeats in an hour`);
    await stage.time.advance(DEADLINE_MS);
    control();
    assert.deepEqual(states(), ["Interrupted", "Active"]);
    await one.visit();
    assert.deepEqual(
      one.events.slice(-1).map(({ reason }) => reason),
      ["EvictionUnanswered"],
    );
  });

  it("are answered by one of two reconcilers, whoever writes first", async (t) => {
    const scene = await play(t);
    writeBudget(scene.stage, { maxUnavailable: 0 });
    scene.evict("ingester-zone-a-0");
    const both = [answerer(scene), answerer(scene, { by: "two" })] as const;
    await Promise.all(both.map((one) => one.visit()));
    const answered = both.flatMap(({ events }) => events);
    assert.equal(answered.length, 1);
    assert.deepEqual(
      both.flatMap(({ entries }) => entries.filter(({ level }) => level === "warn")),
      [],
    );
  });

  it("are decided anew after somebody else has written, and left alone once they are gone", async (t) => {
    const scene = await play(t);
    const { stage, own, evict, change } = scene;
    writeBudget(stage, { maxUnavailable: 0 });
    const [a, b] = ["ingester-zone-a-0", "ingester-zone-b-0"];
    evict(a);
    evict(b);
    let before: ((name: string) => void) | undefined = (name) => {
      if (name.startsWith(a)) return change(a, (status) => ({ ...status, observedGeneration: 2 }) as EvictionStatus);
      const found = stage.emulator.store.list(EVICTIONS).find(({ metadata }) => metadata.name === name);
      if (found) stage.emulator.store.remove(EVICTIONS, "default", name);
    };
    const one = answerer(scene, {
      wrap: (cluster) => ({
        ...cluster,
        list: async function* (...args) {
          for await (const page of cluster.list(...args)) {
            yield page;
            if (args[0].plural !== "evictions") continue;
            for (const item of page.items) before?.((item as Draft).metadata.name ?? "");
          }
        },
      }),
    });
    await one.visit();
    assert.equal(own(a).heartbeatTime, undefined, "a write on an old version");
    assert.equal(one.events.length, 0);
    before = undefined;
    await stage.time.advance(EVERY_MS);
    await one.visit();
    assert.notEqual(own(a).heartbeatTime, undefined);
    assert.deepEqual(
      one.entries.filter(({ level }) => level === "warn"),
      [],
    );
  });

  it("are left to the next responder if the pod is gone, whatever its successor is", async (t) => {
    const scene = await play(t);
    const { stage, own, evict, uid } = scene;
    const pod = "ingester-zone-a-0";
    evict(pod);
    const old = uid(pod);
    stage.emulator.store.remove("pods", "default", pod, { gracePeriodSeconds: 0 });
    await stage.time.advance(START_MS + 5000);
    assert.ok(uid(pod) !== "" && uid(pod) !== old);
    const one = answerer(scene);
    await one.visit();
    assert.match(own(pod).message ?? "", /there is no such pod any more/);
    assert.deepEqual([reserved(stage), one.events], [{}, []]);
  });

  it("of others, withdrawn ones and those of another responder's turn cost a list and no write", async (t) => {
    const scene = await play(t);
    const { stage, evict, change } = scene;
    evict("ingester-zone-a-0", [EVICTOR]);
    evict("ingester-zone-b-0", ["other.example/first", RESPONDER, EVICTOR]);
    evict("ingester-zone-c-0");
    change("ingester-zone-c-0", (status) => ({
      ...status,
      requesters: [{ name: "drainer.example/node", intent: "Withdrawn" }],
    }));
    const one = answerer(scene);
    await one.visit();
    await one.visit();
    assert.deepEqual(one.calls, ["GET lifecycle.k8s.io/v1alpha1/evictions collection"]);
    await stage.time.advance(EVERY_MS);
    await one.visit();
    assert.equal(one.calls.length, 2);
  });

  it("are off where the API server does not know the kind, with one log line, until it does", async (t) => {
    const scene = await play(t, { withKind: false });
    const one = answerer(scene);
    for (let i = 0; i < 3; i++) {
      await one.visit();
      await scene.stage.time.advance(EVERY_MS);
    }
    const said = () => one.entries.map(({ msg }) => msg);
    assert.deepEqual(said(), [
      "answers to Evictions are off: the kind Eviction of lifecycle.k8s.io/v1alpha1 (Kubernetes 1.37, an alpha feature) is not installed",
    ]);
    scene.stage.emulator.store.create(DEFINITIONS, EVICTION_DEFINITION);
    await scene.stage.time.advance(60_000);
    await one.visit();
    assert.deepEqual(said().slice(1), ["answers to Evictions are on"]);
  });
});
