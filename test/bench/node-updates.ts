/** A pass of node updates over 1,000 shadows on the embedded cluster: settled, and while 500 nodes are active. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { bundle } from "../../infra/build.ts";
import { newShadow, shadowName } from "../../reconciler/nodes/shadow.ts";
import { type Emulator, startEmulator } from "../emulator/index.ts";
import type { KubeObject } from "../emulator/store.ts";
import type { NodeFigures } from "./node-updates-process.ts";
import { measure } from "./process.ts";
import type { Bench } from "./row.ts";
import { add } from "../builders.ts";

const NODES = 1000;
const NAMESPACE = "brupop";
const SHADOWS = "bottlerocketshadows.brupop.bottlerocket.aws";
const POLICIES = "nodeupdatepolicies.zonewise.dev";

export const benchNodeUpdates: Bench = async ({ root, scratch }) => {
  await bundle({ "node-updates-process": "test/bench/node-updates-process.ts" }, root, scratch);
  const emulator = await startEmulator();
  const kubeconfig = join(scratch, "kubeconfig");
  const run = (): Promise<NodeFigures> =>
    measure<NodeFigures>(join(scratch, "node-updates-process.js"), [], { KUBECONFIG: kubeconfig });
  try {
    await emulator.writeKubeconfig(kubeconfig);
    createNodes(emulator, root);
    const settled = await run();
    offer(emulator);
    const active = await run();
    const isSilent = settled.calls === 5 && settled.writes === 0;
    return [
      {
        what: "node updates, a pass over 1,000 shadows, settled",
        figure: show(settled),
        aim: { text: "5 lists", met: isSilent },
      },
      { what: "the same, 500 nodes active and staging", figure: show(active) },
    ];
  } finally {
    await emulator.stop();
  }
};

function createNodes({ store }: Emulator, root: string): void {
  for (const name of ["bottlerocketshadows", "nodeupdatepolicies"]) {
    const text = readFileSync(join(root, `infra/manifests/node-updates/crds/${name}.yaml`), "utf8");
    store.create("customresourcedefinitions.apiextensions.k8s.io", parse(text) as KubeObject);
  }
  add(store, "Namespace", NAMESPACE);
  const spec = { maxConcurrent: "50%" };
  add(store, "NodeUpdatePolicy", "default", { spec });
  const labels = { "bottlerocket.aws/updater-interface-version": "2.0.0" };
  const conditions = [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }];
  for (let n = 0; n < NODES; n++) {
    const name = `node-${String(n).padStart(4, "0")}.example.internal`;
    const status = { conditions, nodeInfo: { bootID: `boot-${n}` } };
    const { metadata } = add(store, "Node", name, { labels, spec: {} });
    store.update("nodes", { ...store.get("nodes", undefined, name), status } as KubeObject);
    const shadow = store.create(SHADOWS, newShadow({ name, uid: metadata.uid }, NAMESPACE) as unknown as KubeObject);
    store.update(SHADOWS, { ...shadow, status: report("1.0.0") });
  }
}

const report = (target_version: string) => ({
  current_version: "1.0.0",
  target_version,
  current_state: "Idle",
  crash_count: 0,
});

/** Every host chooses a new version; 500 nodes are already in slots and stage it, as after ten minutes of starts. */
function offer({ store }: Emulator): void {
  const startedAt = new Date().toISOString();
  const shadows = store.list(SHADOWS);
  const active = shadows.slice(0, NODES / 2).map(({ metadata }) => {
    const node = metadata.name.slice(shadowName("").length);
    const nodeUid = store.get("nodes", undefined, node)?.metadata.uid ?? "";
    const known = {
      node,
      nodeUid,
      from: "1.0.0",
      to: "1.1.0",
      bootId: "",
      startedAt,
      phase: "Staging",
    };
    return { ...known, since: startedAt };
  });
  const started = new Set(active.map(({ node }) => shadowName(node)));
  for (const shadow of shadows) {
    const isStarted = started.has(shadow.metadata.name);
    const spec = { state: "StagedAndPerformedUpdate", state_transition_timestamp: startedAt, version: "1.1.0" };
    store.update(SHADOWS, { ...shadow, status: report("1.1.0"), ...(isStarted && { spec }) });
  }
  const policy = store.get(POLICIES, undefined, "default") as KubeObject & { readonly status?: object };
  store.update(POLICIES, { ...policy, status: { ...policy.status, active } });
}

function show({ calls, writes, ms, firstMs, peakMb }: NodeFigures): string {
  return `${calls} calls, ${writes} writes, ${ms.toFixed(0)} ms (first ${firstMs.toFixed(0)} ms), peak ${peakMb.toFixed(0)} MB`;
}
