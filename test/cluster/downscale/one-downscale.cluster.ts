/**
 * Downscales of three zones at once: two by the reconciler, with and without the label prepare-downscale, and a user's
 * through the webhook.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { certify } from "../../certify.ts";
import { type Admin, remove } from "../stage/client.ts";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { follow, type Followed } from "../stage/follow.ts";
import { startWebhook } from "../stage/refusing-webhook.ts";
import { createReplicaTemplate, mirrorOf } from "../stage/replica-template.ts";
import { openWebhookStage, type WebhookStage } from "./webhook-stage.ts";
import { until } from "../stage/until.ts";
import { buildZone } from "../stage/zones.ts";

/** Of the 10 s in which the API server waits for the webhook. */
const REFUSED_MS = 6000;
const NAMES = ["zone-a", "zone-b", "zone-c"];

/** A webhook that lets the API server wait with the reconciler's downscales until \`whenAsked\` has ended. */
async function delayReconciler(
  t: TestContext,
  { admin, namespace }: WebhookStage,
  whenAsked: () => Promise<void>,
): Promise<void> {
  const pair = await certify("localhost");
  const webhook = await startWebhook(
    { cert: pair.certPem, key: pair.keyPem },
    async () => (await whenAsked(), { allowed: true }),
  );
  const url = `https://localhost:${webhook.port}/`;
  const configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const name = `slow-${namespace}`;
  await admin.call("POST", configurations, {
    metadata: { name },
    webhooks: [
      {
        name: "slow.example.com",
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        timeoutSeconds: 10,
        clientConfig: { url, caBundle: Buffer.from(pair.caPem).toString("base64") },
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        rules: [{ operations: ["UPDATE"], apiGroups: ["apps"], apiVersions: ["v1"], resources: ["statefulsets"] }],
        matchConditions: [
          { name: "by-the-reconciler", expression: "request.userInfo.username.endsWith(':zonewise-reconciler')" },
          { name: "shrinks", expression: "object.spec.replicas < oldObject.spec.replicas" },
        ],
      },
    ],
  });
  t.after(async () => {
    await remove(admin, `${configurations}/${name}`);
    webhook.close();
  });
}

test("never two zones shrink: the reconciler's zones with and without the label, and one that a user shrinks at each moment in between", async (t) => {
  const stage = await openWebhookStage(t);
  const { admin, namespace, timeline } = stage;
  const over = new AbortController();
  t.after(() => over.abort());
  const downscales = await recordDownscales(admin, namespace, over.signal);
  const template = await createReplicaTemplate(admin, namespace, "t");
  const mirror = mirrorOf("t");
  const prepared = {
    "grafana.com/prepare-downscale-http-port": String(stage.pods.port),
    "grafana.com/prepare-downscale-http-path": "prepare-downscale",
  };
  const labels = { "grafana.com/prepare-downscale": "true" };
  const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const zones = [
    buildZone({ group: "ingester", name: "zone-a", annotations: mirror }),
    buildZone({ group: "ingester", name: "zone-b", annotations: { ...mirror, ...prepared }, labels }),
    buildZone({ group: "ingester", name: "zone-c", annotations: prepared, labels }),
  ];
  for (const zone of zones) await admin.call("POST", sets, zone);
  const have = (replicas: number): boolean =>
    NAMES.every((name) => {
      const { metadata, spec, status } = timeline.statefulSets.get(name) ?? {};
      const counts = [spec?.replicas, status?.replicas, status?.readyReplicas];
      return status?.observedGeneration === metadata?.generation && counts.every((count) => count === replicas);
    });
  await timeline.until("all ready", () => have(3));
  const scaleC = async (replicas: number): Promise<string> =>
    await admin.call("PATCH", `${sets}/zone-c`, { spec: { replicas } }).then(() => "", String);

  // In the middle of each of the reconciler's downscales a user requests one.
  const refusals: string[] = [];
  let wanted = 2;
  const REFUSALS = [
    /statefulset zone-a is already in process of updating replicas/,
    /the downscale of zone-b from 3 to 2 replicas, admitted at .*, may still be stored/,
  ];
  await delayReconciler(t, stage, async () => {
    // A next tick may hold the group's Lease for a moment, to see what became of the downscale of zone-b.
    for (const end = performance.now() + REFUSED_MS; performance.now() < end; await sleep(200)) {
      const refusal = await scaleC(wanted);
      refusals.push(refusal);
      if (refusal === "" || REFUSALS.some((one) => one.test(refusal))) return;
    }
  });
  const reconciler = stage.reconcile();
  await admin.call("PATCH", `${template}/scale`, { spec: { replicas: 2 } });
  const areRefused = (): boolean => REFUSALS.every((refusal) => refusals.some((text) => refusal.test(text)));
  await timeline.until("both are refused", () => areRefused() || downscales.overlaps().length > 0);
  assert.deepEqual(downscales.overlaps(), []);
  await until("the user's downscale is admitted", async () => (await scaleC(wanted)) === "");
  await timeline.until("all shrunk", () => have(2));
  // The two recordings have connections of their own.
  await until("all recorded", () => downscales.order().length >= 3);
  assert.deepEqual(downscales.order().toSorted(), NAMES);

  // While a webhook judges the user's downscale, the reconciler wants to shrink its zones.
  stage.pods.respond = async (_method, pod) => {
    if (!pod.startsWith("zone-c")) return 200;
    await admin.call("PATCH", `${template}/scale`, { spec: { replicas: 1 } });
    await reconciler.untilOutput(/zone-a waits to shrink: the downscale of zone-c from \d to 1 replicas, admitted at/);
    return 200;
  };
  wanted = 1;
  const answer = await scaleC(wanted);
  stage.pods.respond = () => 200;
  // On a machine that stood still for longer than the webhook's deadline, the reconciler's zones may shrink first.
  const isFirst = answer === "";
  if (!isFirst) assert.match(answer, /context deadline exceeded|Client\.Timeout|failed to prepare/);
  if (!isFirst) await until("the user's downscale is admitted", async () => (await scaleC(wanted)) === "");
  await timeline.until("all shrunk again", () => have(1));
  await until("all recorded again", () => downscales.order().length >= 6);
  assert.deepEqual(downscales.order().slice(3).toSorted(), NAMES);
  if (isFirst) assert.equal(downscales.order()[3], "zone-c");
  assert.deepEqual(downscales.overlaps(), []);
  assert.equal(await reconciler.end(), 0);
});

// Which zones lost pods by a downscale at the same time, judged by the versions of StatefulSets and pods.

interface Change {
  readonly version: bigint;
  /** A StatefulSet, or a pod of it. */
  readonly zone: string;
  readonly replicas?: number;
  readonly pod?: { readonly ordinal: number; readonly isGone: boolean };
}

interface Downscales {
  /** The zones that were scaled down, in order. */
  readonly order: () => readonly string[];
  /** Each moment at which two zones or more had pods beyond their replicas. */
  readonly overlaps: () => readonly string[];
}

/** Follows the namespace until `signal` fires; resolves once it has listed all objects. */
async function recordDownscales(admin: Admin, namespace: string, signal: AbortSignal): Promise<Downscales> {
  const changes: Change[] = [];
  const versionOf = ({ metadata }: Followed): bigint => BigInt(metadata?.resourceVersion ?? 0);
  await follow(admin, `/apis/apps/v1/namespaces/${namespace}/statefulsets`, signal, (_, object) => {
    changes.push({
      version: versionOf(object),
      zone: object.metadata?.name ?? "",
      replicas: (object as StatefulSet).spec?.replicas ?? 1,
    });
  });
  await follow(admin, `/api/v1/namespaces/${namespace}/pods`, signal, (type, object) => {
    const { zone = "", ordinal = "" } = /^(?<zone>.*)-(?<ordinal>\d+)$/.exec(object.metadata?.name ?? "")?.groups ?? {};
    changes.push({ version: versionOf(object), zone, pod: { ordinal: Number(ordinal), isGone: type === "DELETED" } });
  });

  function replay() {
    const order: string[] = [];
    const overlaps: string[] = [];
    const replicas = new Map<string, number>();
    const pods = new Map<string, Set<number>>();
    for (const { version, zone, replicas: wanted, pod } of changes.toSorted((a, b) => Number(a.version - b.version))) {
      if (wanted !== undefined) {
        if (wanted < (replicas.get(zone) ?? 0)) order.push(zone);
        replicas.set(zone, wanted);
      }
      const own = pods.get(zone) ?? new Set();
      pods.set(zone, own);
      if (pod?.isGone) own.delete(pod.ordinal);
      else if (pod) own.add(pod.ordinal);
      const shrinking = [...pods].filter(([name, ordinals]) =>
        [...ordinals].some((ordinal) => ordinal >= (replicas.get(name) ?? Infinity)),
      );
      if (shrinking.length > 1) overlaps.push(`${version}: ${shrinking.map(([name]) => name).join(", ")}`);
    }
    return { order, overlaps };
  }
  return { order: () => replay().order, overlaps: () => replay().overlaps };
}
