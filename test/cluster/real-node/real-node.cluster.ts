/** The image as containers on a real node, installed as docs/start/install.md says: what it does, and what it survives. */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it, type TestContext } from "node:test";
import type { Secret, WebhookConfiguration } from "../../../infra/kubernetes/resources.ts";
import { drain } from "../eviction/drainers.ts";
import { evictPatiently, keepPod } from "../stage/evict.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { until } from "../stage/until.ts";
import { areReplaced, type Container, killContainer, listContainers, readLayerSizes, runScript } from "./containers.ts";
import { startEvictions, untilAnswered } from "./evictions.ts";
import { findMissing, readMachine } from "./find-node.ts";
import { FUNCTIONS, IMAGE, measured, RECONCILER } from "./installation.ts";
import { labelZones, REFUSALS } from "./refusals.ts";
import { readRuns } from "./runs.ts";
import { openRealStage, type RealStage } from "./stage.ts";

const missing = findMissing(readMachine(process.env));
if (missing) console.log(`the tests on a real node are left out: ${missing}`);

const SECRET = "rollout-operator-self-signed-certificate";
/** How many configurations `complete` installs, each with one webhook. */
const WEBHOOKS = 7;
const MAX_ADDED_BYTES = 60_000_000;
const ROLLOUT_MS = 300_000;
/** The Job of a pod. */
const jobOf = ({ pod }: { readonly pod: string }): string => pod.slice(0, pod.lastIndexOf("-"));

describe("on a real node", { skip: missing ?? false }, () => {
  let stage: RealStage;
  let image = 1;
  before(async () => void (stage = await openRealStage()));
  after(() => stage?.close());
  afterEach(() => assertNoViolations(stage.history()));

  /** Changes the image of all zones; resolves once all pods have it. */
  const rollOut = async (meanwhile: () => Promise<unknown> = async () => {}): Promise<void> => {
    const next = `app:${++image}`;
    await stage.setImage(next, stage.zones);
    await Promise.all([meanwhile(), stage.done(next, stage.zones, ROLLOUT_MS)]);
  };
  const measure = async (t: TestContext, what: string, run: () => Promise<unknown>): Promise<void> =>
    t.diagnostic(await measured(what, run));
  const certificate = async (): Promise<Readonly<Record<string, string>>> =>
    (await stage.call<Secret>("GET", `/api/v1/namespaces/${stage.namespace}/secrets/${SECRET}`)).data ?? {};
  const bundles = async (): Promise<(string | undefined)[]> => {
    const own = [
      "get",
      "mutatingwebhookconfiguration,validatingwebhookconfiguration",
      "-l",
      `grafana.com/namespace=${stage.namespace}`,
    ];
    const { items } = JSON.parse(await stage.kubectl([...own, "-o", "json"])) as { items: WebhookConfiguration[] };
    return items.flatMap(({ webhooks = [] }) => webhooks.map(({ clientConfig }) => clientConfig.caBundle));
  };
  const untilTrue = (condition: () => Promise<boolean>): Promise<void> =>
    until("what the test waits for", condition, ROLLOUT_MS);

  it("the image adds at most 60 MB to its base", async (t) => {
    const [base = 0, ...added] = await readLayerSizes(IMAGE);
    const sum = added.reduce((a, b) => a + b, 0);
    t.diagnostic(`base ${(base / 1e6).toFixed(1)} MB, added ${(sum / 1e6).toFixed(1)} MB`);
    assert.ok(sum > 0 && sum <= MAX_ADDED_BYTES);
  });

  it("the installation is Ready where restricted pods are enforced, and every webhook has the CA of the Secret", async (t) => {
    for (const figure of stage.figures) t.diagnostic(figure);
    const { "ca.crt": ca } = await certificate();
    assert.ok(ca);
    // It is injected beside the ticks.
    await untilTrue(async () => (await bundles()).every((bundle) => bundle === ca));
    assert.equal((await bundles()).length, WEBHOOKS);
    assert.deepEqual(await stage.events("FailedCreate"), []);
    assert.equal((await listContainers(stage, FUNCTIONS)).length, 2);
  });

  it("a rollout goes zone by zone", async (t) => {
    await measure(t, "rollout of 9 pods", () => rollOut());
    assert.equal(deletions(stage.history()).length, 9);
  });

  it("two nodes in different zones are drained at once", async (t) => {
    const nodes = ["node-1", "node-2"];
    const before = new Map([...stage.timeline.pods.values()].map(({ pod, uid }) => [pod, uid]));
    try {
      await measure(t, "drain of 6 pods", () => Promise.all(nodes.map((node) => drain(node, stage.group))));
    } finally {
      for (const node of nodes) await stage.kubectl(["uncordon", node]);
    }
    await stage.timeline.caughtUp();
    const kept = [...stage.timeline.pods.values()].filter(
      ({ pod, uid, group }) => group === stage.group && before.get(pod) === uid,
    );
    assert.deepEqual(kept.map(({ pod }) => pod).toSorted(), ["zone-c-0", "zone-c-1", "zone-c-2"]);
    await stage.done(`app:${image}`, stage.zones);
  });

  it("a second zone's eviction is refused", async () => {
    await keepPod(stage, "zone-a-0", async () => {
      const first = await evictPatiently(stage, "zone-a-0");
      assert.equal(first.code, 201, first.message);
      const { code, message } = await evictPatiently(stage, "zone-b-0");
      assert.equal(code, 429, message);
      assert.match(message, /denied the request: \d pods? (?:not ready|unknown) in zone-a/);
    });
    await stage.done(`app:${image}`, stage.zones);
  });

  it("what must not be is refused", async (t) => {
    const unlabel = await labelZones(stage);
    for (const { name, args, input, says } of REFUSALS)
      await t.test(name, async () => assert.match((await stage.tryKubectl(args, input)).text, says));
    await unlabel();
    for (const { name } of stage.zones) assert.equal(stage.timeline.statefulSets.get(name)?.spec?.replicas, 3);
  });

  it("no eviction is lost while the functions are restarted", async (t) => {
    const evictions = startEvictions(t, stage, stage.group);
    await measure(t, "rollout restart", async () => {
      await stage.kubectl(["rollout", "restart", "deployment/zonewise-functions"]);
      await stage.kubectl(["rollout", "status", "deployment/zonewise-functions", "--timeout=240s"]);
    });
    await untilTrue(async () => (await listContainers(stage, FUNCTIONS)).length === 2);
    await evictions.stop();
    t.diagnostic(evictions.describe());
    assert.deepEqual(evictions.lost, []);
    await stage.done(`app:${image}`, stage.zones);
  });

  it("a run of the CronJob follows another, and none logs an error", async (t) => {
    await untilTrue(async () => (await readRuns(stage)).length > 1);
    const runs = await readRuns(stage);
    for (const { pod, lines } of runs)
      assert.deepEqual(
        lines.filter(({ level }) => level === "error"),
        [],
        pod,
      );
    const gaps = runs.slice(1).map(({ firstTick }, i) => `${(firstTick - (runs[i]?.lastTick ?? NaN)) / 1000} s`);
    t.diagnostic(`from one run's last tick to the next run's first: ${gaps.join(", ")}`);
    const jobs = await stage.call<{ items: { status: { failed?: number } }[] }>(
      "GET",
      `/apis/batch/v1/namespaces/${stage.namespace}/jobs`,
    );
    assert.deepEqual(
      jobs.items.filter(({ status }) => status.failed),
      [],
    );
  });

  for (const count of [1, 2])
    it(`kill -9 of ${count} of 2 functions: evictions are answered again`, async (t) => {
      const evictions = startEvictions(t, stage, stage.group);
      const killed = (await listContainers(stage, FUNCTIONS)).slice(0, count);
      await Promise.all(killed.map(killContainer));
      await measure(t, "evictions answered again", () => untilAnswered(stage, stage.group));
      // The status shows a killed container as running until the kubelet has noticed.
      await untilTrue(async () => areReplaced(killed, await listContainers(stage, FUNCTIONS)));
      await stage.kubectl(["rollout", "status", "deployment/zonewise-functions", "--timeout=240s"]);
      await evictions.stop();
      t.diagnostic(evictions.describe());
      await stage.done(`app:${image}`, stage.zones);
    });

  it("kill -9 of the reconciler in the middle of a rollout: its Job starts a successor, which waits for the Lease and goes on", async (t) => {
    const { timeline } = stage;
    const count = deletions(stage.history()).length;
    await rollOut(async () => {
      await timeline.until(
        "the fourth pod is deleted",
        () => deletions(stage.history()).length >= count + 4,
        ROLLOUT_MS,
      );
      let killed: readonly Container[] = [];
      // One that is listed may have ended: a run hands over to the next one every minute.
      await untilTrue(async () => {
        const running = await listContainers(stage, RECONCILER);
        const kills = await Promise.allSettled(running.map(killContainer));
        killed = running.filter((_, i) => kills[i]?.status === "fulfilled");
        return killed.length > 0;
      });
      const deleted = deletions(stage.history()).length;
      await Promise.all([
        measure(t, "from the kill to the next pod", () =>
          timeline.until("the next pod is deleted", () => deletions(stage.history()).length > deleted, ROLLOUT_MS),
        ),
        untilTrue(async () => {
          const running = await listContainers(stage, RECONCILER);
          return running.some(({ pod, id }) =>
            killed.some((one) => one.id !== id && one.pod !== pod && jobOf(one) === jobOf({ pod })),
          );
        }),
      ]);
    });
  });

  it("a deleted Secret is made again, and evictions are answered again without a restart", async (t) => {
    const { "ca.crt": before } = await certificate();
    const evictions = startEvictions(t, stage, stage.group);
    await stage.kubectl(["delete", "secret", SECRET]);
    await measure(t, "every webhook has the new CA", () =>
      untilTrue(async () => {
        const { "ca.crt": ca } = await certificate();
        return ca !== undefined && ca !== before && (await bundles()).every((bundle) => bundle === ca);
      }),
    );
    await measure(t, "and evictions are answered again after", () => untilAnswered(stage, stage.group, 100));
    await evictions.stop();
    t.diagnostic(evictions.describe());
    await stage.done(`app:${image}`, stage.zones);
  });

  it("the API server is away in the middle of a rollout: all goes on, and no container is restarted", async (t) => {
    const restarts = async (): Promise<unknown> =>
      (await listContainers(stage, FUNCTIONS)).map(({ pod, restarts }) => [pod, restarts]);
    const before = await restarts();
    const count = deletions(stage.history()).length;
    await rollOut(async () => {
      await stage.timeline.until(
        "the fourth pod is deleted",
        () => deletions(stage.history()).length >= count + 4,
        ROLLOUT_MS,
      );
      t.diagnostic(
        await measured("API server killed, 10 s away, ready again", () =>
          runScript("restart", ["kube-apiserver", "10"]),
        ),
      );
      await measure(t, "and evictions are answered again after", () => untilAnswered(stage, stage.group));
    });
    assert.deepEqual(await restarts(), before);
  });

  it("the installation is removed by the steps of the documentation", async () => {
    await stage.remove();
    const left = await stage.kubectl([
      "get",
      "cronjob,deployment,secret,lease,service,role,rolebinding,networkpolicy,pdb",
      "-o",
      "name",
    ]);
    assert.equal(left, "");
  });
});
