/**
 * The downscale webhooks behind a real API server, with kubectl: X09-X11 (N01, N02, N03), and
 * prepare-downscale in both modes.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lease, StatefulSet } from "../../infra/kubernetes/resources.ts";
import { pendingOf } from "../../reconciler/pending-downscales/downscale-lease.ts";
import { laterOf } from "../../reconciler/downscale/pending.ts";
import { openWebhookStage, type WebhookStage } from "./webhook-stage.ts";
import { buildZone } from "./zones.ts";

const NO_DOWNSCALE = { "grafana.com/no-downscale": "true" };
const MIN_TIME = { "grafana.com/min-time-between-zones-downscale": "12h" };
const LAST = "grafana.com/last-downscale";

async function create(stage: WebhookStage, name: string, labels: Record<string, string> = {}, group = ""): Promise<void> {
  const zone = buildZone({ group, name });
  const prepared = {
    "grafana.com/prepare-downscale-http-path": "prepare-downscale",
    "grafana.com/prepare-downscale-http-port": String(stage.podPort),
  };
  const metadata = { ...zone.metadata, labels: { ...zone.metadata?.labels, ...labels }, annotations: prepared };
  const { code, text } = await stage.kubectl(["apply", "-f", "-"], { ...zone, metadata });
  assert.equal(code, 0, text);
  await untilReady(stage, name);
}

async function untilReady(stage: WebhookStage, name: string): Promise<void> {
  for (;;) {
    const { spec, status, metadata } = await stage.get(name);
    const counts = [status?.replicas, status?.readyReplicas, status?.updatedReplicas];
    if (status?.observedGeneration === metadata?.generation && counts.every((count) => count === spec?.replicas)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Returns the object as `kubectl get -o json` prints it, with other replicas. */
async function withReplicas(stage: WebhookStage, name: string, replicas: number): Promise<object> {
  // Its resourceVersion is a precondition, and every status update changes it.
  await untilReady(stage, name);
  const zone = await stage.get(name);
  return { ...zone, spec: { ...zone.spec, replicas } };
}

const patch = (replicas: number): string => JSON.stringify({ spec: { replicas } });

/** The ways to scale with kubectl, by name. */
const SCALE_METHODS: Readonly<Record<string, (stage: WebhookStage, name: string, to: number) => Promise<{ code: number; text: string }>>> =
  {
    scale: (stage, name, to) => stage.kubectl(["scale", "statefulset", name, `--replicas=${to}`]),
    "dry run of scale": (stage, name, to) => stage.kubectl(["scale", "statefulset", name, `--replicas=${to}`, "--dry-run=server"]),
    patch: (stage, name, to) => stage.kubectl(["patch", "statefulset", name, "-p", patch(to)]),
    "patch of the subresource": (stage, name, to) =>
      stage.kubectl(["patch", "statefulset", name, "--subresource=scale", "--type=merge", "-p", patch(to)]),
    replace: async (stage, name, to) => await stage.kubectl(["replace", "-f", "-"], await withReplicas(stage, name, to)),
    apply: async (stage, name, to) => {
      const { apiVersion, kind, metadata, spec } = (await withReplicas(stage, name, to)) as StatefulSet & { spec: object };
      const kept = { name, labels: metadata?.labels, annotations: { ...metadata?.annotations } };
      return await stage.kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], { apiVersion, kind, metadata: kept, spec });
    },
  };

test("no-downscale: every way of scaling with kubectl", async (t) => {
  const stage = await openWebhookStage(t);
  await create(stage, "free");
  await create(stage, "kept", NO_DOWNSCALE);
  for (const [method, scale] of Object.entries(SCALE_METHODS)) {
    const denied = await scale(stage, "kept", 2);
    const why = `downscale of statefulsets/kept in ${stage.namespace} from 3 to 2 replicas is not allowed because it has the label 'grafana.com/no-downscale=true'`;
    assert.notEqual(denied.code, 0, method);
    assert.ok(
      denied.text.includes(`admission webhook "no-downscale-${stage.namespace}.grafana.com" denied the request: ${why}`),
      `${method}: ${denied.text}`,
    );
    assert.equal((await stage.get("kept")).spec?.replicas, 3, method);
    const down = await scale(stage, "free", 2);
    assert.equal(down.code, 0, `${method}: ${down.text}`);
    const up = await scale(stage, "free", 3);
    assert.equal(up.code, 0, `${method}: ${up.text}`);
  }
  const both = await stage.kubectl([
    "patch",
    "statefulset",
    "kept",
    "-p",
    JSON.stringify({ metadata: { labels: { "grafana.com/no-downscale": null } }, spec: { replicas: 2 } }),
  ]);
  assert.match(both.text, /is not allowed because it has the label/);
  const up = await stage.kubectl(["scale", "statefulset", "kept", "--replicas=4"]);
  assert.equal(up.code, 0, up.text);
});

test("no-downscale: a Deployment and a ReplicaSet, by the objects and by their scale subresources", async (t) => {
  const stage = await openWebhookStage(t);
  const labels = { app: "web" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "x" }] } };
  for (const kind of ["Deployment", "ReplicaSet"]) {
    const plural = `${kind.toLowerCase()}s`;
    const object = {
      apiVersion: "apps/v1",
      kind,
      metadata: { name: "web", labels: NO_DOWNSCALE },
      spec: { replicas: 2, selector: { matchLabels: labels }, template },
    };
    const created = await stage.kubectl(["apply", "-f", "-"], object);
    assert.equal(created.code, 0, created.text);
    const commands = [
      ["scale", plural, "web", "--replicas=1"],
      ["patch", plural, "web", "-p", patch(1)],
    ];
    for (const command of commands)
      assert.match((await stage.kubectl(command)).text, new RegExp(`downscale of ${plural}/web in .* from 2 to 1 replicas is not allowed`));
    const up = await stage.kubectl(["scale", plural, "web", "--replicas=3"]);
    assert.equal(up.code, 0, up.text);
  }
});

async function pendingSince(stage: WebhookStage, name: string): Promise<string | undefined> {
  const { items } = await stage.admin.call<{ items: Lease[] }>("GET", `/apis/coordination.k8s.io/v1/namespaces/${stage.namespace}/leases`);
  return items.map((lease) => pendingOf(lease)[name]?.at).find((at) => at !== undefined);
}

const MODES: readonly [string, Record<string, string>][] = [
  ["annotation mode", { USE_ZONE_TRACKER: "false" }],
  ["tracker mode", { USE_ZONE_TRACKER: "true" }],
];

for (const [mode, env] of MODES) {
  const isTracker = env["USE_ZONE_TRACKER"] === "true";

  /**
   * The stored time of the zone's last downscale. After a downscale by its Scale, a Lease holds it until the
   * next tick.
   */
  const lastDownscale = async (stage: WebhookStage, name: string): Promise<string | undefined> => {
    if (!isTracker) return laterOf((await stage.get(name)).metadata?.annotations?.[LAST], await pendingSince(stage, name));
    const path = `/api/v1/namespaces/${stage.namespace}/configmaps/rollout-operator-zone-tracker`;
    const { data } = await stage.admin
      .call<{ data: Record<string, string> }>("GET", path)
      .catch(() => ({ data: {} as Record<string, string> }));
    return data[name] && (JSON.parse(data[name]) as { lastDownscaled: string }).lastDownscaled;
  };

  test(`prepare-downscale in ${mode}: every way of scaling with kubectl`, async (t) => {
    const stage = await openWebhookStage(t, env);
    await create(stage, "zone-a", { "grafana.com/prepare-downscale": "true" });
    for (const [method, scale] of Object.entries(SCALE_METHODS)) {
      const isDry = method.startsWith("dry");
      stage.podRequests.length = 0;
      const down = await scale(stage, "zone-a", 1);
      assert.equal(down.code, 0, `${method}: ${down.text}`);
      // After a conflict with another write the API server calls the webhook again, which prepares the pods
      // again (§4.3).
      assert.deepEqual(new Set(stage.podRequests), new Set(isDry ? [] : ["POST zone-a-2", "POST zone-a-1"]), method);
      if (!isDry) {
        assert.equal((await stage.get("zone-a")).spec?.replicas, 1, method);
        assert.ok(Date.now() - Date.parse((await lastDownscale(stage, "zone-a")) ?? "") < 60_000, method);
      }
      const up = await scale(stage, "zone-a", 3);
      assert.equal(up.code, 0, `${method}: ${up.text}`);
    }
    stage.podRequests.length = 0;
    stage.podResponse = (method, pod) => (method === "POST" && pod === "zone-a-1" ? 500 : 200);
    const refused = await stage.kubectl(["scale", "statefulset", "zone-a", "--replicas=1"]);
    assert.match(refused.text, /is not allowed because one or more pods failed to prepare for shutdown\./);
    // The API server retries a denied request if its cached object was outdated.
    assert.deepEqual(
      new Set(stage.podRequests.filter((call) => call.startsWith("DELETE"))),
      new Set(["DELETE zone-a-1", "DELETE zone-a-2"]),
    );
  });

  test(`prepare-downscale in ${mode}: of two zones that are scaled down at once, one is denied`, async (t) => {
    const stage = await openWebhookStage(t, env);
    const labels = { "grafana.com/prepare-downscale": "true", ...MIN_TIME };
    for (const name of ["zone-a", "zone-b"]) await create(stage, name, labels, "cache");
    if (isTracker) {
      // An empty tracker: without a tracker every zone counts as just downscaled.
      const path = `/api/v1/namespaces/${stage.namespace}/configmaps`;
      await stage.admin.call("POST", path, { metadata: { name: "rollout-operator-zone-tracker" } });
    }
    const both = await Promise.all(["zone-a", "zone-b"].map((name) => stage.kubectl(["patch", "statefulset", name, "-p", patch(2)])));
    assert.deepEqual(both.map(({ code }) => code === 0).toSorted(), [false, true], both.map(({ text }) => text).join());
    const [winner, loser] = both[0]?.code === 0 ? ["zone-a", "zone-b"] : ["zone-b", "zone-a"];
    assert.deepEqual(new Set(stage.podRequests), new Set([`POST ${winner}-2`]));
    const later = await stage.kubectl(["scale", "statefulset", loser, "--replicas=2"]);
    assert.match(
      later.text,
      new RegExp(`statefulset ${winner} was downscaled at .* and is labelled to wait 12h0m0s between zone downscales`),
    );
    await untilReady(stage, winner);
    const again = await stage.kubectl(["scale", "statefulset", winner, "--replicas=1"]);
    assert.equal(again.code, 0, again.text);
  });
}
