/** Gates on the embedded cluster, asked of a scripted Prometheus. */
import { it } from "node:test";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { createLog } from "../../../../infra/log.ts";
import { createPrometheusClient } from "../../../../infra/prometheus/act/client.ts";
import { createChecker } from "../../../../reconciler/checks/act/ask-prometheus.ts";
import { createGates } from "../../../../reconciler/gates/act/tick-gates.ts";
import type { Draft as EventDraft } from "../../../../reconciler/report/events.ts";
import type { TickInput } from "../../../../reconciler/run/tick.ts";
import { define } from "../../../demo/definitions.ts";
import { startPrometheus, type ScriptedPrometheus } from "../../../prometheus/scripted.ts";
import { deploy, setStage, tickOnce, type Stage } from "../../stage.ts";
import { witness, type Witness } from "../../witness.ts";
import { add } from "../../../builders/objects.ts";
import type { GateStatus } from "../adapter.ts";

export const GATES = "rolloutgates.zonewise.dev";

export interface GateStage {
  readonly stage: Stage;
  readonly prometheus: ScriptedPrometheus;
  readonly events: EventDraft[];
  readonly lines: string[];
  /** The checking of a new process. */
  readonly checking: (cluster: Cluster) => TickInput["checking"];
  /** Ticks of new processes, a second apart, until `done` or so many; resolves with the last result. */
  readonly tick: (cluster: Cluster, times: number, done?: () => boolean) => ReturnType<typeof tickOnce>;
  readonly close: () => Promise<void>;
}

/** Three zones of three ready pods each. */
export async function setGateStage({ crd = true } = {}): Promise<GateStage> {
  const stage = await setStage();
  const prometheus = await startPrometheus();
  if (crd) await define(stage.emulator.store, ["rolloutgates"]);
  deploy(stage, "x:1");
  await stage.time.advance(2000);
  const events: EventDraft[] = [];
  const lines: string[] = [];
  const log = createLog({
    level: "info",
    write: (line) => void lines.push(line),
    now: () => new Date(stage.time.now()),
  });
  const client = createPrometheusClient({ timeoutMs: 5000, allowedHosts: [] });
  const checking = (cluster: Cluster): TickInput["checking"] => ({
    checker: createChecker({ cluster, prometheus: client, clock: stage.clock }),
    gates: createGates({ clock: stage.clock, log }),
  });
  const processOf = (cluster: Cluster) => ({
    ...checking(cluster),
    emitEvents: (drafts: readonly EventDraft[]) => void events.push(...drafts),
  });
  return {
    stage,
    prometheus,
    events,
    lines,
    checking,
    async tick(cluster, times, done = () => false) {
      let result = await tickOnce(stage, cluster, processOf(cluster));
      for (let i = 1; i < times && !done(); i++) {
        await stage.time.advance(1000);
        result = await tickOnce(stage, cluster, processOf(cluster));
      }
      return result;
    },
    close: async () => {
      await prometheus[Symbol.asyncDispose]();
      await stage.close();
    },
  };
}

export interface GateScene extends GateStage {
  readonly cluster: Cluster;
  /** The calls of `cluster`. */
  readonly calls: string[];
  readonly seen: Witness;
}

/** Registers a test on a cluster of its own. */
export function onCluster(
  name: string,
  run: (scene: GateScene) => Promise<void>,
  options?: Parameters<typeof setGateStage>[0],
): void {
  it(name, async () => {
    const gates = await setGateStage(options);
    try {
      await run({ ...gates, ...gates.stage.connect(), seen: witness(gates.stage) });
    } finally {
      await gates.close();
    }
  });
}

/** The zones of which a pod was deleted, in the order in which they began. */
export const zonesBegun = ({ seen }: Pick<GateScene, "seen">): string =>
  [...new Set(seen.deleted.map((name) => name.slice(0, -2)))].join();

/** Creates a gate, or changes its spec; between zones, with one check a second that passes after two successes. */
export function writeGate({ stage, prometheus }: GateStage, spec: object = {}, check: object = {}): void {
  const { store } = stage.emulator;
  const query = { expr: "errors > 0", url: prometheus.url };
  const one = {
    name: "errors",
    query,
    successWhen: "NoData",
    initialDelaySeconds: 0,
    periodSeconds: 1,
    successThreshold: 2,
    ...check,
  };
  const defaults = { when: ["BetweenZones"], onError: "Wait", mode: "Enforce", soakSeconds: 0 };
  const whole = { group: "ingester", ...defaults, checks: [one], ...spec };
  const earlier = store.get(GATES, "default", "gate");
  if (earlier) store.update(GATES, { ...earlier, spec: whole });
  else add(store, "RolloutGate", "gate", { spec: whole });
}

export function statusOf({ stage }: GateStage): GateStatus {
  return stage.emulator.store.get(GATES, "default", "gate")?.["status"] as GateStatus;
}

export const conditionOf = (gates: GateStage, type: string) =>
  statusOf(gates).conditions.find((one) => one.type === type);
