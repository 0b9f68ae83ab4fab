/** Answers to Evictions that cannot be written, and namespaces whose Evictions cannot be listed. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RolloutError } from "../../../../infra/errors.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { evictionIdentity } from "../../../../reconciler/budget/reservation.ts";
import { reserved, startProcess } from "../../budget-stage.ts";
import { answerer, EVERY_MS, isAllowedByWebhook, play } from "../stage.ts";

/** A cluster that refuses to write the status of Evictions, after `before`. */
const refusing =
  (code: "Forbidden" | "Invalid" | "Conflict" | "Timeout", before = (): Promise<unknown> => Promise.resolve()) =>
  (cluster: Cluster): Cluster => ({
    ...cluster,
    change: async (resource, patch, call) => {
      if (resource.plural !== "evictions") return await cluster.change(resource, patch, call);
      await before();
      throw new RolloutError(code, "no");
    },
  });

describe("a yes that cannot be written", { timeout: 120_000 }, () => {
  for (const code of ["Forbidden", "Invalid", "Conflict", "Timeout"] as const)
    it(`reserves nothing for longer than the attempt: ${code}`, async (t) => {
      const scene = await play(t);
      const { stage, own, evict, uid } = scene;
      evict("ingester-zone-a-0");
      const one = answerer(scene, { wrap: refusing(code) });
      for (let i = 0; i < 20; i++) {
        await one.visit();
        assert.deepEqual(reserved(stage), {});
        await stage.time.advance(EVERY_MS);
      }
      assert.equal(own("ingester-zone-a-0").completionTime, undefined);
      assert.equal(await isAllowedByWebhook(stage, "ingester-zone-b-0", uid("ingester-zone-b-0")), "Allowed");
    });

  it("releases nothing by which a webhook has let the pod go meanwhile", async (t) => {
    const scene = await play(t);
    const { stage, evict, uid } = scene;
    const [a, b] = ["ingester-zone-a-0", "ingester-zone-b-0"];
    evict(a);
    const before = async (): Promise<void> => assert.equal(await isAllowedByWebhook(stage, a, uid(a)), "Allowed");
    const one = answerer(scene, { wrap: refusing("Forbidden", before) });
    // Beyond the age at which reservations are renewed.
    for (let i = 0; i < 6; i++) {
      await one.visit();
      assert.equal(reserved(stage)[a]?.by, evictionIdentity("webhook"));
      assert.match(await isAllowedByWebhook(stage, b, uid(b)), /zone-a/);
      await stage.time.advance(EVERY_MS);
    }
  });

  it("leaves alone what the rollout has reserved, whose deletion may still take effect", async (t) => {
    const scene = await play(t);
    const { stage, evict, uid } = scene;
    const a = "ingester-zone-a-0";
    evict(a);
    const rollout = { rollout: { maxUnavailable: 1 }, uid: uid(a) };
    assert.equal(await startProcess(stage, "rollout").requestDisruption("zone-a-0", rollout), "Allowed");
    const earlier = reserved(stage);
    const one = answerer(scene, { wrap: refusing("Forbidden") });
    for (let i = 0; i < 5; i++) {
      await one.visit();
      assert.deepEqual(reserved(stage), earlier);
      await stage.time.advance(EVERY_MS);
    }
  });

  it("is released at the next visit if the release failed as well", async (t) => {
    const scene = await play(t);
    const { stage, evict } = scene;
    evict("ingester-zone-a-0");
    let isReleasable = false;
    let refused = false;
    const wrap = (cluster: Cluster): Cluster => {
      const inner = refusing("Forbidden", () => Promise.resolve((refused = true)))(cluster);
      return {
        ...inner,
        get: async (...args) => {
          if (refused && !isReleasable) throw new RolloutError("Forbidden", "no");
          return await inner.get(...args);
        },
      };
    };
    const one = answerer(scene, { wrap });
    await one.visit();
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-a-0"]);
    isReleasable = true;
    await stage.time.advance(EVERY_MS);
    await one.visit();
    assert.deepEqual(reserved(stage), {});
  });
});

describe("a list of namespaces", { timeout: 120_000 }, () => {
  /** A cluster that lists no Evictions in some namespaces. */
  const denying =
    (...denied: readonly string[]) =>
    (cluster: Cluster): Cluster => ({
      ...cluster,
      list: (resource, query, call) => {
        if (resource.plural !== "evictions" || !denied.includes(query.namespace ?? ""))
          return cluster.list(resource, query, call);
        throw new RolloutError("Forbidden", "no");
      },
    });
  const warnings = (one: ReturnType<typeof answerer>) =>
    one.entries.filter(({ level }) => level === "warn").map(({ msg, namespace }) => [msg, namespace]);

  it("is answered but for the one whose Evictions may not be listed, which is logged", async (t) => {
    const scene = await play(t);
    scene.evict("ingester-zone-a-0");
    const one = answerer(scene, { namespaces: ["other", "default"], wrap: denying("other") });
    await one.visit();
    assert.notEqual(scene.own("ingester-zone-a-0").completionTime, undefined);
    assert.deepEqual(warnings(one), [["the Evictions of a namespace could not be listed", "other"]]);
  });

  it("of which none may be listed is one warning", async (t) => {
    const one = answerer(await play(t), { namespaces: ["other", "default"], wrap: denying("other", "default") });
    await one.visit();
    assert.deepEqual(warnings(one), [["the Evictions could not be listed", undefined]]);
  });

  it("is off without the kind, whatever else is denied", async (t) => {
    const scene = await play(t, { withKind: false });
    const one = answerer(scene, { namespaces: ["other", "default"], wrap: denying("other") });
    await one.visit();
    assert.deepEqual(warnings(one), []);
    assert.match(one.entries.map(({ msg }) => msg).join(), /^answers to Evictions are off/);
  });
});
