/**
 * Requested evictions on a real API server, under the rights of the manifests. A control plane before 1.37 does not know
 * the kind: there it is a CustomResourceDefinition with the published schema, and the test stands in for the controller.
 */
import assert from "node:assert/strict";
import { EVICTION_DEFINITION, type EvictionStatus, refusals } from "../../reconciler/evictions/definition.ts";
import { evictionOf } from "../../reconciler/evictions/play.ts";
import { RESPONDER } from "../../../reconciler/evictions/eviction.ts";
import { applyRbac } from "../stage/access.ts";
import { define, putDefinition } from "../stage/definitions.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

interface Stored {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status?: EvictionStatus;
}

scenario(
  "requested evictions of two zones go one after the other, and the second one says why it waits",
  async (stage) => {
    const { admin, call, create, namespace, start } = stage;
    await define(admin, "zoneawarepoddisruptionbudgets", "rolloutgroups");
    await putDefinition(admin, EVICTION_DEFINITION);
    await create(["zone-a", "zone-b"].map((name) => ({ group: "cache", name, replicas: 2 })));
    await createBudget(stage, "cache");
    await applyRbac(admin, namespace, "eviction-responder");
    const path = `/apis/lifecycle.k8s.io/v1alpha1/namespaces/${namespace}/evictions`;
    const before = new Map<string, EvictionStatus>();
    for (const name of ["zone-a-0", "zone-b-0"]) {
      const pod = await call<Stored>("GET", `/api/v1/namespaces/${namespace}/pods/${name}`);
      const eviction = evictionOf({ name, uid: pod.metadata.uid }, Date.now());
      const metadata = { ...eviction.metadata, namespace };
      const made = await call<Stored & object>("POST", path, { ...eviction, metadata });
      await call("PUT", `${path}/${metadata.name}/status`, { ...made, status: eviction.status });
      before.set(metadata.name, eviction.status);
    }

    const reconciler = start({ EVICTION_RESPONDER: "true" });
    const read = async () => (await call<{ items: readonly Stored[] }>("GET", path)).items;
    const own = ({ status }: Stored) => status?.responders?.find(({ name }) => name === RESPONDER);
    await until("both are answered", async () =>
      (await read()).every((one) => own(one)?.heartbeatTime !== undefined || own(one)?.completionTime !== undefined),
    );
    const answers = await read();
    for (const { metadata, status } of answers)
      assert.deepEqual(refusals(before.get(metadata.name) ?? {}, status ?? {}, Date.now()), []);
    const goes = answers.filter((one) => own(one)?.completionTime !== undefined);
    const waits = answers.filter((one) => own(one)?.completionTime === undefined);
    assert.deepEqual([goes.length, waits.length], [1, 1]);
    assert.match(waits.map(own)[0]?.message ?? "", /^BudgetSpent: 1 pod not ready in zone-[ab]$/);
    assert.match(goes.map(own)[0]?.message ?? "", /^Allowed: zpdb met across 2 zones/);
    const pods = await call<{ items: readonly unknown[] }>("GET", `/api/v1/namespaces/${namespace}/pods`);
    assert.equal(pods.items.length, 4, "nothing is deleted");
    assert.doesNotMatch(reconciler.output(), /could not be answered|has no verdict|could not be estimated/);
    assert.equal(await reconciler.end(), 0);
  },
);
