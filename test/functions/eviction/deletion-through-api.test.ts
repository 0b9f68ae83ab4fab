/** Deletions of pods behind the embedded cluster's API server, over TLS (§5.12). */
import assert from "node:assert/strict";
import { afterEach, describe, it, type TestContext } from "node:test";
import { createPodDeletion } from "../../../functions/eviction/pod-deletion.ts";
import { connect } from "../../cluster/conformance/client.ts";
import { reserved, setBudgetStage, startProcess, writeBudget } from "../../reconciler/budget-stage.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { register } from "../serve-one.ts";
import { uidOf } from "./eviction-stage.ts";

let stage: Stage;
afterEach(() => stage.close());

const PODS = "/api/v1/namespaces/default/pods";
const A = "ingester-zone-a-0";

/** Registered without conditions: the function decides by itself who asks. `whileAsked` runs before each answer. */
async function guard(t: TestContext, whileAsked: () => void = () => {}) {
  const { reserver, metrics } = startProcess(stage, "one");
  const webhook = createPodDeletion({ reserver, metrics: metrics.budgets, emitEvents: () => {} });
  const asked: string[] = [];
  const handle: typeof webhook.handle = async (request, context) => {
    asked.push(`${request.operation} ${request.name}`);
    whileAsked();
    // The server counts by the machine's clock, and the stage has its own.
    return await webhook.handle(request, { ...context, deadlineAt: stage.clock.monotonic() + 60_000 });
  };
  await register(
    t,
    stage.emulator,
    { ...webhook, handle },
    { type: "Validating", group: "", resources: ["pods"], operations: ["DELETE"], timeoutSeconds: 30 },
  );
  const client = connect(stage.emulator.kubeconfig());
  t.after(() => client.close());
  const remove = async (name: string, body: object = {}) =>
    await client.call({ method: "DELETE", path: `${PODS}/${name}`, body });
  return { asked, remove };
}

const isGoing = (name: string): boolean =>
  stage.emulator.store.get("pods", "default", name)?.metadata.deletionTimestamp !== undefined;

describe("deletions of pods through the API server", () => {
  it("a dry run in the body of the deletion reserves nothing", async (t) => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const { remove } = await guard(t);
    assert.equal((await remove(A, { dryRun: ["All"] })).status, 200);
    assert.deepEqual([reserved(stage), isGoing(A)], [{}, false]);
  });

  it("a pod that is replaced while its deletion is judged keeps its successor from going unasked", async (t) => {
    stage = await setBudgetStage();
    writeBudget(stage);
    const { store } = stage.emulator;
    let isFirst = true;
    const { asked, remove } = await guard(t, () => {
      if (!isFirst) return;
      isFirst = false;
      const { metadata, ...pod } = store.get("pods", "default", A) ?? assert.fail();
      store.remove("pods", "default", A, { gracePeriodSeconds: 0 });
      const { uid: _uid, resourceVersion: _version, ...kept } = metadata;
      store.create("pods", { ...pod, metadata: kept });
    });
    assert.equal((await remove(A)).status, 200);
    assert.deepEqual(asked, [`DELETE ${A}`, `DELETE ${A}`]);
    assert.equal(reserved(stage)[A]?.uid, uidOf(stage, A));
  });
});
