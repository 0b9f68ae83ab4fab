/** NATS JetStream on the real node under load, with Zonewise beside it; and how a scene of the proof is played and measured. */
import { randomBytes } from "node:crypto";
import { runScript } from "../cluster/real-node/containers.ts";
import { type Installation, prepareInstallation } from "../cluster/real-node/installation.ts";
import { connectAdmin, remove } from "../cluster/stage/client.ts";
import type { Stage } from "../cluster/stage/stage.ts";
import { recordTimeline } from "../cluster/stage/timeline.ts";
import { type Database, installDatabase } from "./database.ts";
import { type Load, startLoad } from "./load.ts";
import { countWithin, longestGap, mostZonesDown, type Scene } from "./measure.ts";

export const GROUP = "nats";
export const ZONES = ["nats-zone-a", "nats-zone-b", "nats-zone-c"] as const;
/** Servers a zone, but while it is scaled. */
export const REPLICAS = 2;
const STREAMS = 6;
const MAX_MS = 300_000;

export interface Proof extends Pick<Stage, "call" | "namespace" | "timeline"> {
  readonly installation: Installation;
  readonly database: Database;
  readonly load: Load;
  /** Resolves once each zone has `replicas` pods of the newest template, and all are ready. */
  readonly settled: (replicas?: number) => Promise<void>;
  /** Plays a scene, waits until all is well again, and measures it. */
  readonly play: (name: string, run: () => Promise<unknown>, isControl?: boolean) => Promise<Scene>;
  readonly close: () => Promise<void>;
}

export async function openProof(print: (line: string) => void): Promise<Proof> {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  const namespace = `zw-proof-${randomBytes(3).toString("hex")}`;
  await admin.call("POST", "/api/v1/namespaces", {
    metadata: { name: namespace, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
  });
  const timeline = await recordTimeline(admin, namespace);
  const installation = await prepareInstallation(admin, namespace);
  const cleanUps: (() => Promise<unknown> | void)[] = [
    () => admin.close(),
    () => remove(admin, `/api/v1/namespaces/${namespace}`),
    () => installation.remove(),
    () => timeline.stop(),
  ];
  const close = async (): Promise<void> => {
    for (const cleanUp of cleanUps.splice(0).toReversed())
      try {
        await cleanUp();
      } catch (error) {
        print(`clean-up: ${String(error)}`);
      }
  };
  try {
    return await prepare();
  } catch (error) {
    const { text } = await installation.tryKubectl(["get", "events,pods", "-o", "wide"]);
    await close();
    throw new Error(text, { cause: error });
  }

  async function prepare(): Promise<Proof> {
    await runScript("real-node", ["containers-first"]);
    await installation.install();
    for (const figure of installation.figures) print(figure);
    const database = await installDatabase(admin, namespace, installation);
    cleanUps.splice(1, 0, () => database.remove());
    const settled = (replicas = REPLICAS): Promise<void> =>
      timeline.until(
        `${replicas} servers a zone, updated and ready`,
        () => ZONES.every((zone) => isSettled(timeline, zone, replicas)),
        MAX_MS,
      );
    await settled();
    const load = await startLoad(database.login, STREAMS);
    cleanUps.push(() => load.close());
    await load.acknowledges();
    return {
      call: admin.call,
      namespace,
      timeline,
      installation,
      database,
      load,
      settled,
      close,
      play: (name, run, isControl = false) => play({ name, run, isControl }),
    };

    async function play({ name, run, isControl }: Pick<Scene, "name" | "isControl"> & { run: () => Promise<unknown> }) {
      await load.acknowledges();
      load.takePause();
      const from = performance.now();
      const index = timeline.entries.length;
      await run();
      await settled();
      await load.acknowledges();
      const span = { from, to: performance.now() };
      const pauseMs = load.takePause();
      await timeline.caughtUp();
      const streams = load.journals.map(({ acknowledged }) => acknowledged);
      const scene: Scene = {
        name,
        isControl,
        ...span,
        pauseMs,
        acknowledged: countWithin(streams, span),
        longestGapMs: longestGap(streams, span),
        zonesDown: mostZonesDown(
          timeline.entries.filter(({ group }) => group === GROUP),
          groupIndex(timeline, index),
          REPLICAS,
        ),
        lost: await load.countLost(),
      };
      print(describeScene(scene));
      return scene;
    }
  }
}

/** How many of the first entries are those of the group. */
const groupIndex = ({ entries }: Proof["timeline"], index: number): number =>
  entries.slice(0, index).filter(({ group }) => group === GROUP).length;

function isSettled({ statefulSets, pods }: Proof["timeline"], zone: string, replicas: number): boolean {
  const { spec, status, metadata } = statefulSets.get(zone) ?? {};
  const own = [...pods.values()].filter((pod) => pod.zone === zone);
  return (
    spec?.replicas === replicas &&
    status?.observedGeneration === metadata?.generation &&
    own.length === replicas &&
    own.every(({ state, revision }) => state === "ready" && revision === status?.updateRevision)
  );
}

export const describeScene = ({
  name,
  from,
  to,
  acknowledged,
  lost,
  longestGapMs,
  zonesDown,
  pauseMs,
}: Scene): string =>
  `${name}: ${Math.round((to - from) / 1000)} s, ${acknowledged} acknowledged, ${lost} lost, longest gap ${(longestGapMs / 1000).toFixed(2)} s, ` +
  `${zonesDown} zones down at once; the writers stood still for ${(pauseMs / 1000).toFixed(2)} s at most`;
