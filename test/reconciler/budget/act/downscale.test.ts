/**
 * Downscales beside evictions, by the real reconciler and the real webhook on the embedded cluster (§5.11): two zones
 * never lose pods together.
 */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { createBackgroundTasks } from "../../../../functions/http/rim.ts";
import type { Answer } from "../../../../functions/http/webhook.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import type { StatefulSet } from "../../../../infra/kubernetes/resources.ts";
import { RolloutError } from "../../../../infra/errors.ts";
import type { Outcome } from "../../../../reconciler/model/outcome.ts";
import { readZone } from "../../../../reconciler/model/zone.ts";
import { createMayDownscale } from "../../../../reconciler/budget/act/may-disrupt.ts";
import { callWebhook, reviewOf, scaleReviewOf, startPrepareDownscale } from "../../../functions/stage.ts";
import {
  BUDGETS,
  handlesOf,
  reserve,
  reserved,
  setBudgetStage,
  startProcess,
  writeBudget,
} from "../../budget-stage.ts";
import { tickOnce, type Stage } from "../../stage.ts";
import { amend } from "../../../builders/objects.ts";

const SETS = "statefulsets.apps";
const JUDGED = { "grafana.com/prepare-downscale": "true" };
const PREPARED = {
  "grafana.com/prepare-downscale-http-path": "prepare",
  "grafana.com/prepare-downscale-http-port": "80",
};
const CRDS = ["ours", "upstream"] as const;

let stage: Stage;
afterEach(() => stage.close());

const zoneNamed = (letter: string): StatefulSet => {
  const found = stage.emulator.store.get(SETS, "default", `ingester-zone-${letter}`);
  assert.ok(found);
  return found;
};

/** Changes a zone as a user does, without any webhook. */
function change(
  letter: string,
  {
    replicas,
    start,
    annotations = {},
    labels = {},
  }: { replicas?: number; start?: number; annotations?: Record<string, string>; labels?: Record<string, string> },
): void {
  const ordinals = start !== undefined && { ordinals: { start } };
  const spec = { ...(replicas !== undefined && { replicas }), ...ordinals };
  amend(stage.emulator.store, "StatefulSet", `ingester-zone-${letter}`, { annotations, labels, spec });
}

/** A new template, which the tick has not rolled out yet. */
function outdate(letter: string): void {
  const found = zoneNamed(letter);
  const [container] = found.spec?.template?.spec?.containers ?? [];
  const template = { ...found.spec?.template, spec: { containers: [{ ...container, image: "x:2" }] } };
  amend(stage.emulator.store, "StatefulSet", `ingester-zone-${letter}`, { spec: { template } });
}

const replicasOf = (letter: string): number | undefined => zoneNamed(letter).spec?.replicas;

/** Zone c follows zone a, which has shrunk to one replica, and its pods are gone. */
async function followerIsToShrink(crd: (typeof CRDS)[number] = "ours", annotations: object = {}): Promise<void> {
  stage = await setBudgetStage({ crd });
  writeBudget(stage);
  change("a", { replicas: 1 });
  await stage.time.advance(5000);
  change("c", { annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-a", ...annotations } });
  await stage.time.advance(1000);
}

async function reconcile(
  cluster = stage.connect().cluster,
  { reserver } = startProcess(stage, "reconciler"),
): Promise<Outcome | undefined> {
  const { outcomes } = await tickOnce(stage, cluster, { mayDownscale: createMayDownscale(reserver, stage.clock) });
  return outcomes[0];
}

/** A dry run succeeds. */
const failWrites = (cluster: Cluster, error: RolloutError): Cluster => ({
  ...cluster,
  change: (resource, patch, call) => (patch.dryRun ? cluster.change(resource, patch, call) : Promise.reject(error)),
});

const reasonsOf = (outcome: Outcome | undefined): string[] =>
  (outcome?.scalingHolds ?? []).map(({ reason, message }) => `${reason}: ${message}`);

const webhookProcess = () => startProcess(stage, "one");

/** The webhook in a process of its own; `status` is the pods' answer to POST. */
async function prepare(letter: string, to: number, { status = 200, viaScale = false } = {}): Promise<Answer> {
  const { cluster } = stage.connect();
  const tasks = createBackgroundTasks();
  const webhook = startPrepareDownscale({
    cluster,
    clock: stage.clock,
    podHttp: { send: async (method) => ({ status: method === "POST" ? status : 200, body: "" }) },
    reserver: webhookProcess().reserver,
    tasks,
  });
  const request = (viaScale ? scaleReviewOf : reviewOf)(zoneNamed(letter), to);
  const answer = await callWebhook(webhook, request, { clock: stage.clock });
  await tasks.settled();
  return answer;
}

for (const crd of CRDS)
  describe(`the reconciler scales zone c down under the definition of budgets that is ${crd}`, () => {
    it("not while an eviction of another zone was allowed", async () => {
      await followerIsToShrink(crd);
      assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "Allowed");
      assert.deepEqual(reasonsOf(await reconcile()), [
        "BudgetSpent: ingester-zone-c waits to shrink: 1 pod not ready in ingester-zone-b",
      ]);
      assert.equal(replicasOf("c"), 3);
    });

    it("and no eviction is allowed from before its write until its pods are gone", async () => {
      await followerIsToShrink(crd);
      const { cluster } = stage.connect();
      const during: string[] = [];
      const interrupted: typeof cluster = {
        ...cluster,
        async change(resource, request, call) {
          if (!request.dryRun) during.push(await webhookProcess().requestDisruption("zone-b-0"));
          return await cluster.change(resource, request, call);
        },
      };
      await reconcile(interrupted);
      assert.equal(replicasOf("c"), 1);
      assert.deepEqual(during, ["2 pods to be removed in ingester-zone-c"]);
      assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "2 pods to be removed in ingester-zone-c");
      await stage.time.advance(5000);
      assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "Allowed");
    });
  });

describe("the reconciler's downscale", () => {
  it("is released if the API server refuses it", async () => {
    await followerIsToShrink();
    const refusing = failWrites(stage.connect().cluster, new RolloutError("Forbidden", "no"));
    assert.match(String(reasonsOf(await reconcile(refusing))), /ScaleRefused/);
    assert.deepEqual(reserved(stage), {});
  });

  it("of a zone that begins at 7 to 2 replicas is reserved from pod 9 on", async () => {
    stage = await setBudgetStage();
    writeBudget(stage);
    change("a", { replicas: 2 });
    change("c", { start: 7, annotations: { "grafana.com/rollout-downscale-leader": "ingester-zone-a" } });
    await stage.time.advance(10_000);
    await reconcile();
    assert.equal(replicasOf("c"), 2);
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-c/1"]);
    assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "1 pod to be removed in ingester-zone-c");
    await stage.time.advance(5000);
    assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "Allowed");
  });

  it("stays reserved if nobody knows whether it was stored, for as long as it may be", async () => {
    await followerIsToShrink();
    await reconcile(failWrites(stage.connect().cluster, new RolloutError("Timeout", "no answer")));
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-c/1"]);
    assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "2 pods to be removed in ingester-zone-c");
    await stage.time.advance(90_000);
    assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "Allowed");
  });

  it("is reserved where a webhook should judge it, too: the webhook may not be installed", async () => {
    await followerIsToShrink();
    change("c", { labels: JUDGED });
    await stage.time.advance(1000);
    await reconcile();
    assert.equal(replicasOf("c"), 1);
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-c/1"]);
  });

  it("reserves nothing while the webhook that judges it refuses it for outdated pods of another zone", async () => {
    await followerIsToShrink();
    change("c", { labels: JUDGED });
    outdate("b");
    await stage.time.advance(1000);
    const process = startProcess(stage, "reconciler");
    assert.match(
      String(reasonsOf(await reconcile(stage.connect().cluster, process))),
      /^OtherZoneNotReady: ingester-zone-c waits to shrink: statefulset ingester-zone-b has 3 non-updated/,
    );
    assert.deepEqual([replicasOf("c"), process.calls], [3, []]);
  });

  it("to forced replicas waits for nobody, but is reserved", async () => {
    await followerIsToShrink("ours", { "grafana.com/rollout-force-replicas": "1" });
    assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "Allowed");
    await reconcile();
    assert.equal(replicasOf("c"), 1);
    assert.deepEqual(Object.keys(reserved(stage)).toSorted(), ["ingester-zone-b-0", "ingester-zone-c/1"]);
  });

  it("and the webhook's of the same write are released each by its own process", async () => {
    await followerIsToShrink();
    const deadlineAt = stage.clock.monotonic() + 5000;
    const zone = readZone(zoneNamed("c"));
    const [ours, webhooks] = [startProcess(stage, "reconciler").reserver, webhookProcess().reserver];
    const first = await ours.reserveDownscale({ zone, to: 1, forced: false, deadlineAt });
    await stage.time.advance(1000);
    const second = await webhooks.reserveDownscale({ zone, to: 1, forced: false, deadlineAt: deadlineAt + 1000 });
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-c/1", "ingester-zone-c/2"]);
    for (const handle of handlesOf(first)) await ours.release(handle, {});
    assert.deepEqual(Object.keys(reserved(stage)), ["ingester-zone-c/2"]);
    for (const handle of handlesOf(second)) await webhooks.release(handle, {});
    assert.deepEqual(reserved(stage), {});
  });

  it("that no budget could be asked about holds its zone alone: the rollout goes on", async () => {
    await followerIsToShrink();
    stage.emulator.faults.inject({ verb: "list", resource: BUDGETS, effect: { kind: "error" } });
    const outcome = await reconcile();
    assert.match(
      String(reasonsOf(outcome)),
      /^BudgetSpent: ingester-zone-c waits to shrink: no decision could be made in time/,
    );
    assert.notEqual(outcome?.state, "failed");
    assert.equal(replicasOf("c"), 3);
  });

  it("waits for both of two budgets, and leaves no reservation on the first if the second denies it", async () => {
    await followerIsToShrink();
    writeBudget(stage, {}, "another");
    reserve(stage, "ingester-zone-b-0");
    assert.match(String(reasonsOf(await reconcile())), /BudgetSpent/);
    assert.deepEqual(reserved(stage, "another"), {});
  });
});

describe("a downscale that prepare-downscale admits", () => {
  async function set(): Promise<void> {
    stage = await setBudgetStage();
    writeBudget(stage);
    for (const zone of ["a", "b", "c"]) change(zone, { labels: JUDGED, annotations: PREPARED });
    await stage.time.advance(1000);
  }

  for (const viaScale of [false, true])
    it(`${viaScale ? "through /scale " : ""}keeps evictions of other zones waiting, also before it is stored`, async () => {
      await set();
      assert.equal((await prepare("a", 2, { viaScale })).allowed, true);
      assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "1 pod to be removed in ingester-zone-a");
      change("a", { replicas: 2 });
      assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "1 pod to be removed in ingester-zone-a");
      await stage.time.advance(5000);
      assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "Allowed");
    });

  it("is denied, and no pod is called, while an eviction of another zone was allowed", async () => {
    await set();
    assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "Allowed");
    const { allowed, message, reason } = await prepare("a", 2, { status: 500 });
    assert.deepEqual([allowed, reason], [false, "BudgetSpent"]);
    assert.match(message ?? "", /is not allowed because 1 pod not ready in ingester-zone-b\.$/);
  });

  it("is released if a pod refuses", async () => {
    await set();
    assert.equal((await prepare("a", 2, { status: 500 })).allowed, false);
    assert.deepEqual(reserved(stage), {});
    assert.equal(await webhookProcess().requestDisruption("zone-b-0"), "Allowed");
  });

  it("stays reserved if a later request for the same pods is refused: the earlier one may still be stored", async () => {
    await set();
    assert.equal((await prepare("a", 2)).allowed, true);
    const [before] = Object.values(reserved(stage));
    await stage.time.advance(1000);
    assert.equal((await prepare("a", 2, { status: 500 })).allowed, false);
    assert.deepEqual(Object.values(reserved(stage)), [before]);
  });
});
