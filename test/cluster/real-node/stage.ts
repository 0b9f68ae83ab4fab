/**
 * The project installed on the real node as a user installs it, image and all, in a namespace that enforces
 * the Pod Security Standard `restricted`, beside a group of three simulated zones under a budget.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type Admin, connectAdmin, remove } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import type { Entry } from "../stage/invariants.ts";
import { type KubectlResult, runKubectl } from "../stage/kubectl.ts";
import { type Manifest, renderManifests } from "../stage/manifests.ts";
import { type Actions, buildActions } from "../stage/stage.ts";
import { recordTimeline, type Timeline } from "../stage/timeline.ts";
import type { ZoneOptions } from "../stage/zones.ts";
import { buildImage } from "./containers.ts";

/** The image under test; not `latest`, which the node would try to pull. */
export const IMAGE = "zonewise:cluster-test";
export const FUNCTIONS = "app.kubernetes.io/name=zonewise-functions";
export const RECONCILER = "app.kubernetes.io/name=zonewise-reconciler";
/** Brings a pod to the real node. */
export const REAL = { "sim/real": "true" };

const COMPLETE = "infra/manifests/complete";

export interface RealStage extends Actions {
  readonly admin: Admin;
  readonly timeline: Timeline;
  readonly group: string;
  readonly zones: readonly ZoneOptions[];
  /** What was measured while it was opened, a line each. */
  readonly figures: readonly string[];
  /** The history of the group's pods. */
  readonly history: () => Entry[];
  /** kubectl in the namespace; rejects with what it wrote if it fails. */
  readonly kubectl: (args: readonly string[], input?: object) => Promise<string>;
  /** The same, for commands that may fail. */
  readonly tryKubectl: (args: readonly string[], input?: object) => Promise<KubectlResult>;
  /** Removes the installation by the steps of docs/start/install.md; once. */
  readonly remove: () => Promise<void>;
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
  const manifests = await renderManifests(namespace, { edit: { [`${COMPLETE}/kustomization.yaml`]: forRealNode } });
  const list = { apiVersion: "v1", kind: "List", items: manifests };
  const tryKubectl: RealStage["tryKubectl"] = (args, input) => runKubectl(["--namespace", namespace, ...args], input);
  const kubectl: RealStage["kubectl"] = async (args, input) => {
    const { code, text } = await tryKubectl(args, input);
    assert.equal(code, 0, `kubectl ${args.join(" ")}: ${text}`);
    return text;
  };
  const figures: string[] = [];
  const measure = async (what: string, run: () => Promise<unknown>): Promise<void> =>
    void figures.push(await measured(what, run));
  let removed = false;

  const stage: RealStage = {
    ...buildActions(admin, namespace, timeline),
    admin,
    timeline,
    group,
    zones,
    figures,
    history: () => timeline.entries.filter((entry) => entry.group === group),
    kubectl,
    tryKubectl,
    async remove() {
      removed = true;
      const own = ["-l", `grafana.com/namespace=${namespace}`];
      await kubectl(["delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", ...own]);
      await kubectl(["delete", "--ignore-not-found", "-f", "-"], list);
      await kubectl(["delete", "rolloutgroups", "--all"]);
      await kubectl(["delete", "configmap", "rollout-operator-zone-tracker", "--ignore-not-found"]);
      const leases = (await kubectl(["get", "leases", "-o", "name"]))
        .split("\n")
        .filter((name) => name.includes("/zonewise-"));
      if (leases.length > 0) await kubectl(["delete", ...leases]);
    },
    async close() {
      timeline.stop();
      if (!removed) await stage.remove().catch(() => {});
      await remove(admin, `/api/v1/namespaces/${namespace}`);
      admin.close();
    },
  };
  try {
    await measure("image built and given to the node", () => buildImage(IMAGE));
    await apply(stage, await renderManifests(namespace, { folder: "infra/manifests/crds" }));
    await define(admin, "zoneawarepoddisruptionbudgets");
    await measure("from kubectl apply to Ready", async () => {
      await apply(stage, manifests);
      await kubectl(["create", "job", "zonewise-first", "--from=cronjob/zonewise-reconciler"]);
      await kubectl(["rollout", "status", "deployment/zonewise-functions", "--timeout=240s"]);
    });
    await stage.create(zones);
    await createBudget(stage, group);
  } catch (error) {
    const { text } = await tryKubectl(["get", "events,pods", "-o", "wide"]);
    await stage.close();
    throw new Error(text, { cause: error });
  }
  return stage;
}

/** Runs it, and says how long that took. */
export async function measured(what: string, run: () => Promise<unknown>): Promise<string> {
  const from = performance.now();
  await run();
  return `${what}: ${((performance.now() - from) / 1000).toFixed(1)} s`;
}

async function apply({ kubectl }: RealStage, items: readonly Manifest[]): Promise<void> {
  await kubectl(["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items });
}

/** The overlay of test/plane/README.md: our image, on the real node. */
function forRealNode(text: string): string {
  const [newName, newTag] = IMAGE.split(":");
  const patch = (path: string): string => JSON.stringify(JSON.stringify([{ op: "add", path, value: REAL }]));
  return `${text.replace("newName: zonewise, newTag: latest", `newName: ${newName}, newTag: ${newTag}`)}
patches:
  - {target: {kind: Deployment}, patch: ${patch("/spec/template/spec/nodeSelector")}}
  - {target: {kind: CronJob}, patch: ${patch("/spec/jobTemplate/spec/template/spec/nodeSelector")}}
`;
}
