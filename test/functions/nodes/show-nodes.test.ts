/**
 * What a scrape of the node API shows of nodes and their policy while no controller runs, and that one replica alone shows
 * it; the gauges from scrape to scrape, by the original's cases.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { createNodeSampler, showNodes } from "../../../functions/nodes/show-nodes.ts";
import { systemClock } from "../../../infra/clock.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { newShadow } from "../../../reconciler/nodes/shadow.ts";
import { keepingLog } from "../stage.ts";
import { NAMESPACE, type NodeStage, setNodeStage, SHADOWS } from "./stage.ts";
import { add } from "../../builders/objects.ts";

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
  const stage = await setNodeStage(t, { policy: "none" });
  const { store } = stage.emulator;
  const status = { current_version: "1.0.0", target_version: "1.1.0", current_state: "Idle", crash_count: 0 };
  addShadow(stage, "n1", status);
  addShadow(stage, "n2", { ...status, current_version: "1.1.0", current_state: "ErrorReset", crash_count: 2 });
  addShadow(stage, "n3", undefined);
  const transitions = [
    { from: "Idle", to: "StagedAndPerformedUpdate", fromVersion: "1.0.0", toVersion: "1.1.0", count: 7 },
  ];
  const known = { node: "n1", nodeUid: "uid-n1", from: "1.0.0", to: "1.1.0", bootId: "b" };
  const active = [{ ...known, startedAt: "2026-01-01T00:00:00Z", phase: "Draining", since: "2026-01-01T00:01:00Z" }];
  const policy = add(store, "NodeUpdatePolicy", "default", { spec: {} });
  store.update("nodeupdatepolicies.zonewise.dev", {
    ...policy,
    status: { active, transitions, skipped: { DrainBlocked: 1 } },
  });

  const [scrape, other] = [startReplica(stage, "one"), startReplica(stage, "two")];
  let shown = await scrape();
  // A scrape does not wait for a slow API server: what it reads is in a later one.
  for (let again = 0; again < 20 && shown.length === 0; again++) {
    await systemClock.sleep(1000);
    shown = await scrape();
  }
  assert.deepEqual(shown, [
    'brupop_hosts_version{bottlerocket_version="other"} 0',
    'brupop_hosts_version{bottlerocket_version="1.0.0"} 1',
    'brupop_hosts_version{bottlerocket_version="1.1.0"} 1',
    'brupop_hosts_state{state="Idle"} 1',
    'brupop_hosts_state{state="StagedAndPerformedUpdate"} 0',
    'brupop_hosts_state{state="RebootedIntoUpdate"} 0',
    'brupop_hosts_state{state="MonitoringUpdate"} 0',
    'brupop_hosts_state{state="ErrorReset"} 1',
    'zonewise_node_update_crash_count{node="n2"} 2',
    "zonewise_node_updates_active 1",
    'zonewise_node_update_phase_started_timestamp_seconds{node="n1",phase="Draining"} 1767225660',
    'zonewise_node_update_phase_deadline_timestamp_seconds{node="n1",phase="Draining"} 1767229260',
    "zonewise_node_updates_frozen 0",
    'zonewise_node_updates_skipped{reason="DrainBlocked"} 1',
    'zonewise_node_update_transitions_total{from="Idle",to="StagedAndPerformedUpdate",from_version="1.0.0",to_version="1.1.0"} 7',
  ]);
  assert.deepEqual(await other(), [], "a sum over the replicas counts each once");
});

/** The gauge of versions after the last of these scrapes: as many nodes of each version. */
function show(...scrapes: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sample = createNodeSampler();
  const shown = scrapes.map((scrape) => {
    const nodes = Object.entries(scrape).flatMap(([current_version, count]) =>
      Array.from({ length: count }, (_, i) => ({
        name: `brs-${current_version}-${i}`,
        status: { current_version, target_version: "", current_state: "Idle", crash_count: 0 } as const,
      })),
    );
    return sample(nodes, undefined).get("brupop_hosts_version") ?? [];
  });
  const versions = (shown.at(-1) ?? []).map(({ labels, value }) => [labels["bottlerocket_version"], value] as const);
  return Object.fromEntries(versions.filter(([version]) => version !== "other"));
}

for (const [title, scrapes, expected] of [
  ["a5 b10 c15, then a11", [{ a: 5, b: 10, c: 15 }, { a: 11 }], { a: 11, b: 0, c: 0 }],
  ["a1, then b11 c12", [{ a: 1 }, { b: 11, c: 12 }], { a: 0, b: 11, c: 12 }],
  ["a1, then a2", [{ a: 1 }, { a: 2 }], { a: 2 }],
] as const)
  it(`${title}: versions that are gone are 0`, () => assert.deepEqual(show(...scrapes), expected));

it("a shadow that no agent has is not shown: Prometheus refuses a scrape that repeats a series", () => {
  const status = { current_version: "1", target_version: "1", current_state: "Idle", crash_count: 2 } as const;
  const sampled = createNodeSampler()(
    ["brs-n", "n"].map((name) => ({ name, status })),
    undefined,
  );
  assert.deepEqual(sampled.get("zonewise_node_update_crash_count"), [{ labels: { node: "n" }, value: 2 }]);
});
