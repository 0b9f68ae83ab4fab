/** One pass over a mirroring group: its state, the wanted replicas and the result. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { MIRROR, type MirrorStage, type MirrorZone, type PodAnswers } from "./mirror-stage.ts";

export const mirroring = (replicas: number, more: Record<string, string> = {}): MirrorZone => ({
  replicas,
  annotations: { ...MIRROR, ...more },
});

export const A = "statefulsets ingester-zone-a";
export const STATUS = "replicatemplates/status template";

export interface Case {
  readonly zones: readonly MirrorZone[];
  /** The reference's `spec.replicas` and `status.replicas`. */
  readonly reference: readonly [spec: number, status: number];
  readonly pods?: PodAnswers;
  readonly requests?: readonly string[];
  readonly patches: readonly string[];
  readonly waits?: readonly string[];
}

/** Registers one test per case, each on its own stage. */
export function playCases(cases: Readonly<Record<string, Case>>, stage: () => MirrorStage): void {
  for (const [name, { zones, reference, pods, requests, patches, waits = [] }] of Object.entries(cases)) {
    it(name, async () => {
      const on = stage();
      await on.reference(...reference);
      await on.zones(...zones);
      const pass = await on.pass(pods);
      assert.deepEqual([pass.patches, pass.waits], [patches, waits]);
      if (requests) assert.deepEqual(pass.requests, requests);
    });
  }
}
