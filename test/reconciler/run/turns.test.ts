/** The order of groups across ticks, runs and processes. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { createGroupTurns } from "../../../reconciler/run/group-turns.ts";
import { run } from "../../../reconciler/run/run.ts";
import { deploy, runInputOf, setStage, tickOnce, type Stage } from "../stage.ts";

const NAMES = Array.from({ length: 20 }, (_, i) => `group-${String(i).padStart(2, "0")}`);
/** In the order of their turns. */
const GROUPS = createGroupTurns({ monotonic: () => 0 }, new Map())
  .order(new Map(NAMES.map((name) => [`default/${name}`, name])), new Set())
  .map(({ group }) => group);
/** Groups that are begun concurrently. */
const AT_A_TIME = 8;

describe("if time is up before all groups have had their turn", () => {
  let stage: Stage;
  beforeEach(async () => {
    stage = await setStage();
    for (const group of GROUPS) deploy(stage, "x:1", { group, zones: ["a"], replicas: 1 });
    await stage.time.advance(2000);
  });
  afterEach(() => stage.close());

  /** The port; `onPods` sees each group whose pods are listed: the lists that groups share fail. */
  function connect(onPods: (group: string) => void): Cluster {
    const { cluster } = stage.connect();
    return {
      ...cluster,
      async *list(resource, query, call) {
        if (query.labelSelector?.includes(" in ")) throw new RolloutError("Timeout", "shared");
        if (resource.plural === "pods") onPods((query.labelSelector ?? "").replace(/^name=(.*)-zone-a$/, "$1"));
        yield* cluster.list(resource, query, call);
      },
    };
  }

  /** A process that ends at its first list of pods; resolves with the groups that it began. */
  async function runProcess(identity: string): Promise<string[]> {
    const stop = new AbortController();
    const begun: string[] = [];
    const cluster = connect((group) => {
      begun.push(group);
      stop.abort();
    });
    let open = true;
    const running = run({ ...runInputOf(stage, cluster, identity), stop: stop.signal }).finally(() => (open = false));
    while (open) await stage.time.advance(50);
    await running;
    return begun;
  }

  it("runs of different processes 5 minutes apart reach every group, one after the other", async () => {
    const begun: string[][] = [];
    for (let i = 0; i < 5; i++) {
      begun.push(await runProcess(`process-${i}`));
      await stage.time.advance(300_000 - (stage.time.now() % 300_000));
    }
    assert.deepEqual(
      begun.map(({ length }) => length),
      [8, 8, 8, 8, 8],
    );
    assert.deepEqual(begun.flat(), [...GROUPS, ...GROUPS]);
  });

  it("the resync of all groups counts from its first run on, once the last group has been begun", async () => {
    const annotations = () =>
      stage.emulator.store.get("leases.coordination.k8s.io", "default", "zonewise-reconciler")?.metadata.annotations;
    const minute = new Date(stage.time.now()).toISOString().slice(0, 16);
    const resyncedThrough: (string | undefined)[] = [];
    for (let i = 0; i < 5; i++) {
      await runProcess(`process-${i}`);
      resyncedThrough.push(annotations()?.["zonewise/resynced-through"]?.slice(0, 16));
      await stage.time.advance(60_000 - (stage.time.now() % 60_000));
    }
    assert.deepEqual(resyncedThrough.slice(0, 2), [undefined, undefined]);
    assert.ok((resyncedThrough.at(-1) ?? "") >= minute, String(resyncedThrough));
  });

  it("after a killed process the next one begins with the groups after those already begun", async () => {
    const annotations = new Map<string, string>();
    const { cluster } = stage.connect();
    const hanging: Cluster = {
      ...cluster,
      async *list(resource, query, call) {
        if (resource.plural === "pods") await new Promise<never>(() => {});
        yield* cluster.list(resource, query, call);
      },
    };
    void tickOnce(stage, hanging, { annotations, isResyncDue: () => true });
    for (let i = 0; i < 200 && annotations.size === 0; i++) await stage.time.advance(10);
    const begun: string[] = [];
    await tickOnce(
      stage,
      connect((group) => void begun.push(group)),
      { annotations, isResyncDue: () => true },
    );
    assert.deepEqual(begun, [...GROUPS.slice(AT_A_TIME), ...GROUPS.slice(0, AT_A_TIME)]);
  });

  it("a whole round is followed by another from its first group, and a deleted group is skipped", async () => {
    const annotations = new Map<string, string>();
    const order = async (): Promise<string | undefined> => {
      const begun: string[] = [];
      await tickOnce(
        stage,
        connect((group) => void begun.push(group)),
        { annotations, isResyncDue: () => true },
      );
      return begun[0];
    };
    assert.deepEqual([await order(), await order()], [GROUPS[0], GROUPS[0]]);
    for (const group of GROUPS.slice(0, 2))
      stage.emulator.store.remove("statefulsets.apps", "default", `${group}-zone-a`);
    assert.equal(await order(), GROUPS[2]);
  });
});
