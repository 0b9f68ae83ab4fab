/** Nothing is called protected that was not seen to be: the eviction webhook in place, missing, dead, or with a wrong CA. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { define } from "../../demo/definitions.ts";
import { connect } from "../../cluster/conformance/client.ts";
import { BUDGETS, setBudgetStage, writeBudget } from "../../reconciler/budget-stage.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { createBudgetKeeper } from "../../../reconciler/budget/act/keep-budgets.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { gatherZones } from "../../../reconciler/snapshot/gather.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { guardEvictions, issue } from "../guard-stage.ts";
import { openTerminal } from "../stage.ts";

const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Keeps the budgets as a reconciler does after a tick. */
function keeperOf({ cluster, clock }: Pick<Context, "cluster" | "clock">): () => Promise<void> {
  const metrics = createMetrics().budgets;
  const keep = createBudgetKeeper({ cluster, clock, log: QUIET, metrics, emitEvents: () => {}, noteKind: () => {} });
  return async () => {
    const { groups } = await gatherZones(["default"], { cluster });
    await keep(["default"], groups, { fence: { write: () => ({}) }, stop: new AbortController().signal });
  };
}

describe("the eviction webhook", { timeout: 300_000 }, () => {
  let stage: Stage;
  let guard: Awaited<ReturnType<typeof guardEvictions>>;
  let otherCa = "";
  before(async () => {
    stage = await setBudgetStage();
    await define(stage.emulator.store, ["rolloutgroups", "rolloutgates", "phasedrollouts"]);
    writeBudget(stage);
    guard = await guardEvictions(stage);
    otherCa = (await issue()).caPem;
    await stage.time.advance(1000);
  });
  after(async () => {
    guard.close();
    await stage.close();
  });
  const LIVING = { type: "ExternalName", externalName: "127.0.0.1" };
  beforeEach(() => {
    guard.setService(LIVING);
    guard.register();
  });

  /** What a reconciler writes that has just started: twice, with `ms` in between. */
  async function writeTwice(ms: number): Promise<readonly string[]> {
    const { cluster, calls } = stage.connect();
    let later = 0;
    const clock = { ...stage.clock, monotonic: () => stage.clock.monotonic() + later };
    const keep = keeperOf({ cluster, clock });
    for (const pause of [0, ms]) {
      later += pause;
      await keep();
    }
    return calls.filter((call) => /eviction/.test(call));
  }

  it("is asked by the reconciler every 30 s, and not where nothing is registered", async () => {
    assert.equal((await writeTwice(20_000)).length, 1);
    assert.equal((await writeTwice(30_000)).length, 2);
    guard.unregister();
    assert.deepEqual(await writeTwice(30_000), []);
  });

  /** As a reconciler that has just started writes it. */
  async function condition(): Promise<{ status: string; reason: string; message: string } | undefined> {
    const { cluster } = stage.connect();
    await keeperOf({ cluster, clock: stage.clock })();
    const { status } = stage.emulator.store.get(BUDGETS, "default", "ingester") as unknown as {
      status: { conditions: { status: string; reason: string; message: string }[] };
    };
    return status.conditions[0];
  }

  it("answers a probe, whatever the budget says, and evicts and reserves nothing", async (t) => {
    const { run } = await openTerminal(t, stage);
    assert.doesNotMatch((await run("doctor")).out, /zpdb/);
    const { code, out } = await run("explain pod/ingester-zone-a-0");
    assert.match(out, /Can be evicted: {2}the budget has room/);
    assert.equal(code, 0);
    assert.equal((await run("drain-order node-1")).code, 0);
    assert.deepEqual((await condition())?.status, "True");
    assert.match((await condition())?.message ?? "", /has answered a probe/);
    const { status } = stage.emulator.store.get(BUDGETS, "default", "ingester") as {
      status?: { disruptedPods?: object };
    };
    assert.deepEqual(status?.disruptedPods, {});
  });

  const TROUBLES: readonly {
    readonly what: string;
    readonly make: () => void;
    readonly reason: string;
    readonly says: RegExp;
    /** What the reconciler writes, who tries nothing. */
    readonly written: readonly [status: string, reason: string];
    /** Evictions are executed, of two zones at once. */
    readonly isOpen: boolean;
  }[] = [
    {
      what: "is not registered",
      make: () => guard.unregister(),
      reason: "NoWebhook",
      says: /no webhook configuration sends evictions to the disruption budgets/,
      written: ["False", "NoWebhook"],
      isOpen: true,
    },
    {
      what: "does not select the namespace",
      make: () =>
        guard.register({ webhook: { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "other" } } } }),
      reason: "NoWebhook",
      says: /pod-eviction-default\.grafana\.com did not judge it: its selectors or matchConditions leave it out/,
      written: ["False", "NoWebhook"],
      isOpen: true,
    },
    {
      what: "selects objects by a label",
      make: () => guard.register({ webhook: { objectSelector: { matchLabels: { name: "ingester-zone-a" } } } }),
      reason: "NoWebhook",
      says: /its selectors or matchConditions leave it out/,
      written: ["False", "NoWebhook"],
      isOpen: true,
    },
    {
      what: "has no endpoints, and fails open",
      make: () => {
        guard.setService({});
        guard.register({ webhook: { failurePolicy: "Ignore" } });
      },
      reason: "NoWebhook",
      says: /or it fails open and does not answer/,
      written: ["False", "NoWebhook"],
      isOpen: true,
    },
    {
      what: "has no endpoints, and fails closed",
      make: () => guard.setService({}),
      reason: "WebhookDown",
      says: /failed calling webhook .*it fails closed: every eviction in default is refused/,
      written: ["False", "WebhookDown"],
      isOpen: false,
    },
    {
      what: "has the CA of another",
      make: () => guard.register({ caPem: otherCa }),
      reason: "WebhookDown",
      says: /cannot be called, .*certificate.*; it fails closed/,
      written: ["False", "WebhookDown"],
      isOpen: false,
    },
  ];
  for (const { what, make, reason, says, written, isOpen } of TROUBLES)
    it(`${what}: each command and the budget's status say so`, async (t) => {
      make();
      const { run } = await openTerminal(t, stage);
      const explained = await run("explain pod/ingester-zone-a-0");
      assert.match(explained.out, new RegExp(`${isOpen ? "evict: not judged" : "Cannot be evicted"} {2}${reason}\n`));
      assert.match(explained.out, says);
      assert.equal(explained.code, 1);
      const order = await run("drain-order node-1");
      assert.equal(order.code, 1, order.out);
      assert.doesNotMatch(order.out, /yes/);
      const doctor = await run("doctor");
      assert.match(doctor.out, /error {2}zpdb\/ingester: .*\(not-guarded\)/);
      assert.equal(doctor.code, 1);
      const found = await condition();
      assert.deepEqual([found?.status, found?.reason], written, found?.message);
      assert.equal(await evictsTwoZones(), isOpen);
    });

  /** As a dry run: whether pods of two zones may be evicted back to back. */
  async function evictsTwoZones(): Promise<boolean> {
    const client = connect(stage.emulator.kubeconfig());
    const evict = async (name: string): Promise<number> =>
      (
        await client.call({
          method: "POST",
          path: `/api/v1/namespaces/default/pods/${name}/eviction?dryRun=All`,
          body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: "default" } },
        })
      ).status;
    const statuses = [await evict("ingester-zone-a-0"), await evict("ingester-zone-b-0")];
    client.close();
    return statuses.every((status) => status === 201);
  }

  it("is asked with a pod of any budget of the namespace; without a pod, it is checked as well", async (t) => {
    const { store } = stage.emulator;
    const { run } = await openTerminal(t, stage);
    // Its list of pods, which is empty, is read first.
    writeBudget(stage, { selector: { matchLabels: { "rollout-group": "none" } } }, "a-none");
    t.after(() => store.remove(BUDGETS, "default", "a-none"));
    assert.doesNotMatch((await run("doctor")).out, /not-checked/);
    store.remove(BUDGETS, "default", "ingester");
    const { out } = await run("doctor");
    writeBudget(stage);
    assert.doesNotMatch(out, /not-checked/);
  });

  const forbid = (...lists: readonly string[]): (() => void) => {
    const { faults } = stage.emulator;
    const heals = [
      faults.inject({ verb: "create", resource: "pods", effect: { kind: "forbidden", user: "ann" } }),
      ...lists.map((resource) => faults.inject({ verb: "list", resource, effect: { kind: "forbidden" } })),
    ];
    return () => heals.forEach((heal) => heal());
  };

  it("was not tried by one who may not create evictions: no command and no status calls that protected", async (t) => {
    const { run } = await openTerminal(t, stage);
    const heal = forbid();
    const doctor = await run("doctor");
    const order = await run("drain-order node-1");
    const explained = await run("explain pod/ingester-zone-a-0");
    const found = await condition();
    heal();
    assert.match(
      doctor.out,
      /warning {2}zpdb\/ingester: .* a dry-run eviction was not tried: ann may not create pods\/eviction .*\(not-checked\)/,
    );
    assert.equal(doctor.code, 4);
    assert.match(order.out, /not known: .* a dry-run eviction was not tried/);
    assert.equal(order.code, 4);
    assert.match(explained.out, /Can be evicted: .*; but .* a dry-run eviction was not tried/);
    assert.deepEqual([found?.status, found?.reason], ["Unknown", "NotSeen"], found?.message);
  });

  it("is seen by its answer alone, too, where what is registered cannot be read", async () => {
    const heal = ["mutating", "validating"].map((type) =>
      stage.emulator.faults.inject({
        verb: "list",
        resource: `${type}webhookconfigurations.admissionregistration.k8s.io`,
        effect: { kind: "forbidden" },
      }),
    );
    const found = await condition();
    for (const one of heal) one();
    assert.deepEqual([found?.status, found?.reason], ["True", "Protecting"], found?.message);
  });

  it("that can neither be looked at nor asked is unknown to the reconciler, and not True", async () => {
    const heal = forbid(
      "mutatingwebhookconfigurations.admissionregistration.k8s.io",
      "validatingwebhookconfigurations.admissionregistration.k8s.io",
    );
    const found = await condition();
    heal();
    assert.deepEqual([found?.status, found?.reason], ["Unknown", "NotSeen"], found?.message);
  });
});
