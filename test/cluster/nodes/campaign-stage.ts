/** A campaign with its reconcilers on the cluster, and what must hold at its end. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import type { Node } from "../../../infra/kubernetes/resources.ts";
import { remove } from "../stage/client.ts";
import { createBudget, serveWebhooks } from "../stage/eviction-stage.ts";
import { deletions, findTooFew, findViolations } from "../stage/invariants.ts";
import {
  buildPolicy,
  createZones,
  followShadows,
  type PlayedNode,
  playNodes,
  type ShadowView,
  TO,
} from "./campaign.ts";
import { type NodeClusterStage, openNodeStage, TEST_LABEL } from "./node-stage.ts";
import { type OpenStage, openStage } from "../stage/stage.ts";
import { describe } from "../stage/timeline.ts";
import { until } from "../stage/until.ts";

const POLICIES = "/apis/zonewise.dev/v1/nodeupdatepolicies";
const POLICY = `${POLICIES}/default`;

/** The group of zones whose pods are on the nodes. */
const GROUP = "store";
/** Far longer than a campaign takes on a machine under load. */
const CAMPAIGN_MS = 800_000;
/** A Deployment on the nodes, whose core budget allows to take one pod at a time. */
const WEB = "web";

interface Campaign {
  readonly stage: OpenStage;
  readonly nodeStage: NodeClusterStage;
  readonly played: readonly PlayedNode[];
  /** Pods of a Deployment under a core budget. */
  readonly web: number;
  readonly startReconciler: () => ReturnType<OpenStage["start"]>;
  /** The most nodes that an update was wanted of at once. */
  readonly most: () => number;
  readonly policy: () => Promise<CustomObject>;
  readonly until: (
    what: string,
    isTrue: (shadows: readonly ShadowView[]) => boolean | Promise<boolean>,
  ) => Promise<void>;
}

interface Options {
  readonly nodes: number;
  readonly spec: object;
  /** Pods of a Deployment under a core budget. */
  readonly web: number;
}

export async function openCampaign(t: TestContext, { nodes, spec, web }: Options): Promise<Campaign> {
  const stage = await openStage((text) => t.diagnostic(text));
  t.after(stage.close);
  const { admin, namespace, defer } = stage;
  const nodeStage = await openNodeStage(stage, nodes);
  await serveWebhooks(stage, 1);
  await createBudget(stage, GROUP);
  const zones = ["a", "b", "c"].map((zone) => ({ group: GROUP, name: `store-${zone}`, replicas: nodes / 3 }));
  await createWeb(stage, web);
  await createZones(stage, zones);
  await stage.timeline.until("the Deployment serves", () => countReady(stage, WEB) === web);
  const played = await playNodes(nodeStage);
  defer(() => Promise.all(played.map(({ stop }) => stop())));
  await admin.call("POST", POLICIES, buildPolicy(spec));
  defer(() => remove(admin, POLICY));
  // First of all: a reconciler might make the policy again.
  defer(() => Promise.all(stage.reconcilers.map((one) => one.kill())));
  let most = 0;
  let shadows: readonly ShadowView[] = [];
  const ended = new AbortController();
  defer(() => ended.abort());
  await followShadows(nodeStage, ended.signal, (all) => {
    shadows = all;
    most = Math.max(most, all.filter(({ spec }) => spec.state !== "Idle").length);
  });
  const untilTrue: Campaign["until"] = async (what, isTrue) => {
    const outputs = (): string => stage.reconcilers.map((one) => one.output().slice(-5000)).join("\n");
    const seen = (): string => JSON.stringify(shadows, undefined, 1);
    await until(
      () => `${what}\n${seen()}\n${outputs()}`,
      () => isTrue(shadows),
      CAMPAIGN_MS,
    );
  };
  // A zone whose agents have not reported yet would be passed over for the next one.
  await untilTrue("each agent has reported", (all) => all.length === nodes && all.every(({ status }) => status));
  const policy = (): Promise<CustomObject> => admin.call("GET", POLICY);
  const startReconciler = () =>
    stage.start({
      NODE_UPDATES: "true",
      NODE_UPDATES_NAMESPACE: namespace,
      RECONCILE_INTERVAL: "500ms",
      WEBHOOKS_UPDATE_CA_BUNDLE: "false",
      SERVER_TLS_SELF_SIGNED_CERT_ENABLED: "false",
      LOG_LEVEL: "info",
    });
  return { stage, nodeStage, played, web, startReconciler, most: () => most, policy, until: untilTrue };
}

/** The pods' group is a label that the timeline reads. */
async function createWeb({ admin, namespace }: OpenStage, replicas: number): Promise<void> {
  const labels = { group: WEB };
  const selector = { matchLabels: labels };
  await admin.call("POST", `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`, {
    metadata: { name: WEB },
    spec: { minAvailable: replicas - 1, selector },
  });
  await admin.call("POST", `/apis/apps/v1/namespaces/${namespace}/deployments`, {
    metadata: { name: WEB },
    spec: {
      replicas,
      selector,
      template: {
        metadata: { labels, annotations: { "sim/ready-after-ms": "300", "sim/exit-after-ms": "30" } },
        spec: { nodeSelector: { [TEST_LABEL]: namespace }, containers: [{ name: "c", image: "x" }] },
      },
    },
  });
}

const countReady = ({ timeline: { pods } }: OpenStage, of: string): number =>
  [...pods.values()].filter(({ group, state }) => group === of && state === "ready").length;

export const isUpdated = ({ spec, status }: ShadowView): boolean =>
  spec.state === "Idle" && status?.current_state === "Idle" && status.current_version === TO;

/**
 * Never were pods of two zones disrupted, nor two of one zone, nor more pods of the Deployment than its core budget
 * allows; and nothing of ours is left on the nodes.
 */
export async function judge({ stage, nodeStage, web }: Campaign): Promise<void> {
  const { entries } = stage.timeline;
  const ofWeb = entries.filter(({ group }) => group === WEB);
  assert.deepEqual(findTooFew(ofWeb, web - 1), [], describe(ofWeb));
  assert.ok(deletions(ofWeb).length > 0, "the Deployment's pods were evicted");
  assert.deepEqual(
    findViolations(
      entries.filter(({ group }) => group === GROUP),
      () => 1,
    ),
    [],
    describe(entries),
  );
  const { items } = await stage.admin.call<{ items: readonly { reason: string; involvedObject: { name: string } }[] }>(
    "GET",
    "/api/v1/namespaces/default/events",
  );
  const told = items.filter(({ involvedObject }) => involvedObject.name === nodeStage.nodes[0]?.metadata?.name);
  for (const reason of ["UpdateStarted", "NodeUpdated"])
    assert.ok(
      told.some((one) => one.reason === reason),
      reason,
    );
  for (const { metadata } of nodeStage.nodes) {
    // An agent may report a moment before the reconciler gives its node back.
    let left: unknown;
    await until(
      () => `nothing is left on ${metadata?.name}: ${JSON.stringify(left)}`,
      async () => {
        const node = await stage.admin.call<Node>("GET", `/api/v1/nodes/${metadata?.name}`);
        const names = Object.keys(node.metadata?.annotations ?? {});
        left = [node.spec?.unschedulable, ...names.filter((name) => /zonewise|scale-down|do-not-disrupt/.test(name))];
        return (left as unknown[]).every((one) => one === undefined);
      },
    );
  }
}
