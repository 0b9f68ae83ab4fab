/** RolloutGroups on the embedded cluster: ticks with a writer of statuses, as a session has it. */
import { after, before, describe } from "node:test";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import type { RolloutGroup } from "../../../../infra/kubernetes/custom-resources.ts";
import { type LazyFields, type LogFields, readFields } from "../../../../infra/log.ts";
import type { RolloutGroupStatus } from "../../../../reconciler/group-status/status.ts";
import type { TickResult } from "../../../../reconciler/model/outcome.ts";
import { createGroupStatuses, type GroupStatuses } from "../../../../reconciler/group-status/act/group-statuses.ts";
import { define } from "../../../demo/definitions.ts";
import { deploy, setStage, tickOnce, type Stage } from "../../stage.ts";

export const GROUPS = "rolloutgroups.zonewise.dev";

export async function setStatusStage({ withDefinition = true } = {}): Promise<Stage> {
  const stage = await setStage();
  if (withDefinition) await define(stage.emulator.store, ["rolloutgroups"]);
  await stage.time.advance(1000);
  return stage;
}

export interface Session {
  readonly statuses: GroupStatuses;
  readonly cluster: Cluster;
  readonly calls: string[];
  readonly logged: [level: string, text: string, fields?: LogFields][];
  /** Resolves once no call is under way. */
  readonly settled: () => Promise<void>;
  /** One tick, and the writes that follow it at once. */
  readonly tick: (choices?: Parameters<typeof tickOnce>[2]) => Promise<TickResult>;
  /** A tick after so many milliseconds. */
  readonly tickIn: (ms: number, choices?: Parameters<typeof tickOnce>[2]) => Promise<TickResult>;
  readonly end: () => Promise<void>;
}

interface OnGroup {
  readonly stage: Stage;
  readonly session: Session;
}

/** Tests of a group of three zones that are ready, one after the other; the session has ticked once. */
export function onGroup(title: string, tests: (on: OnGroup) => void): void {
  describe(title, () => {
    const on = {} as { -readonly [K in keyof OnGroup]: OnGroup[K] };
    before(async () => {
      on.stage = await setStatusStage();
      deploy(on.stage, "x:1");
      await on.stage.time.advance(2000);
      on.session = startSession(on.stage);
      await on.session.tick();
    });
    after(async () => {
      await on.session.end();
      await on.stage.close();
    });
    tests(on);
  });
}

/** A process that has just taken the Lease. */
export function startSession(stage: Stage): Session {
  const { cluster: port, calls } = stage.connect();
  const { counted: cluster, settled } = countCalls(port);
  const logged: Session["logged"] = [];
  const note =
    (level: string) =>
    (text: string, fields?: LazyFields): void =>
      void logged.push([level, text, ...(fields ? [readFields(fields)] : [])] as Session["logged"][number]);
  const ended = new AbortController();
  let passes = 0;
  const log = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
  const fence = { write: () => ({}) };
  const statuses = createGroupStatuses({
    cluster,
    fence,
    clock: stage.clock,
    log,
    stop: ended.signal,
  });
  async function tick(choices: Parameters<typeof tickOnce>[2] = {}): Promise<TickResult> {
    const { namespaces = ["default"] } = choices;
    await statuses.beginTick(namespaces);
    const result = await tickOnce(stage, cluster, {
      ...choices,
      onOutcome: (outcome, tookMs) => statuses.report(outcome, { tookMs, passes: ++passes }),
    });
    statuses.endTick(result);
    await settled();
    return result;
  }
  return {
    statuses,
    cluster,
    calls,
    logged,
    settled,
    tick,
    async tickIn(ms, choices) {
      await stage.time.advance(ms);
      return await tick(choices);
    },
    async end() {
      await statuses.flush();
      ended.abort();
    },
  };
}

type Verbs = "get" | "create" | "replace" | "change" | "remove";

/** The same cluster, and a promise for the moment at which none of its calls is under way and no other has followed. */
function countCalls(cluster: Cluster): { readonly counted: Cluster; readonly settled: () => Promise<void> } {
  let open = 0;
  const count = <V extends Verbs>(verb: V): Cluster[V] =>
    (async (...call: Parameters<Cluster[V]>) => {
      open++;
      try {
        return await (cluster[verb] as (...call: unknown[]) => Promise<unknown>)(...call);
      } finally {
        open--;
      }
    }) as Cluster[V];
  const counted = {
    ...cluster,
    get: count("get"),
    create: count("create"),
    replace: count("replace"),
    change: count("change"),
    remove: count("remove"),
  };
  return {
    counted,
    async settled() {
      for (let quiet = 0; quiet < 5; quiet = open > 0 ? 0 : quiet + 1)
        await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

export function groupOf(
  stage: Stage,
  name = "ingester",
): (RolloutGroup & { readonly status?: RolloutGroupStatus }) | undefined {
  return stage.emulator.store.get(GROUPS, "default", name);
}

/** `Ready=False RollingOut, …` */
export function conditionsOf(stage: Stage, name?: string): string {
  const conditions = groupOf(stage, name)?.status?.conditions ?? [];
  return conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`).join(", ");
}
