/**
 * A group of two zones under a budget: its rollout, evictions in both zones at once, the order in which its nodes are
 * drained, and a zone that goes to 0 replicas and comes back while the other one rolls out.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { entryFile } from "../../entries.ts";
import { createBudget, serveWebhooks } from "../stage/eviction-stage.ts";
import { evictPatiently, keepPod } from "../stage/evict.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const MAIN = entryFile("cli/main.ts");

/** The command line as the administrator. */
const zonewise = (namespace: string, ...words: readonly string[]): Promise<{ code: number; text: string }> =>
  new Promise((resolve) => {
    execFile(process.execPath, [MAIN, "-n", namespace, ...words], (error, out, err) =>
      resolve({ code: error ? Number(error.code) : 0, text: out + err }),
    );
  });

scenario("two zones: one is whole while pods of the other go, and one of 0 replicas holds nobody", async (stage) => {
  const { namespace, timeline, create, start, setImage, done, patchZone } = stage;
  const group = `two-${namespace}`;
  const zones = ["a", "b"].map((letter, i) => ({
    group,
    name: `zone-${letter}`,
    sim: { "sim/node": `node-${i + 1}`, "sim/ready-after-ms": "1000" },
  }));
  const [A = assert.fail(), B = assert.fail()] = zones;
  await create(zones);
  const webhooks = await serveWebhooks(stage, 1);
  try {
    await createBudget(stage, group);
    const reconciler = start();
    await setImage("app:2", zones);
    await done("app:2", zones);
    assert.equal(deletions(timeline.entries).length, 6);

    stage.diagnostic("evictions in both zones at once");
    const answers = await keepPod(stage, "zone-a-0", () =>
      keepPod(stage, "zone-b-0", () => Promise.all(["zone-a-0", "zone-b-0"].map((pod) => evictPatiently(stage, pod)))),
    );
    assert.deepEqual(answers.map(({ code }) => code).toSorted(), [201, 429], JSON.stringify(answers));
    const refused = answers.find(({ code }) => code === 429)?.message ?? "";
    assert.match(refused, /denied the request: 1 pod not ready in zone-[ab]/);
    await done("app:2", zones);

    await timeline.caughtUp();
    assertNoViolations(timeline.entries);

    stage.diagnostic("the order of drains: each zone by itself");
    const wave = async (): Promise<(readonly string[])[]> => {
      const { text } = await zonewise(namespace, "drain-order", "node-1", "node-2", "-o", "json");
      const waves = JSON.parse(text) as { node: string; pods: { namespace: string }[] }[][];
      const own = (pods: readonly { namespace: string }[]): boolean => pods.some((pod) => pod.namespace === namespace);
      return waves.map((nodes) => nodes.flatMap(({ node, pods }) => (own(pods) ? [node] : [])));
    };
    // Pods of other namespaces may let either go first.
    assert.deepEqual((await wave()).filter((nodes) => nodes.length > 0).toSorted(), [["node-1"], ["node-2"]]);

    stage.diagnostic("zone b goes to 0, and zone a rolls out beside it");
    await patchZone(B.name, { spec: { replicas: 0 } });
    await timeline.until("zone b is empty", () => [...timeline.pods.values()].every(({ zone }) => zone !== B.name));
    await setImage("app:3", [A, B]);
    await done("app:3", [A]);
    const isRecorded = (): boolean => {
      const { currentRevision, updateRevision } = timeline.statefulSets.get(B.name)?.status ?? {};
      return currentRevision !== undefined && currentRevision === updateRevision;
    };
    await timeline.until("zone b is recorded", isRecorded);
    const doctor = async (): Promise<string> => (await zonewise(namespace, "doctor")).text;
    assert.match(
      await doctor(),
      /zone-b: it has 0 replicas, and other zones of group \S+ have pods: only\s+zone-a\s+has\s+pods/,
    );
    assert.deepEqual(
      (await wave()).filter((nodes) => nodes.length > 0),
      [["node-1"]],
    );
    const alone = await evictPatiently(stage, "zone-a-1");
    assert.equal(alone.code, 201, alone.message);
    await done("app:3", [A]);

    stage.diagnostic("zone b comes back, and zone a waits for it again");
    await patchZone(B.name, { spec: { replicas: 3 } });
    await done("app:3", zones);
    await until("nothing is left to say", async () => !/zone-empty/.test(await doctor()));
    await setImage("app:4", zones);
    await done("app:4", zones);
    assert.equal(await reconciler.end(), 0);
    // The pods that zone b lost and got by scaling are none of a disruption.
    assertNoViolations(timeline.entries.filter(({ zone }) => zone === A.name));
  } finally {
    await webhooks.close();
  }
});
