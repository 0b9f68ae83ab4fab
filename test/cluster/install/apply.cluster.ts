/**
 * What `kubectl apply -k` does the first time, the second time, with another image, and what `kubectl delete
 * -k` leaves behind.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { describe, it, type TestContext } from "node:test";
import { runCommands } from "../migration/steps.ts";
import { connectAdmin, remove } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";
import { runKubectl, type KubectlResult } from "../stage/kubectl.ts";
import { type Manifest, type Rendering, renderManifests } from "../stage/manifests.ts";
import { until } from "../stage/until.ts";
import { OVERLAYS, renderOverlay } from "./overlays.ts";

type Verb = readonly ["apply" | "delete" | "diff", ...string[]];

interface Place {
  readonly namespace: string;
  readonly kubectl: (verb: Verb, manifests: readonly Manifest[]) => Promise<KubectlResult>;
}

const COMPLETE = "infra/manifests/complete";
const imageOf = (tag: string): Rendering => ({
  edit: { [`${COMPLETE}/kustomization.yaml`]: (text) => text.replace("newTag: latest", `newTag: ${tag}`) },
});

/** A namespace of its own; everything that was applied ends with the test, webhooks first. */
async function openPlace(t: TestContext): Promise<Place> {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  const namespace = `zw-apply-${randomBytes(3).toString("hex")}`;
  await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  const applied: Manifest[] = [];
  const kubectl: Place["kubectl"] = async (verb, manifests) => {
    if (verb[0] === "apply") applied.push(...manifests);
    return await runKubectl([...verb, "-f", "-"], { apiVersion: "v1", kind: "List", items: manifests });
  };
  t.after(async () => {
    const own = applied.filter(({ kind }) => kind !== "CustomResourceDefinition");
    await kubectl(
      ["delete", "--ignore-not-found", "--wait=false"],
      own.toSorted((a, b) => rank(a) - rank(b)),
    );
    await remove(admin, `/api/v1/namespaces/${namespace}`);
    admin.close();
  });
  return { namespace, kubectl };
}

/**
 * A PodDisruptionBudget's selector is a field that is replaced as a whole: kubectl sends it each time, and
 * nothing changes.
 */
const isAlwaysSent = (line: string): boolean => line.startsWith("poddisruptionbudget.policy/");

const rank = ({ kind }: Manifest): number => (kind.endsWith("WebhookConfiguration") ? 0 : 1);

describe("kubectl apply", () => {
  for (const [name, rendering] of OVERLAYS)
    it(`${name}: a second time it changes nothing`, async (t) => {
      const { namespace, kubectl } = await openPlace(t);
      const all = await renderOverlay(namespace, rendering);
      const manifests = all.filter(({ apiVersion }) => !apiVersion.includes("knative.dev"));
      const first = await kubectl(["apply"], manifests);
      assert.equal(first.code, 0, first.text);
      const again = await kubectl(["apply"], manifests);
      const changed = again.text
        .split("\n")
        .filter((line) => line !== "" && !line.endsWith(" unchanged") && !isAlwaysSent(line));
      assert.deepEqual(changed, []);
      let diff = "";
      // A status that changes between its two reads is a difference, too.
      await until(
        () => `kubectl diff finds none: ${diff}`,
        async () => {
          const { code, text } = await kubectl(["diff"], manifests);
          diff = text;
          return code === 0;
        },
      );
    });

  it("takes another image after a wrong one, at once, and yet another after that", async (t) => {
    const { namespace, kubectl } = await openPlace(t);
    for (const tag of ["wrong", "right", "next"]) {
      const manifests = await renderManifests(namespace, imageOf(tag));
      const { code, text } = await kubectl(["apply"], manifests);
      assert.equal(code, 0, text);
    }
  });

  it("leaves the certificate alone, and kubectl delete takes it away with everything else, without an error", async (t) => {
    const { namespace, kubectl } = await openPlace(t);
    const admin = await connectAdmin(process.env["KUBECONFIG"]);
    t.after(() => admin.close());
    const secrets = `/api/v1/namespaces/${namespace}/secrets`;
    const secret = `${secrets}/rollout-operator-self-signed-certificate`;
    const manifests = await renderManifests(namespace);
    const apply = async (): Promise<void> => {
      const { code, text } = await kubectl(["apply"], manifests);
      assert.equal(code, 0, text);
    };
    await apply();
    const data = { ca: "Y2E=", cert: "Y2VydA==", key: "a2V5" };
    await admin.call("PATCH", secret, { data });
    await apply();
    assert.deepEqual((await admin.call<{ data: object }>("GET", secret)).data, data);
    const hooks = manifests.filter((one) => rank(one) === 0);
    for (const [some, flags] of [
      [hooks, []],
      [manifests, ["--ignore-not-found"]],
    ] as const) {
      const gone = await kubectl(["delete", ...flags], some);
      assert.equal(gone.code, 0, gone.text);
    }
    await assert.rejects(admin.call("GET", secret), /NotFound/);
  });

  it("leaves RolloutGroups and Leases behind; what docs/start/upgrade.md says then deletes them, and Ready is over", async (t) => {
    const { namespace } = await openPlace(t);
    const admin = await connectAdmin(process.env["KUBECONFIG"]);
    t.after(() => admin.close());
    await define(admin, "rolloutgroups");
    const groups = `/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgroups`;
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const kind = { apiVersion: "zonewise.dev/v1", kind: "RolloutGroup" };
    await admin.call("POST", groups, { ...kind, metadata: { name: "ingester" } });
    const lastTransitionTime = new Date().toISOString();
    const ready = { type: "Ready", status: "True", reason: "AllZonesUpdated", message: "", lastTransitionTime };
    await admin.call("PATCH", `${groups}/ingester/status`, { status: { conditions: [ready] } });
    for (const name of ["zonewise-reconciler", "other"]) await admin.call("POST", leases, { metadata: { name } });
    const wait = ["wait", "-n", namespace, "--for=condition=Ready", "rolloutgroup/ingester", "--timeout=60s"];
    assert.equal((await runKubectl(wait)).code, 0);
    const page = await readFile(new URL("../../../docs/start/upgrade.md", import.meta.url), "utf8");
    const [, removal = ""] = page.split("\n## Remove\n");
    const [step = ""] = removal.match(/^3\. [^]*?(?=^4\. )/m) ?? [];
    const commands = [...step.matchAll(/^ {7}(kubectl .*)$/gm)].map(([, command = ""]) => command);
    assert.ok(commands.length >= 3);
    await runCommands(commands, tmpdir(), { NAMESPACE: namespace });
    const { code, text } = await runKubectl(wait);
    assert.notEqual(code, 0);
    assert.match(text, /NotFound/);
    const { items } = await admin.call<{ items: Manifest[] }>("GET", leases);
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      ["other"],
    );
  });
});
