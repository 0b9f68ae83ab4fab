/** A group whose pods do not answer does not hold up the rollout of another one. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { listen } from "../../loopback.ts";
import { PODS_HERE } from "../stage/pods.ts";
import { createReplicaTemplate, mirrorOf } from "../stage/replica-template.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const zonesOf = (group: string) => ["a", "b", "c"].map((zone) => ({ group, name: `${group}-${zone}` }));
/** Two pods of each of three zones. */
const CALLS_OF_A_STEP = 6;

scenario("nine pods are rolled out beside a group whose three delayed downscales meet silent pods", async (stage) => {
  const silent: string[] = [];
  const server = createServer(({ method = "", headers }) => {
    if (method === "POST") silent.push(headers.host ?? "");
  });
  const port = await listen(server, "localhost");
  try {
    const template = await createReplicaTemplate(stage, stage.namespace, "slow");
    const delayed = {
      ...mirrorOf("slow"),
      "grafana.com/rollout-delayed-downscale": "1h",
      "grafana.com/rollout-prepare-delayed-downscale-url": `http://pod:${port}/prepare`,
    };
    const store = zonesOf("store");
    await stage.create([...zonesOf("slow").map((zone) => ({ ...zone, annotations: delayed })), ...store]);
    stage.start({ ...PODS_HERE, RECONCILE_INTERVAL: "1s" });

    const rollOut = async (image: string): Promise<number> => {
      const startedAt = Date.now();
      await stage.setImage(image, store);
      await stage.done(image, store, 300_000);
      return Date.now() - startedAt;
    };
    const alone = await rollOut("app:2");
    await stage.call("PATCH", `${template}/scale`, { spec: { replicas: 1 } });
    await until("a silent pod is called", async () => silent.length > 0);
    const before = silent.length;
    const together = await rollOut("app:3");
    const calls = silent.length - before;
    stage.diagnostic(
      `9 pods: ${alone} ms alone, ${together} ms beside silent pods, which were called ${calls} times meanwhile`,
    );
    // If each of the nine pods had waited for a step of the silent group, there would be nine times the calls.
    assert.ok(
      calls <= 8 * CALLS_OF_A_STEP,
      `${calls} calls of silent pods: each of the rollout's steps has waited for some`,
    );
  } finally {
    server.close().closeAllConnections();
  }
});
