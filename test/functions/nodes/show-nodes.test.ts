/**
 * What a scrape of the node API shows of nodes and policies while no controller runs, and that one replica alone shows
 * it.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { showNodes } from "../../../functions/nodes/show-nodes.ts";
import { systemClock } from "../../../infra/clock.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { newShadow } from "../../../reconciler/nodes/shadow.ts";
import type { Draft } from "../../emulator/objects.ts";
import { keepingLog } from "../stage.ts";
import { NAMESPACE, type NodeStage, setNodeStage, SHADOWS } from "./stage.ts";
import { add, make } from "../../builders.ts";

const POLICY_CRD: Draft = make("CustomResourceDefinition", "nodeupdatepolicies.zonewise.dev", {
  spec: {
    group: "zonewise.dev",
    scope: "Cluster",
    names: { plural: "nodeupdatepolicies", kind: "NodeUpdatePolicy" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object" } },
        subresources: { status: {} },
      },
    ],
  },
});

function addShadow({ emulator }: NodeStage, name: string, status: object | undefined): void {
  const shadow = newShadow({ name, uid: `uid-${name}` }, NAMESPACE);
  const stored = emulator.store.create(SHADOWS, {
    ...shadow,
    apiVersion: "brupop.bottlerocket.aws/v2",
    kind: "BottlerocketShadow",
  });
  if (status) emulator.store.update(SHADOWS, { ...stored, status });
}

const startReplica = ({ cluster }: NodeStage, identity: string): (() => Promise<string[]>) => {
  const { log } = keepingLog();
  const shown = showNodes({
    cluster,
    clock: systemClock,
    log,
    metrics: createMetrics(),
    identity,
    namespace: NAMESPACE,
  });
  return async () => (await shown.render()).split("\n").filter((line) => /^(brupop|zonewise_node)_/.test(line));
};

it("the metrics of the nodes are those of the stored objects, shown by one replica", async (t) => {
  const stage = await setNodeStage(t);
  const { store } = stage.emulator;
  store.create("customresourcedefinitions.apiextensions.k8s.io", POLICY_CRD);
  const status = { current_version: "1.0.0", target_version: "1.1.0", current_state: "Idle", crash_count: 0 };
  addShadow(stage, "n1", status);
  addShadow(stage, "n2", { ...status, current_version: "1.1.0", current_state: "ErrorReset", crash_count: 2 });
  addShadow(stage, "n3", undefined);
  const transitions = [
    { from: "Idle", to: "StagedAndPerformedUpdate", fromVersion: "1.0.0", toVersion: "1.1.0", count: 7 },
  ];
  const known = { node: "n1", nodeUid: "uid-n1", shadowUid: "s", from: "1.0.0", to: "1.1.0", bootId: "b" };
  const active = [{ ...known, startedAt: "2026-01-01T00:00:00Z", phase: "Draining", since: "2026-01-01T00:01:00Z" }];
  const policy = add(store, "NodeUpdatePolicy", "default", { spec: {} });
  store.update("nodeupdatepolicies.zonewise.dev", {
    ...policy,
    status: { active, transitions, skipped: { DrainBlocked: 1 }, windowOpen: true },
  });

  const [scrape, other] = [startReplica(stage, "one"), startReplica(stage, "two")];
  assert.deepEqual(await scrape(), [
    'brupop_hosts_version{bottlerocket_version="other"} 0',
    'brupop_hosts_version{bottlerocket_version="1.0.0"} 1',
    'brupop_hosts_version{bottlerocket_version="1.1.0"} 1',
    'brupop_hosts_state{state="Idle"} 1',
    'brupop_hosts_state{state="StagedAndPerformedUpdate"} 0',
    'brupop_hosts_state{state="RebootedIntoUpdate"} 0',
    'brupop_hosts_state{state="MonitoringUpdate"} 0',
    'brupop_hosts_state{state="ErrorReset"} 1',
    'zonewise_node_update_crash_count{node="n2"} 2',
    'zonewise_node_updates_active{policy="default"} 1',
    'zonewise_node_update_phase_started_timestamp_seconds{policy="default",node="n1",phase="Draining"} 1767225660',
    'zonewise_node_update_phase_deadline_timestamp_seconds{policy="default",node="n1",phase="Draining"} 1767229260',
    'zonewise_node_updates_frozen{policy="default"} 0',
    'zonewise_node_updates_skipped{policy="default",reason="DrainBlocked"} 1',
    'zonewise_node_update_transitions_total{policy="default",from="Idle",to="StagedAndPerformedUpdate",from_version="1.0.0",to_version="1.1.0"} 7',
  ]);
  assert.deepEqual(await other(), [], "a sum over the replicas counts each once");
});
