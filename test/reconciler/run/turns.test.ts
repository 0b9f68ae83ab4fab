/** The order of groups across ticks, runs and processes. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { run } from "../../../reconciler/run/run.ts";
import { deploy, runInputOf, setStage, type Stage } from "../stage.ts";

const GROUPS = Array.from({ length: 40 }, (_, i) => `group-${String(i).padStart(2, "0")}`);

describe("if the groups of a namespace take longer than a run", () => {
  let stage: Stage;
  beforeEach(async () => {
    stage = await setStage();
    for (const group of GROUPS) deploy(stage, "x:1", { group, zones: ["a"], replicas: 1 });
    await stage.time.advance(2000);
  });
  afterEach(() => stage.close());

  /** None of the zones is ready: each step lists the pods of its group. */
  const withoutReadyPods = (item: object) => ({
    ...item,
    status: { ...(item as { status?: object }).status, readyReplicas: 0 },
  });

  /** A process whose lists of pods do not end before the run does; resolves with the groups that it began. */
  async function runProcess(identity: string): Promise<string[]> {
    const stop = new AbortController();
    const begun: string[] = [];
    const { cluster } = stage.connect();
    const hanging: Cluster = {
      ...cluster,
      async *list(resource, query, call) {
        for await (const page of cluster.list(resource, query, call))
          yield { ...page, items: page.items.map((item) => withoutReadyPods(item as object)) as never };
        if (resource.plural !== "pods") return;
        begun.push((query.labelSelector ?? "").replace(/^name=(.*)-zone-a$/, "$1"));
        await stage.clock.sleep(600_000, stop.signal);
      },
    };
    let isOver = false;
    const running = run({ ...runInputOf(stage, hanging, identity), stop: stop.signal }).finally(() => (isOver = true));
    for (let ms = 0; ms < 20_000; ms += 500) await stage.time.advance(500);
    stop.abort();
    while (!isOver) await stage.time.advance(50);
    await running;
    return begun;
  }

  it("each run begins 8 of them, and runs of successive minutes reach them all", async () => {
    const reached = new Set<string>();
    const counts: number[] = [];
    for (let i = 0; i < 13; i++) {
      const begun = await runProcess(`process-${i}`);
      counts.push(begun.length);
      for (const group of begun) reached.add(group);
      await stage.time.advance(60_000 - (stage.time.now() % 60_000));
    }
    assert.deepEqual(new Set(counts), new Set([8]));
    assert.equal(reached.size, GROUPS.length, `${reached.size} of ${GROUPS.length}`);
  });
});
