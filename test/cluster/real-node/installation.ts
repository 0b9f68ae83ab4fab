/** The project installed on the real node as a user installs it, image and all, and removed by the steps of docs/start/install.md. */
import assert from "node:assert/strict";
import type { Admin } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";
import { type KubectlResult, runKubectl } from "../stage/kubectl.ts";
import { type Manifest, renderManifests } from "../stage/manifests.ts";
import { buildImage } from "./containers.ts";

/** The image under test; not `latest`, which the node would try to pull. */
export const IMAGE = "zonewise:cluster-test";
export const FUNCTIONS = "app.kubernetes.io/name=zonewise-functions";
export const RECONCILER = "app.kubernetes.io/name=zonewise-reconciler";
/** Brings a pod to the real node. */
export const REAL = { "sim/real": "true" };

const COMPLETE = "infra/manifests/complete";

export interface Installation {
  /** What was measured while it was made, a line each. */
  readonly figures: readonly string[];
  /** kubectl in the namespace; rejects with what it wrote if it fails. */
  readonly kubectl: (args: readonly string[], input?: object) => Promise<string>;
  /** The same, for commands that may fail. */
  readonly tryKubectl: (args: readonly string[], input?: object) => Promise<KubectlResult>;
  /** Builds the image and installs; resolves once the functions are ready. */
  readonly install: () => Promise<void>;
  /** Removes it, once. */
  readonly remove: () => Promise<void>;
}

/** An installation for a namespace that exists; nothing is installed yet. */
export async function prepareInstallation(admin: Admin, namespace: string): Promise<Installation> {
  const manifests = await renderManifests(namespace, { edit: { [`${COMPLETE}/kustomization.yaml`]: forRealNode } });
  const list = { apiVersion: "v1", kind: "List", items: manifests };
  const tryKubectl: Installation["tryKubectl"] = (args, input) =>
    runKubectl(["--namespace", namespace, ...args], input);
  const kubectl: Installation["kubectl"] = async (args, input) => {
    const { code, text } = await tryKubectl(args, input);
    assert.equal(code, 0, `kubectl ${args.join(" ")}: ${text}`);
    return text;
  };
  const apply = async (items: readonly Manifest[]): Promise<void> =>
    void (await kubectl(["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items }));
  const figures: string[] = [];
  const measure = async (what: string, run: () => Promise<unknown>): Promise<void> =>
    void figures.push(await measured(what, run));
  let removed = false;
  return {
    figures,
    kubectl,
    tryKubectl,
    async install() {
      await measure("image built and given to the node", () => buildImage(IMAGE));
      await apply(await renderManifests(namespace, { folder: "infra/manifests/crds" }));
      await define(admin, "zoneawarepoddisruptionbudgets");
      await measure("from kubectl apply to Ready", async () => {
        await apply(manifests);
        await kubectl(["create", "job", "zonewise-first", "--from=cronjob/zonewise-reconciler"]);
        await kubectl(["rollout", "status", "deployment/zonewise-functions", "--timeout=240s"]);
      });
    },
    async remove() {
      if (removed) return;
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
  };
}

/** Runs it, and says how long that took. */
export async function measured(what: string, run: () => Promise<unknown>): Promise<string> {
  const from = performance.now();
  await run();
  return `${what}: ${((performance.now() - from) / 1000).toFixed(1)} s`;
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
