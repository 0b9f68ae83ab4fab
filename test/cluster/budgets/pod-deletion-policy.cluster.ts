/** The optional policy on deletions of pods: who is refused, and that everything that has to delete pods still does. */
import assert from "node:assert/strict";
import { evict } from "../stage/evict.ts";
import { enforcePolicies } from "../stage/manifests.ts";
import { scenario } from "../stage/stage.ts";
import { RESTRICTED } from "../stage/zones.ts";
import { until } from "../stage/until.ts";

const FOLDER = "infra/manifests/pod-deletion-policy";
const POLICY = `${FOLDER}/policy.yaml`;
/** Controllers of a test cluster may have the administrator's account, which the tests themselves use. */
const PASSES_ADMIN = (text: string): string =>
  text.replace("'system:kube-scheduler'", "'system:kube-scheduler', 'admin'");
const REFUSED =
  /Forbidden.*pods\/zone-a-0 in .* belongs to the rollout group cache, and a deletion asks no disruption budget/;

scenario(
  "pods of a group are deleted by controllers, kubelets and the reconciler, and by others only if the pod says so",
  async (stage) => {
    const { admin, namespace, timeline } = stage;
    const zones = ["zone-a", "zone-b"].map((name) => ({ group: "cache", name }));
    const remove = async (
      user: string,
      groups: readonly string[] = [],
      ...more: readonly string[]
    ): Promise<string> => {
      const as = ["system:masters", ...groups].map((group) => `--as-group=${group}`);
      const target = more.length > 0 ? more : ["zone-a-0"];
      const inDryRun = ["--wait=false", "--dry-run=server", `--as=${user}`, ...as];
      return (await stage.kubectl(["delete", "pod", ...target, ...inDryRun])).text;
    };
    await enforcePolicies(stage, { folder: FOLDER, edit: { [POLICY]: PASSES_ADMIN } });
    await stage.create(zones);
    const containers = [{ name: "app", image: "app:1", ...RESTRICTED.container }];
    const alone = { metadata: { name: "alone", labels: { "rollout-group": "cache" } } };
    await admin.call("POST", `/api/v1/namespaces/${namespace}/pods`, {
      ...alone,
      spec: { ...RESTRICTED.pod, containers },
    });
    await until("the policy is enforced", async () => REFUSED.test(await remove("jane")));

    const account = (name: string, of = "kube-system"): string => `system:serviceaccount:${of}:${name}`;
    for (const [who, user, groups] of [
      ["a person", "jane", []],
      ["a drain without evictions", "drainer", ["system:authenticated"]],
      ["an account of the namespace", account("default", namespace), []],
      ["the reconciler of another namespace", account("zonewise-reconciler", "default"), []],
    ] as const)
      assert.match(await remove(user, groups), REFUSED, who);
    assert.match(await remove("jane", [], "-l", "zone=zone-a"), REFUSED, "a label selector");
    assert.match(await remove("jane", [], "zone-a-0", "--force", "--grace-period=0"), REFUSED, "by force");
    for (const [who, user, groups] of [
      ["the StatefulSet controller", account("statefulset-controller"), []],
      ["the namespace controller", account("namespace-controller"), []],
      ["the garbage collector", account("generic-garbage-collector"), []],
      ["all controllers by one account", "system:kube-controller-manager", []],
      ["a preemption", "system:kube-scheduler", []],
      ["a kubelet", "system:node:node-1", ["system:nodes"]],
      ["our reconciler", account("zonewise-reconciler", namespace), []],
    ] as const)
      assert.match(await remove(user, groups), /zone-a-0.* deleted/, who);
    assert.match(await remove("jane", [], "alone"), /alone.* deleted/, "a pod of no StatefulSet");

    await stage.annotatePod("zone-a-0", { "zonewise/delete-by-hand": "yes" });
    assert.match(await remove("jane"), REFUSED, "another value");
    await stage.annotatePod("zone-a-0", { "zonewise/delete-by-hand": "true" });
    assert.match(await remove("jane"), /zone-a-0.* deleted/, "the way out");

    assert.equal((await evict(stage, "zone-a-1")).code, 201, "an eviction is no deletion");
    await timeline.until(
      "its successor is ready",
      () => timeline.statefulSets.get("zone-a")?.status?.readyReplicas === 3,
    );
    const reconciler = stage.start();
    await stage.setImage("app:2", zones);
    await stage.done("app:2", zones);
    assert.equal(await reconciler.end(), 0);
    await stage.patchZone("zone-b", { spec: { replicas: 1 } });
    await timeline.until("it is scaled down", () => timeline.statefulSets.get("zone-b")?.status?.replicas === 1);
    await stage.call("DELETE", `/apis/apps/v1/namespaces/${namespace}/statefulsets/zone-b`, {
      propagationPolicy: "Background",
    });
    await until("its pods are collected", async () => {
      const { text } = await stage.kubectl(["get", "pods", "-l", "zone=zone-b", "-o", "name"]);
      return text.trim() === "";
    });
  },
);
