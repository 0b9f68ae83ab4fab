/**
 * Requested evictions on a real API server, under the rights of the manifests. One before 1.37 does not know the kind:
 * there it is a CustomResourceDefinition with the published schema. One of 1.37 serves it on request
 * (test/plane/README.md). Neither has its controller: the test stands in for it.
 */
import assert from "node:assert/strict";
import {
  EVICTION_DEFINITION,
  EVICTIONS,
  type EvictionStatus,
  refusals,
} from "../../reconciler/evictions/definition.ts";
import { advanceEviction, evictionOf, EVICTOR } from "../../reconciler/evictions/play.ts";
import { RESPONDER } from "../../../reconciler/evictions/eviction.ts";
import { applyRbac } from "../stage/access.ts";
import type { Admin } from "../stage/client.ts";
import { define, putDefinition } from "../stage/definitions.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import { evict } from "../stage/evict.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { buildZone } from "../stage/zones.ts";

interface Stored {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string };
  readonly spec: { readonly target: { readonly pod: { readonly name: string } } };
  readonly status: EvictionStatus;
}

const API = "/apis/lifecycle.k8s.io/v1alpha1";
const pathOf = (namespace: string): string => `${API}/namespaces/${namespace}/evictions`;
const own = ({ status }: Stored) => status.responders?.find(({ name }) => name === RESPONDER);

/** Whether the API server knows the kind by itself; one that does not gets its definition. */
async function serveKind(admin: Admin): Promise<boolean> {
  const found = async (path: string): Promise<boolean> => {
    try {
      await admin.call("GET", path);
      return true;
    } catch (error) {
      if ((error as Error).cause === 404) return false;
      throw error;
    }
  };
  const isDefined = await found(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${EVICTIONS}`);
  if (!isDefined && (await found(API))) return true;
  await putDefinition(admin, EVICTION_DEFINITION);
  return false;
}

/** Times of objects are whole seconds: a shorter start is none that could be estimated by. */
const START_MS = 3000;

/** Two zones of two pods under a budget. */
async function setScene(stage: Stage): Promise<void> {
  const { admin, create } = stage;
  await define(admin, "zoneawarepoddisruptionbudgets", "rolloutgroups");
  const sim = { "sim/ready-after-ms": String(START_MS) };
  await create(["zone-a", "zone-b"].map((name) => ({ group: "cache", name, replicas: 2, sim })));
  await createBudget(stage, "cache");
}

/** Makes the Eviction of a pod, as the controller does, with us as its active responder. */
async function request({ call, namespace }: Stage, name: string): Promise<Stored> {
  const pod = await call<Stored>("GET", `/api/v1/namespaces/${namespace}/pods/${name}`);
  const { status, ...eviction } = evictionOf({ name, uid: pod.metadata.uid }, Date.now());
  const metadata = { ...eviction.metadata, namespace };
  const made = await call<Stored>("POST", pathOf(namespace), { ...eviction, metadata });
  return await putStatus({ call, namespace }, made, status);
}

const putStatus = async (
  { call, namespace }: Pick<Stage, "call" | "namespace">,
  object: Stored,
  status: EvictionStatus,
): Promise<Stored> =>
  await call<Stored>("PUT", `${pathOf(namespace)}/${object.metadata.name}/status`, { ...object, status });

scenario(
  "requested evictions of two zones go one after the other, and the second one says why it waits and until when",
  async (stage) => {
    const { admin, call, namespace, start, diagnostic } = stage;
    const isBuiltIn = await serveKind(admin);
    diagnostic(isBuiltIn ? "the API server's own kind" : "the kind as a CustomResourceDefinition");
    await setScene(stage);
    await applyRbac(admin, namespace, "eviction-responder");
    const before = new Map<string, EvictionStatus>();
    for (const name of ["zone-a-0", "zone-b-0"]) {
      const { metadata, status } = await request(stage, name);
      before.set(metadata.name, status);
    }

    const reconciler = start({ EVICTION_RESPONDER: "true" });
    const read = async () => (await call<{ items: readonly Stored[] }>("GET", pathOf(namespace))).items;
    await until("both are answered", async () =>
      (await read()).every((one) => own(one)?.heartbeatTime !== undefined || own(one)?.completionTime !== undefined),
    );
    const answers = await read();
    for (const { metadata, status } of answers)
      assert.deepEqual(refusals(before.get(metadata.name) ?? {}, status, Date.now()), []);
    const goes = answers.filter((one) => own(one)?.completionTime !== undefined);
    const waits = answers.filter((one) => own(one)?.completionTime === undefined);
    assert.deepEqual([goes.length, waits.length], [1, 1]);
    const [waiting] = waits.map(own);
    assert.match(waiting?.message ?? "", /^BudgetSpent: 1 pod not ready in zone-[ab]$/);
    // The reservation of the first one, which nobody may ever evict, lasts for two minutes.
    const ms = Date.parse(waiting?.expectedCompletionTime ?? "") - Date.parse(waiting?.heartbeatTime ?? "");
    assert.ok(ms > 60_000 && ms <= 125_000, JSON.stringify(waiting));
    assert.match(goes.map(own)[0]?.message ?? "", /^Allowed: zpdb met across 2 zones/);
    const pods = await call<{ items: readonly unknown[] }>("GET", `/api/v1/namespaces/${namespace}/pods`);
    assert.equal(pods.items.length, 4, "nothing is deleted");

    // The next responder's turn, then the end, each by the rules of the API server.
    const [first] = goes;
    assert.ok(first);
    const handedOn = await putStatus(stage, first, advanceEviction(first.status, Date.now(), false));
    const active = handedOn.status.targetResponders?.find(({ state }) => state === "Active");
    assert.equal(active?.name, EVICTOR);
    const { pod } = first.spec.target;
    assert.equal((await evict(stage, pod.name)).code, 201);
    const completionTime = new Date().toISOString().replace(/\.\d+/, "");
    const responders = handedOn.status.responders?.map((one) =>
      one.name === EVICTOR ? { ...one, heartbeatTime: completionTime, completionTime } : one,
    );
    const evicted = await putStatus(stage, handedOn, { ...handedOn.status, responders: responders ?? [] });
    const over = await putStatus(stage, evicted, advanceEviction(evicted.status, Date.now(), true));
    assert.deepEqual(
      over.status.targetResponders?.map(({ state }) => state),
      ["Completed", "Completed"],
    );
    assert.equal(over.status.conditions?.[0]?.type, "TargetEvicted");

    const evicting = waits[0]?.metadata.name;
    await until("the second one goes once the first one's pod is back", async () =>
      (await read()).some((one) => one.metadata.name === evicting && own(one)?.completionTime !== undefined),
    );
    assert.doesNotMatch(reconciler.output(), /could not be answered|has no verdict|could not be estimated/);
    assert.equal(await reconciler.end(), 0);
  },
);

scenario("without its rights the responder says which one it lacks, and takes no turn", async (stage) => {
  const { admin, namespace, start, call } = stage;
  await serveKind(admin);
  await setScene(stage);
  const { metadata } = await request(stage, "zone-a-0");
  const reconciler = start({ EVICTION_RESPONDER: "true" });
  const said =
    /the Evictions could not be listed.*cannot list resource \\"evictions\\" in API group \\"lifecycle\.k8s\.io\\"/;
  await until("it says so", () => said.test(reconciler.output()));
  assert.equal(await reconciler.end(), 0);
  const { status } = await call<Stored>("GET", `${pathOf(namespace)}/${metadata.name}`);
  assert.equal(own({ metadata, status } as Stored)?.heartbeatTime, undefined);
});

scenario(
  "an API server of 1.37 takes the responder in a pod template, and refuses one without a priority",
  async (stage) => {
    const { admin, namespace, call, diagnostic } = stage;
    if (!(await serveKind(admin))) return diagnostic("the API server does not know the field");
    const zone = buildZone({ group: "cache", name: "zone-a" });
    const post = (responder: object) => {
      const spec = { ...zone.spec?.template.spec, evictionResponders: [responder] };
      const body = { ...zone, spec: { ...zone.spec, template: { ...zone.spec?.template, spec } } };
      return call<typeof body>("POST", `/apis/apps/v1/namespaces/${namespace}/statefulsets?dryRun=All`, body);
    };
    const responder = { name: RESPONDER, priority: 10_000 };
    assert.deepEqual((await post(responder)).spec.template.spec.evictionResponders, [responder]);
    await assert.rejects(post({ name: RESPONDER }), /evictionResponders\[0\]\.priority/);
  },
);
