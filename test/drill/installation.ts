/**
 * An installation in memory, under virtual time, and a drill beside it: the webhook servers and the reconcilers of the
 * simulated world, without its faults.
 */
import type { TestContext } from "node:test";
import type { ExitCode } from "../../cli/exit.ts";
import { CliError } from "../../cli/exit.ts";
import { createSettings } from "../../cli/gather/settings.ts";
import { plain } from "../../cli/output/text.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import type { KubeObject, Store } from "../emulator/store.ts";
import { drawFrom } from "../simulation/draw.ts";
import { NAMESPACE } from "../simulation/names.ts";
import { seedPlatform } from "../simulation/platform.ts";
import { createSchedule } from "../simulation/schedule.ts";
import { drawShape, type Shape } from "../simulation/shape.ts";
import { createWorld } from "../simulation/world.ts";
import { type Choices, clean, play as playDrill } from "./drill.ts";
import type { Caller } from "./place.ts";

export { NAMESPACE };
export const EVICTION_HOOK = [
  "mutatingwebhookconfigurations.admissionregistration.k8s.io",
  "pod-eviction-zonewise",
] as const;
const NO_DOWNSCALE = ["validatingwebhookconfigurations.admissionregistration.k8s.io", "no-downscale-zonewise"] as const;

export interface Ended {
  readonly code: ExitCode | undefined;
  readonly out: string;
  readonly err: string;
  /** The sentence and the hint of a failure. */
  readonly error: string;
}

export interface Started {
  readonly ended: Promise<Ended>;
  /** A Ctrl-C. */
  readonly interrupt: () => void;
  /** A kill: nothing of it happens any more. */
  readonly kill: () => void;
  readonly out: () => string;
}

export type Flags = Partial<Choices> & { readonly clean?: boolean };

/** Stops at the end of the test. */
export async function openInstallation(t: TestContext, { reconciles = true } = {}) {
  const draw = drawFrom(1);
  const restore = seedPlatform(draw);
  const schedule = createSchedule();
  const world = createWorld({
    schedule,
    draw,
    nodeDraw: draw,
    shape: SHAPE,
    secret: undefined,
    strikes: () => false,
    onCall: () => {},
    onReview: () => {},
    onArrival: () => {},
    onUnanswered: () => {},
    onProcess: (name, text) => {
      if (!reconciles && name.startsWith("reconciler") && text.startsWith("starts"))
        for (const process of world.processes()) if (process.name === name) schedule.after(0, process.kill);
    },
    onHandshake: () => {},
    onHost: () => {},
  });
  const { store } = world;
  t.after(() => {
    world.stop();
    restore();
  });
  // The embedded cluster has no admission policies: the webhook judges whole objects, as the original registers it.
  changeHook(store, NO_DOWNSCALE, (hook) => ({
    ...hook,
    rules: [{ ...(hook["rules"] as object[])[0], resources: ["statefulsets", "statefulsets/scale"] }],
  }));
  await run(1000);

  /** Lets time pass. */
  async function run(ms: number): Promise<void> {
    await schedule.runUntil(schedule.now() + ms);
  }

  let count = 0;
  function start(flags: Flags = {}): Started {
    const { process, connection } = world.admit(`drill-${++count}`);
    const { clock } = process;
    const stop = new AbortController();
    let [out, err] = ["", ""];
    const cluster = connectCluster(connection, { timeoutMs: 10_000, clock, signal: stop.signal });
    const cleanup = connectCluster(connection, { timeoutMs: 10_000, clock });
    const around = {
      cluster,
      cleanup,
      clock,
      namespace: NAMESPACE,
      settings: createSettings({ cluster }),
      io: {
        write: (text: string) => void (out += text),
        warn: (text: string) => void (err += text),
        style: plain,
      },
      signal: stop.signal,
    };
    const choices = { image: undefined, nodeSelector: {}, timeoutMs: 30 * 60_000, json: false, ...flags };
    const ended = (flags.clean ? clean(around) : playDrill(around, choices)).then(
      (code) => ({ code, out, err, error: "" }),
      (error: unknown) => {
        if (!(error instanceof CliError)) throw error;
        return { code: error.exitCode, out, err, error: `${error.message}; ${error.hint ?? ""}` };
      },
    );
    return { ended, interrupt: () => stop.abort(), kill: process.kill, out: () => out + err };
  }

  /** Runs a drill to its end. */
  async function play(flags: Flags = {}): Promise<Ended> {
    return await untilEnded(start(flags));
  }

  /** At most an hour goes by. */
  async function untilEnded({ ended }: Started): Promise<Ended> {
    let found: Ended | undefined;
    let failed: unknown;
    void ended.then(
      (value) => (found = value),
      (error: unknown) => (failed = error),
    );
    for (let seconds = 0; seconds < 3600 && !found && failed === undefined; seconds++) await run(1000);
    return found ?? (await (failed === undefined ? Promise.reject(new Error("it has not ended in an hour")) : ended));
  }

  async function until(condition: () => boolean): Promise<void> {
    for (let i = 0; i < 6000 && !condition(); i++) await run(100);
    if (!condition()) throw new Error("it has not come about in ten minutes");
  }

  /** What removes, and finds what is left. */
  function admitCaller(): Caller {
    const { process, connection } = world.admit(`drill-${++count}`);
    const { clock } = process;
    return { clock, cluster: connectCluster(connection, { timeoutMs: 10_000, clock }) };
  }

  return { store, start, play, admitCaller, run, until, untilEnded, processes: world.processes };
}

export const changeHook = (
  store: Store,
  [resource, name]: readonly [string, string],
  change: (hook: Readonly<Record<string, unknown>>) => object,
): void => {
  const found = store.get(resource, undefined, name) as KubeObject & { readonly webhooks: readonly object[] };
  store.update(resource, { ...found, webhooks: found.webhooks.map((hook) => change(hook as never)) });
};

/** What a drill may leave behind, as `kind namespace/name`; the reconciler's Lease is there without it. */
export function listLeft(store: Store): string[] {
  const kinds = [
    "namespaces",
    "statefulsets.apps",
    "pods",
    "controllerrevisions.apps",
    "leases.coordination.k8s.io",
    "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com",
    "rolloutgroups.zonewise.dev",
    "configmaps",
    "services",
  ];
  return kinds.flatMap((kind) =>
    store
      .list(kind)
      .filter(({ metadata }) => metadata.name !== "zonewise-reconciler")
      .map(({ metadata }) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`),
  );
}

/** Of a seed, without a group, objects and faults of its own. */
const SHAPE: Shape = {
  ...drawShape(drawFrom(1)),
  zones: [],
  budget: undefined,
  mirrored: undefined,
  tracker: false,
  webhookServers: 2,
  skewMs: 0,
  gate: undefined,
  phased: undefined,
  certificate: undefined,
  nodes: undefined,
  ignore: false,
};
