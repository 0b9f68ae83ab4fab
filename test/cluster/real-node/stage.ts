/**
 * The project installed on the real node, in a namespace that enforces the Pod Security Standard `restricted`, beside a
 * group of three simulated zones under a budget.
 */
import type { Admin } from "../stage/client.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import type { Entry } from "../stage/invariants.ts";
import { openPlace } from "../stage/place.ts";
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
  const place = await openPlace({ "pod-security.kubernetes.io/enforce": "restricted" });
  const { admin, namespace } = place;
  const timeline = await recordTimeline(admin, namespace);
  const group = `cache-${namespace}`;
  const zones = ["a", "b", "c"].map((letter, i) => ({
    group,
    name: `zone-${letter}`,
    sim: { "sim/node": `node-${i + 1}` },
  }));
  const { install, ...installation } = await prepareInstallation(admin, namespace);
  place.defer(installation.remove);
  place.defer(timeline.stop);
  const stage: RealStage = {
    ...buildActions(admin, namespace, timeline),
    ...installation,
    admin,
    timeline,
    group,
    zones,
    history: () => timeline.entries.filter((entry) => entry.group === group),
    close: place.close,
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
