/** What kubectl shows of a disruption budget, on the real control plane. */
import assert from "node:assert/strict";
import { createBudget, serveWebhooks } from "../stage/eviction-stage.ts";
import { remove } from "../stage/client.ts";
import { scenario, type Stage } from "../stage/stage.ts";

const AUTHORIZATION = "/apis/rbac.authorization.k8s.io/v1";

/** As the certificate job's manifests allow it: without it nobody sees that a webhook is registered. */
async function allowHooks({ admin, namespace, defer }: Stage): Promise<void> {
  const metadata = { name: `hooks-${namespace}` };
  const resources = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
  const rules = [{ apiGroups: ["admissionregistration.k8s.io"], resources, verbs: ["list"] }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: metadata.name };
  const subjects = [{ kind: "ServiceAccount", name: "zonewise-reconciler", namespace }];
  await admin.call("POST", `${AUTHORIZATION}/clusterroles`, { metadata, rules });
  await admin.call("POST", `${AUTHORIZATION}/clusterrolebindings`, { metadata, roleRef, subjects });
  for (const kind of ["clusterroles", "clusterrolebindings"])
    defer(() => remove(admin, `${AUTHORIZATION}/${kind}/${metadata.name}`));
}

scenario("a budget says what it protects, and that it selects nothing", async (stage) => {
  const { create, start, kubectl } = stage;
  await create(["zone-a", "zone-b"].map((name) => ({ group: "cache", name, replicas: 2 })));
  await serveWebhooks(stage, 1);
  await allowHooks(stage);
  await createBudget(stage, "cache");
  await createBudget(stage, "nobody");
  const reconciler = start();
  const wait = ["wait", "--timeout=180s"];
  const protecting = await kubectl([...wait, "--for=condition=Protecting", "zpdb/cache"]);
  assert.equal(protecting.code, 0, protecting.text);
  const not = await kubectl([...wait, "--for=condition=Protecting=false", "zpdb/nobody"]);
  assert.equal(not.code, 0, not.text);
  const { text } = await kubectl(["get", "zpdb", "-o", "wide"]);
  assert.match(text, /^cache .* True +Protecting /m);
  assert.match(text, /^nobody .* False +SelectsNothing /m);
  const healthy = "jsonpath={range .status.zones[*]}{.name} {.healthy}/{.expected}{.orphaned};{end}";
  assert.equal((await kubectl(["get", "zpdb", "cache", "-o", healthy])).text, "zone-a 2/2;zone-b 2/2;");
  assert.equal(await reconciler.end(), 0);
});
