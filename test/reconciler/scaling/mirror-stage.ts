/** A group that mirrors a ReplicaTemplate, on the embedded cluster, with scripted answers of the pods. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import type { MayDownscale } from "../../../reconciler/budget/act/may-disrupt.ts";
import type { Outcome } from "../../../reconciler/model/outcome.ts";
import { connect } from "../../cluster/conformance/client.ts";
import { deploy, setStage, notifierOf, tickOnce, type Stage } from "../stage.ts";

const CRD = parse(
  readFileSync(join(import.meta.dirname, "../../../infra/manifests/crds/replicatemplates.yaml"), "utf8"),
) as object;
const TEMPLATES = "/apis/rollout-operator.grafana.com/v1/namespaces/default/replicatemplates";
const MINUTE = 60_000;

export const MIRROR = {
  "grafana.com/rollout-mirror-replicas-from-resource-name": "template",
  "grafana.com/rollout-mirror-replicas-from-resource-kind": "ReplicaTemplate",
  "grafana.com/rollout-mirror-replicas-from-resource-api-version": "rollout-operator.grafana.com/v1",
};
export const NO_WRITE_BACK = { "grafana.com/rollout-mirror-replicas-from-resource-write-back": "false" };
export const DELAYED = {
  "grafana.com/rollout-delayed-downscale": "1h",
  "grafana.com/rollout-prepare-delayed-downscale-url": "http://pod/prepare-delayed-downscale",
};

export interface MirrorZone {
  readonly replicas: number;
  readonly annotations?: Record<string, string>;
  readonly labels?: Record<string, string>;
}

/** The results of a pass: written replicas, requests to pods, and reasons of waiting zones. */
interface Pass {
  readonly patches: readonly string[];
  readonly requests: readonly string[];
  readonly outcome: Outcome;
  readonly waits: readonly string[];
}

/** A pod's answer to POST or DELETE: a body or an error; it was prepared `minutesAgo`. */
type PodAnswers = (
  method: string,
  ordinal: number,
  zone: string,
) => { status?: number; minutesAgo?: number; body?: string } | Error;

export interface MirrorStage {
  readonly stage: Stage;
  readonly call: (
    method: string,
    path: string,
    body?: unknown,
    type?: string,
  ) => Promise<{ status: number; body: unknown }>;
  /** Sets the reference's `spec.replicas` and `status.replicas`. */
  reference(spec: number, status?: number): Promise<void>;
  /** Creates the zones a, b, c…, and waits until their pods are ready. */
  zones(...zones: readonly MirrorZone[]): Promise<void>;
  pass(answers?: PodAnswers, cluster?: Cluster, mayDownscale?: MayDownscale): Promise<Pass>;
}

export async function mirrorStage(): Promise<MirrorStage> {
  const stage = await setStage();
  const client = connect(stage.emulator.kubeconfig());
  const call: MirrorStage["call"] = (method, path, body, type) => client.call({ method, path, body, type });
  await call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD);
  const { cluster: connection } = stage.connect();
  const merge = "application/merge-patch+json";
  let requests: string[] = [];
  let answers: PodAnswers = () => new Error("unexpected");
  const podHttp: PodHttp = {
    async send(method, url) {
      const { ordinal = "", zone = "" } = /zone-(?<zone>[a-z])-(?<ordinal>\d+)\./.exec(url)?.groups ?? {};
      requests.push(`${method} ${zone}-${ordinal}`);
      const answer = answers(method, Number(ordinal), zone);
      if (answer instanceof Error) throw answer;
      const { status = 200, minutesAgo = 0 } = answer;
      return {
        status,
        body: answer.body ?? JSON.stringify({ timestamp: Math.round((stage.time.now() - minutesAgo * MINUTE) / 1000) }),
      };
    },
  };
  // All passes run in one process.
  const notifier = notifierOf(stage, podHttp);

  return {
    stage,
    call,
    async reference(replicas, status) {
      const body = {
        apiVersion: "rollout-operator.grafana.com/v1",
        kind: "ReplicaTemplate",
        metadata: { name: "template" },
        spec: { replicas },
      };
      const created = await call("POST", TEMPLATES, body);
      if (created.status === 409) await call("PATCH", `${TEMPLATES}/template`, { spec: { replicas } }, merge);
      if (status !== undefined)
        await call("PATCH", `${TEMPLATES}/template/status`, { status: { replicas: status } }, merge);
    },
    async zones(...zones) {
      for (const [i, zone] of zones.entries()) deploy(stage, "x:1", { zones: ["abcd".charAt(i)], ...zone });
      await stage.time.advance(3000);
    },
    async pass(answer = () => new Error("unexpected"), cluster = connection, mayDownscale) {
      const patches: string[] = [];
      requests = [];
      answers = answer;
      const recording: Cluster = {
        ...cluster,
        change: async (resource, patch, given) => {
          const result = await cluster.change(resource, patch, given);
          if (!patch.dryRun)
            patches.push(
              `${resource.plural} ${patch.name} ${(patch.body as { spec: { replicas: number } }).spec.replicas}`,
            );
          return result;
        },
        patch: async (resource, patch, given) => {
          const { name, subresource, body } = patch;
          const result = await cluster.patch(resource, patch, given);
          const replicas = (body as { status?: { replicas?: number } }).status?.replicas;
          if (replicas !== undefined)
            patches.push(`${resource.plural}${subresource ? `/${subresource}` : ""} ${name} ${replicas}`);
          return result;
        },
      };
      const { outcomes } = await tickOnce(stage, recording, {
        podHttp,
        notifier,
        ...(mayDownscale && { mayDownscale }),
      });
      await notifier.idle();
      const [outcome] = outcomes;
      if (!outcome) throw new Error("no group");
      return {
        patches,
        requests: requests.toSorted(),
        outcome,
        waits: outcome.scalingHolds.map(({ reason }) => reason),
      };
    },
  };
}
