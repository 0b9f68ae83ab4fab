/**
 * The project installed on the real node, in a namespace that enforces the Pod Security Standard `restricted`, beside a
 * group of three simulated zones under a budget.
 */
import { randomBytes } from "node:crypto";
import { type Admin, connectAdmin, remove } from "../stage/client.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import type { Entry } from "../stage/invariants.ts";
import { type Actions, buildActions } from "../stage/stage.ts";
import { recordTimeline, type Timeline } from "../stage/timeline.ts";
import type { ZoneOptions } from "../stage/zones.ts";
import { type Installation, prepareInstallation } from "./installation.ts";

export interface RealStage extends Actions, Omit<Installation, "install"> {
  readonly admin: Admin;
  readonly timeline: Timeline;
  readonly group: string;
  readonly zones: readonly ZoneOptions[];
  /** The history of the group's pods. */
  readonly history: () => Entry[];
  /** Deletes what is left. */
  readonly close: () => Promise<void>;
}

/** Builds the image, installs, and resolves once the functions and the zones are ready. */
export async function openRealStage(): Promise<RealStage> {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  const namespace = `zw-real-${randomBytes(3).toString("hex")}`;
  const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
  await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace, labels } });
  const timeline = await recordTimeline(admin, namespace);
  const group = `cache-${namespace}`;
  const zones = ["a", "b", "c"].map((letter, i) => ({
    group,
    name: `zone-${letter}`,
    sim: { "sim/node": `node-${i + 1}` },
  }));
  const { install, ...installation } = await prepareInstallation(admin, namespace);
  const stage: RealStage = {
    ...buildActions(admin, namespace, timeline),
    ...installation,
    admin,
    timeline,
    group,
    zones,
    history: () => timeline.entries.filter((entry) => entry.group === group),
    async close() {
      timeline.stop();
      await stage.remove().catch(() => {});
      await remove(admin, `/api/v1/namespaces/${namespace}`);
      admin.close();
    },
  };
  try {
    await install();
    await stage.create(zones);
    await createBudget(stage, group);
  } catch (error) {
    const { text } = await stage.tryKubectl(["get", "events,pods", "-o", "wide"]);
    await stage.close();
    throw new Error(text, { cause: error });
  }
  return stage;
}
