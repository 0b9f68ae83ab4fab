/** prepare-downscale behind a real API server, with kubectl, in both modes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lease } from "../../../infra/kubernetes/resources.ts";
import { pendingOf } from "../../../reconciler/downscale/act/downscale-lease.ts";
import { laterOf } from "../../../reconciler/downscale/pending.ts";
import { createZone, patchOf, untilReady, SCALE_METHODS } from "./scale-methods.ts";
import { openWebhookStage, type WebhookStage } from "./webhook-stage.ts";

const MIN_TIME = { "grafana.com/min-time-between-zones-downscale": "12h" };
const LAST = "grafana.com/last-downscale";

async function pendingSince(stage: WebhookStage, name: string): Promise<string | undefined> {
  const { items } = await stage.admin.call<{ items: Lease[] }>(
    "GET",
    `/apis/coordination.k8s.io/v1/namespaces/${stage.namespace}/leases`,
  );
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
    if (!isTracker)
      return laterOf((await stage.get(name)).metadata?.annotations?.[LAST], await pendingSince(stage, name));
    const path = `/api/v1/namespaces/${stage.namespace}/configmaps/rollout-operator-zone-tracker`;
    const { data } = await stage.admin
      .call<{ data: Record<string, string> }>("GET", path)
      .catch(() => ({ data: {} as Record<string, string> }));
    return data[name] && (JSON.parse(data[name]) as { lastDownscaled: string }).lastDownscaled;
  };

  test(`prepare-downscale in ${mode}: every way of scaling with kubectl`, async (t) => {
    const stage = await openWebhookStage(t, env);
    await createZone(stage, "zone-a", { "grafana.com/prepare-downscale": "true" });
    for (const [method, scale] of Object.entries(SCALE_METHODS)) {
      const isDry = method.startsWith("dry");
      stage.pods.requests.length = 0;
      // Times are stored in whole seconds.
      const from = Date.now() - 1000;
      const down = await scale(stage, "zone-a", 1);
      assert.equal(down.code, 0, `${method}: ${down.text}`);
      // After a conflict with another write the API server calls the webhook again, which prepares the pods
      // again (§4.3).
      assert.deepEqual(new Set(stage.pods.requests), new Set(isDry ? [] : ["POST zone-a-2", "POST zone-a-1"]), method);
      if (!isDry) {
        assert.equal((await stage.get("zone-a")).spec?.replicas, 1, method);
        assert.ok(Date.parse((await lastDownscale(stage, "zone-a")) ?? "") >= from, method);
      }
      const up = await scale(stage, "zone-a", 3);
      assert.equal(up.code, 0, `${method}: ${up.text}`);
    }
    stage.pods.requests.length = 0;
    stage.pods.respond = (method, pod) => (method === "POST" && pod === "zone-a-1" ? 500 : 200);
    const refused = await stage.kubectl(["scale", "statefulset", "zone-a", "--replicas=1"]);
    assert.match(
      refused.text,
      /is not allowed because one or more pods failed to prepare for shutdown: \S+ at http\S+: /,
    );
    // The API server retries a denied request if its cached object was outdated.
    assert.deepEqual(
      new Set(stage.pods.requests.filter((call) => call.startsWith("DELETE"))),
      new Set(["DELETE zone-a-1", "DELETE zone-a-2"]),
    );
    const moved = await stage.kubectl([
      "patch",
      "statefulset",
      "zone-a",
      "--type=merge",
      '--patch={"spec":{"ordinals":{"start":1}}}',
    ]);
    assert.match(
      moved.text,
      /change of spec\.ordinals\.start of statefulsets\/zone-a in .* from 0 to 1 is not allowed/,
    );
  });

  test(`prepare-downscale in ${mode}: of two zones that are scaled down at once, one is denied`, async (t) => {
    const stage = await openWebhookStage(t, env);
    const labels = { "grafana.com/prepare-downscale": "true", ...MIN_TIME };
    for (const name of ["zone-a", "zone-b"]) await createZone(stage, name, labels, "cache");
    if (isTracker) {
      // An empty tracker: without a tracker every zone counts as just downscaled.
      const path = `/api/v1/namespaces/${stage.namespace}/configmaps`;
      await stage.admin.call("POST", path, { metadata: { name: "rollout-operator-zone-tracker" } });
    }
    const both = await Promise.all(
      ["zone-a", "zone-b"].map((name) => stage.kubectl(["patch", "statefulset", name, "-p", patchOf(2)])),
    );
    assert.deepEqual(both.map(({ code }) => code === 0).toSorted(), [false, true], both.map(({ text }) => text).join());
    const [winner, loser] = both[0]?.code === 0 ? ["zone-a", "zone-b"] : ["zone-b", "zone-a"];
    assert.deepEqual(new Set(stage.pods.requests), new Set([`POST ${winner}-2`]));
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
