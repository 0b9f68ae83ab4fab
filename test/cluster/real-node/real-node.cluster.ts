/** The image as containers on a real node, installed as docs/start/install.md says: what it does, and what it survives. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, after, afterEach, before, describe, it } from "node:test";
import type { Secret, WebhookConfiguration } from "../../../infra/kubernetes/resources.ts";
import { type EvictionAnswer, evict } from "../stage/evict.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { createRandom } from "../stage/random.ts";
import type { Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { type Container, areReplaced, killContainer, listContainers, readLayerSizes, runScript } from "./containers.ts";
import { findMissing, readMachine } from "./find-node.ts";
import { FUNCTIONS, IMAGE, RECONCILER, measured } from "./installation.ts";
import { type RealStage, openRealStage } from "./stage.ts";

interface Line {
  readonly ts: string;
  readonly level: string;
  readonly msg: string;
}

interface Run {
  readonly pod: string;
  readonly lines: readonly Line[];
  /** Milliseconds since the epoch. */
  readonly firstTick: number;
  readonly lastTick: number;
}

/** The runs that have ticked and whose pods are still there, in the order of their first ticks. */
async function readRuns({ kubectl }: RealStage): Promise<Run[]> {
  const text = await kubectl(["logs", "--selector", RECONCILER, "--tail=-1", "--prefix"]);
  const lines = new Map<string, Line[]>();
  for (const [, pod = "", json = ""] of text.matchAll(/^\[pod\/(\S+)\/\S+\] (\{.*\})$/gm))
    lines.set(pod, [...(lines.get(pod) ?? []), JSON.parse(json) as Line]);
  const runs = [...lines].flatMap(([pod, all]) => {
    const ticks = all.flatMap(({ ts, msg }) => (msg === "tick" ? [Date.parse(ts)] : []));
    const [firstTick] = ticks;
    const lastTick = ticks.at(-1);
    return firstTick === undefined || lastTick === undefined ? [] : [{ pod, lines: all, firstTick, lastTick }];
  });
  return runs.toSorted((a, b) => a.firstTick - b.firstTick);
}

interface Evictions {
  /** Evictions that got neither a verdict nor a word on the pod's state. */
  readonly lost: readonly EvictionAnswer[];
  readonly describe: () => string;
  /** Resolves once the last answer is there. */
  readonly stop: () => Promise<void>;
}

type Place = Pick<Stage, "call" | "namespace" | "timeline">;

const CLIENTS = 4;
const PAUSE_MS = 20;
/** Evicted, gone already, replaced meanwhile, not now. */
const ANSWERS = new Set([201, 404, 409, 429]);

/** The webhook answers 400 if the pod is gone when it looks. */
const isLost = ({ code, message }: EvictionAnswer): boolean =>
  !ANSWERS.has(code) && !/denied the request: pods \\"\S+ not found/.test(message);

/** Evicts random pods of the group, in any state, until it is stopped, or the test ends, also if it fails. */
function startEvictions(t: TestContext, place: Place, group: string): Evictions {
  const codes = new Map<number, number>();
  const lost: EvictionAnswer[] = [];
  const ended = new AbortController();
  const clients = Array.from({ length: CLIENTS }, async (_, i) => {
    const random = createRandom(`client-${i}`);
    while (!ended.signal.aborted) {
      const pod = random.pick(podsOf(place, group));
      if (pod !== undefined) {
        const answer = await evict(place, pod);
        codes.set(answer.code, (codes.get(answer.code) ?? 0) + 1);
        if (isLost(answer)) lost.push(answer);
      }
      await sleep(PAUSE_MS);
    }
  });
  const stop = async (): Promise<void> => {
    ended.abort();
    await Promise.all(clients);
  };
  t.after(stop);
  return {
    lost,
    stop,
    describe() {
      const sent = [...codes.values()].reduce((sum, count) => sum + count, 0);
      return `${sent} evictions, ${lost.length} lost (${[...codes].map(([code, count]) => `${code}: ${count}`).join(", ")})`;
    },
  };
}

/** Resolves once `count` dry runs of evictions in a row had a verdict; rejects after 5 minutes with the last error. */
async function untilAnswered(place: Place, group: string, count = 20): Promise<void> {
  const deadline = performance.now() + 300_000;
  for (let inARow = 0; inARow < count;) {
    const [pod = ""] = podsOf(place, group);
    const answer = await evict(place, pod, { query: "?dryRun=All" });
    const isAnswered = answer.code === 201 || answer.code === 429;
    inARow = isAnswered ? inARow + 1 : 0;
    if (performance.now() > deadline) throw new Error(`evictions are still not answered: ${answer.message}`);
    if (!isAnswered) await sleep(200);
  }
}

const podsOf = ({ timeline }: Place, group: string): string[] =>
  [...timeline.pods.values()].flatMap((pod) => (pod.group === group ? [pod.pod] : []));

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
