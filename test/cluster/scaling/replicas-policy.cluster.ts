/** The optional policy for replicas of followers and mirroring zones, with the reconciler at work. */
import assert from "node:assert/strict";
import { enforcePolicies } from "../stage/manifests.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const FOLLOWS = { "grafana.com/rollout-downscale-leader": "zone-a" };
const MIRRORS = { "grafana.com/rollout-mirror-replicas-from-resource-name": "nobody" };
const BY_HAND = "zonewise/replicas-by-hand";

scenario(
  "only the reconciler changes the replicas of zones that follow or mirror, unless an annotation says otherwise",
  async (stage) => {
    const { namespace, admin, patchZone, timeline } = stage;
    await enforcePolicies(stage, { folder: "infra/manifests/replicas-policy" });
    const zones = [
      { group: "cache", name: "zone-a" },
      { group: "cache", name: "zone-b", annotations: FOLLOWS },
      { group: "other", name: "mirror", annotations: MIRRORS },
    ];
    await stage.create(zones);
    const scale = (name: string, replicas: number, annotations: Record<string, string | null> = {}): Promise<string> =>
      patchZone(name, { metadata: { annotations }, spec: { replicas } }).then(() => "taken", String);
    const refused =
      /403.*only zonewise-reconciler may change the replicas of statefulsets\/(zone-b|mirror) in .*, from 3 to \d, as/;
    // The API server takes a policy into account a moment after it has stored it.
    await until("the policy is enforced", isGuarded);
    for (const name of ["zone-b", "mirror"]) {
      assert.match(await scale(name, 1), refused);
      assert.match(await scale(name, 4), refused);
      const left = Object.fromEntries(Object.keys({ ...FOLLOWS, ...MIRRORS }).map((key) => [key, null]));
      assert.match(await scale(name, 1, left), refused);
    }
    assert.equal(await scale("zone-a", 4), "taken");
    const reconciler = stage.start();
    await timeline.until("the follower follows", () => timeline.statefulSets.get("zone-b")?.spec?.replicas === 4);
    assert.equal(await reconciler.end(), 0);
    assert.equal(await scale("mirror", 2, { [BY_HAND]: "true" }), "taken");
    assert.equal(await scale("mirror", 3), "taken");
    assert.match(await scale("mirror", 1, { [BY_HAND]: null }), /only zonewise-reconciler may change/);

    async function isGuarded(): Promise<boolean> {
      const answer = await admin.call("PATCH", dryRunOf(namespace, "zone-b"), { spec: { replicas: 1 } }).catch(String);
      return typeof answer === "string" && refused.test(answer);
    }
  },
);

const dryRunOf = (namespace: string, name: string): string =>
  `/apis/apps/v1/namespaces/${namespace}/statefulsets/${name}?dryRun=All`;
