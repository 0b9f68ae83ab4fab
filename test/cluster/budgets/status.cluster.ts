/** What kubectl shows of a disruption budget, on the real control plane. */
import assert from "node:assert/strict";
import { createBudget, serveWebhooks } from "../stage/eviction-stage.ts";
import { runKubectl } from "../stage/kubectl.ts";
import { scenario } from "../stage/stage.ts";

scenario("a budget says what it protects, and that it selects nothing", async (stage) => {
  const { create, namespace, start } = stage;
  await create(["zone-a", "zone-b"].map((name) => ({ group: "cache", name, replicas: 2 })));
  const webhooks = await serveWebhooks(stage, 1);
  try {
    await createBudget(stage, "cache");
    await createBudget(stage, "nobody");
    const reconciler = start();
    const wait = ["-n", namespace, "wait", "--timeout=180s"];
    const protecting = await runKubectl([...wait, "--for=condition=Protecting", "zpdb/cache"]);
    assert.equal(protecting.code, 0, protecting.text);
    const not = await runKubectl([...wait, "--for=condition=Protecting=false", "zpdb/nobody"]);
    assert.equal(not.code, 0, not.text);
    const { text } = await runKubectl(["-n", namespace, "get", "zpdb", "-o", "wide"]);
    assert.match(text, /^cache .* True +Protecting /m);
    assert.match(text, /^nobody .* False +SelectsNothing /m);
    const zones = await runKubectl([
      "-n",
      namespace,
      "get",
      "zpdb",
      "cache",
      "-o",
      "jsonpath={range .status.zones[*]}{.name} {.healthy}/{.expected} {.disruptionsAllowed};{end}",
    ]);
    assert.equal(zones.text, "zone-a 2/2 1;zone-b 2/2 1;");
    assert.equal(await reconciler.end(), 0);
  } finally {
    await webhooks.close();
  }
});
