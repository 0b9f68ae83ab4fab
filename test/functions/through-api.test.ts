/** The webhooks behind the embedded cluster's API server, over TLS. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { createZpdbValidation } from "../../functions/budgets/zpdb-validation.ts";
import { createNoDownscale } from "../../functions/downscale/no-downscale.ts";
import type { Webhook } from "../../functions/http/webhook.ts";
import { createRaisePartition } from "../../functions/phased/raise-partition.ts";
import { systemClock } from "../../infra/clock.ts";
import { createConcluder } from "../../reconciler/downscale/act/conclude-downscales.ts";
import { amend } from "../builders/objects.ts";
import { review } from "../builders/reviews.ts";
import { connect } from "../cluster/conformance/client.ts";
import { PARTITION_CASES, assertOutcome, write } from "./phased/partition-cases.ts";
import { register } from "./serve-one.ts";
import { createZone, keepingLog, playPods, setStage, startPrepareDownscale } from "./stage.ts";

const MERGE = "application/merge-patch+json";

const SETS = "/apis/apps/v1/namespaces/default/statefulsets";

const {
  webhooks: [{ reinvocationPolicy }],
} = parse(readFileSync("infra/manifests/webhooks/prepare-downscale.yaml", "utf8")) as {
  readonly webhooks: readonly [{ readonly reinvocationPolicy?: string }];
};

/** As the manifests do. */
const OF_SETS = { type: "Mutating", group: "apps", resources: ["statefulsets", "statefulsets/scale"] } as const;
const PREPARING = { ...OF_SETS, reinvocationPolicy };

test("a downscale is prepared and its annotation stored, or denied with a message for the user", async (t) => {
  const stage = await setStage(t);
  const pods = await playPods(t);
  const tools = { cluster: stage.cluster, clock: systemClock };
  const prepare = startPrepareDownscale({ ...tools, podHttp: pods.podHttp });
  for (const name of ["zone-a", "zone-b"])
    createZone(stage, name, { labels: { "grafana.com/min-time-between-zones-downscale": "1h" } });
  createZone(stage, "kept", { group: "", labels: { "grafana.com/no-downscale": "true" } });
  await register(t, stage.emulator, prepare, PREPARING);
  await register(t, stage.emulator, createNoDownscale(stage), { ...OF_SETS, type: "Validating" });
  const client = connect(stage.emulator.kubeconfig());
  t.after(() => client.close());
  const scale = (name: string, replicas: number, below = ""): ReturnType<typeof client.call> =>
    client.call({ method: "PATCH", path: `${SETS}/${name}${below}`, type: MERGE, body: { spec: { replicas } } });
  const messageOf = ({ body }: { body: unknown }): string => (body as { message: string }).message;

  assert.equal((await scale("zone-a", 2)).status, 200);
  assert.deepEqual(pods.seen, ["POST zone-a-2"]);
  const stored = stage.emulator.store.get("statefulsets.apps", "default", "zone-a");
  assert.ok(Date.now() - Date.parse(stored?.metadata.annotations?.["grafana.com/last-downscale"] ?? "") < 60_000);

  const early = await scale("zone-b", 2, "/scale");
  assert.match(
    messageOf(early),
    /^admission webhook "preparedownscale.example.com" denied the request: downscale of statefulsets\/zone-b .* because statefulset zone-a was downscaled at/,
  );
  assert.equal((await scale("zone-a", 1, "/scale")).status, 200);
  const denied = await scale("kept", 1);
  assert.match(
    messageOf(denied),
    /^admission webhook "preparedownscale.example.com" denied the request: .* label 'grafana.com\/no-downscale=true'$/,
  );
  assert.deepEqual(new Set(pods.seen), new Set(["POST zone-a-2", "POST zone-a-1"]));
});

for (const [what, asked, stored] of [
  ["larger", 2, 1],
  ["smaller", 1, 2],
] as const)
  test(`a downscale that another webhook makes ${what} after it is prepared as it is stored`, async (t) => {
    const stage = await setStage(t);
    const pods = await playPods(t);
    const prepare = startPrepareDownscale({ cluster: stage.cluster, clock: systemClock, podHttp: pods.podHttp });
    createZone(stage, "zone-a");
    await register(t, stage.emulator, prepare, PREPARING);
    const path = "/spec/replicas";
    const other: Webhook = {
      name: "raisePartition",
      paths: ["/other"],
      handle: async () => ({ allowed: true, reason: "Fine", patch: [{ op: "replace", path, value: stored }] }),
      onFault: () => assert.fail("the other webhook failed"),
    };
    await register(t, stage.emulator, other, OF_SETS);
    const client = connect(stage.emulator.kubeconfig());
    t.after(() => client.close());
    for (const below of ["", "/scale"]) {
      pods.seen.length = 0;
      const body = { spec: { replicas: asked } };
      const { status } = await client.call({ method: "PATCH", path: `${SETS}/zone-a${below}`, type: MERGE, body });
      assert.equal(status, 200);
      const zone = stage.emulator.store.get("statefulsets.apps", "default", "zone-a");
      assert.equal((zone?.["spec"] as { replicas: number }).replicas, stored);
      assert.deepEqual(new Set(pods.seen), new Set(["POST zone-a-2", "POST zone-a-1"]));
      amend(stage.emulator.store, "StatefulSet", "zone-a", { spec: { replicas: 3 } });
    }
  });

test("an autoscaler's PUT of a scale that names a resourceVersion succeeds at once; the time between zones counts from then on", async (t) => {
  const stage = await setStage(t);
  const pods = await playPods(t);
  const { log } = keepingLog();
  const tools = {
    cluster: stage.cluster,
    clock: systemClock,
    podHttp: pods.podHttp,
    clusterDomain: "x",
    log,
    zoneTracker: "tracker",
  };
  const prepare = startPrepareDownscale(tools);
  for (const name of ["zone-a", "zone-b"])
    createZone(stage, name, { labels: { "grafana.com/min-time-between-zones-downscale": "1h" } });
  await register(t, stage.emulator, prepare, PREPARING);
  const client = connect(stage.emulator.kubeconfig());
  t.after(() => client.close());
  const path = `${SETS}/zone-a/scale`;
  const { body: scale } = await client.call({ method: "GET", path });
  const put = await client.call({ method: "PUT", path, body: { ...(scale as object), spec: { replicas: 2 } } });
  assert.equal(put.status, 200, JSON.stringify(put.body));
  assert.deepEqual(pods.seen, ["POST zone-a-2"]);

  const other = (): ReturnType<typeof client.call> =>
    client.call({ method: "PATCH", path: `${SETS}/zone-b/scale`, type: MERGE, body: { spec: { replicas: 2 } } });
  const early =
    /because statefulset zone-a was downscaled at .* and is labelled to wait 1h0m0s between zone downscales$/;
  assert.match(((await other()).body as { message: string }).message, early);

  const annotation = (): string | undefined =>
    stage.emulator.store.get("statefulsets.apps", "default", "zone-a")?.metadata.annotations?.[
      "grafana.com/last-downscale"
    ];
  assert.equal(annotation(), undefined);
  await createConcluder(tools)(
    { ...tools, fence: { write: () => ({}) }, stop: t.signal },
    { namespaces: ["default"], recorder: { emitEvents: () => {} } },
  );
  assert.ok(Date.now() - Date.parse(annotation() ?? "") < 60_000);
  assert.match(((await other()).body as { message: string }).message, early);
  assert.deepEqual(pods.seen, ["POST zone-a-2"]);
});

test("of the StatefulSet of a PhasedRollout, only the reconciler lowers the partition", async (t) => {
  const stage = await setStage(t);
  await register(t, stage.emulator, createRaisePartition(), { ...OF_SETS, resources: ["statefulsets"] });
  const client = connect(stage.emulator.kubeconfig());
  t.after(() => client.close());
  for (const one of PARTITION_CASES) assertOutcome(one, await write(one, client, "default"));
});

test("a budget is accepted, or refused with its error", async (t) => {
  const { handle } = createZpdbValidation();
  const ask = (object: unknown) =>
    handle({ ...review("Pod", "a"), object }, { path: "", signal: t.signal, deadlineAt: 0, log: keepingLog().log });
  const budget = (spec: object): object => ({
    kind: "ZoneAwarePodDisruptionBudget",
    spec: { selector: { matchLabels: { a: "b" } }, ...spec },
  });
  const CASES: readonly [unknown, string | undefined][] = [
    [budget({ maxUnavailable: 1 }), undefined],
    [budget({ maxUnavailable: -1 }), "invalid value: max unavailable must be 0 <= val, got -1"],
    [undefined, "unexpected end of JSON input"],
    [null, "unexpected end of JSON input"],
    [{ spec: {} }, "Object 'Kind' is missing in the object"],
  ];
  for (const [object, message] of CASES) {
    const answer = await ask(object);
    assert.deepEqual(
      [answer.allowed, answer.message, answer.code],
      message === undefined ? [true, undefined, undefined] : [false, message, 400],
    );
  }
});
