/** Updates of nodes. */
import assert from "node:assert/strict";
import { createPolicy, defineNodeUpdates, label } from "../../reconciler/nodes/act/stage.ts";
import { change } from "./changes.ts";
import type { Installation } from "./installation.ts";
import type { Trouble } from "./trouble.ts";

const POLICIES = "nodeupdatepolicies.zonewise.dev";
const SHADOWS = "bottlerocketshadows.brupop.bottlerocket.aws";
/** Where shadows are by default. */
const PLACE = "brupop-bottlerocket-aws";
const MESSAGE = "node-1: boot-2 runs 1.0.0";

/** The policy as the reconciler leaves it once a node came back from its reboot with its old version. */
function freeze(at: Installation): void {
  defineNodeUpdates(at.stage);
  createPolicy(at.stage, { maxConcurrent: 1 });
  for (const node of ["node-1", "node-2"]) label(at.stage, node);
  const frozen = { id: "failed-1", at: "2026-01-01T00:00:00Z", reason: "NodesFailed", message: MESSAGE };
  change(at, POLICIES, "default", (policy) => ({ ...policy, status: { frozen } }));
}

/** What the agent of node-1 reports after an attempt that did not succeed. */
async function fail(at: Installation): Promise<void> {
  defineNodeUpdates(at.stage);
  at.stage.emulator.store.create("namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: PLACE } });
  createPolicy(at.stage, { maxConcurrent: 1 });
  label(at.stage, "node-1");
  // The definitions are looked for every 5 minutes.
  await at.tickFor(320);
  const status = { current_version: "1.0.0", target_version: "1.1.0", current_state: "Idle", crash_count: 1 };
  const failedAt = new Date(at.stage.clock.now()).toISOString();
  const { store } = at.stage.emulator;
  const shadow = store.get(SHADOWS, PLACE, "brs-node-1") ?? assert.fail("the node has no shadow");
  store.update(SHADOWS, { ...shadow, status: { ...status, state_transition_failure_timestamp: failedAt } });
}

export const NODE_TROUBLES: readonly Trouble[] = [
  {
    trouble: "a node update that failed, and is tried again later",
    env: { NODE_UPDATES: "true" },
    make: fail,
    object: "node/node-1",
    says: {
      explain: /Not updated {2}BackOff\n +why +it runs 1\.0\.0 and will get 1\.1\.0; attempt 1 failed at/,
    },
    cure: { text: /wait/ },
    curedAfter: 600,
  },
  {
    trouble: "node updates that are frozen since a node failed",
    env: { NODE_UPDATES: "true" },
    make: freeze,
    object: "node/node-2",
    says: { explain: /Not updated {2}Frozen\n.*node-1: boot-2 runs 1\.0\.0/ },
    cure: {},
    // The definitions are looked for every 5 minutes.
    curedAfter: 400,
  },
];
