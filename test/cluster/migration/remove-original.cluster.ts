/**
 * What docs/migration.md tells to do before and while the original is removed: definitions and budgets stay, and what
 * Zonewise serves by.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFile, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { exec } from "node:child_process";
import { promisify } from "node:util";
import { connectAdmin, remove } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

/** The commands of the section, in order. */
async function readCommands(): Promise<string[]> {
  const page = await readFile(join(ROOT, "docs/migration.md"), "utf8");
  const [, rest = ""] = page.split("## What to delete, and what not");
  const [section = ""] = rest.split("\n## ");
  return [...section.matchAll(/^ {7}(kubectl .*)$/gm)].map(([, command = ""]) => command);
}

it("the page's commands remove the original, and leave definitions, budgets, Service and Secret", async (t) => {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  const namespace = `zw-${randomBytes(4).toString("hex")}`;
  const path = `/api/v1/namespaces/${namespace}`;
  t.after(async () => (await remove(admin, path), admin.close()));
  await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  // The page's reader has them: budgets were there before.
  await define(admin, "zoneawarepoddisruptionbudgets", "replicatemplates");
  const cwd = await mkdtemp(join(tmpdir(), "remove-original-"));
  const sh = async (command: string): Promise<void> => {
    const text = command.replaceAll("NAMESPACE", namespace).replace("infra/manifests", join(ROOT, "infra/manifests"));
    await promisify(exec)(text, { cwd, env: process.env });
  };
  const [apply = "", ...rest] = await readCommands();
  assert.ok(rest.length >= 6, `${rest.length} commands`);
  await sh(apply);
  const name = "rollout-operator";
  const account = { kind: "ServiceAccount", name, namespace };
  const budgets = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`;
  const kept: readonly (readonly [string, object])[] = [
    [`${path}/services`, { metadata: { name }, spec: { ports: [{ port: 443 }] } }],
    [`${path}/secrets`, { metadata: { name: `${name}-self-signed-certificate` } }],
    [
      budgets,
      {
        apiVersion: "rollout-operator.grafana.com/v1",
        kind: "ZoneAwarePodDisruptionBudget",
        metadata: { name },
        spec: { maxUnavailable: 1, selector: { matchLabels: { a: "b" } } },
      },
    ],
  ];
  const rbac = `/apis/rbac.authorization.k8s.io/v1`;
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: `${name}-role` };
  const cluster = { ...roleRef, kind: "ClusterRole", name: `${name}-${namespace}-webhook-cert-update-role` };
  const gone: readonly (readonly [string, object])[] = [
    [`${path}/serviceaccounts`, { metadata: { name } }],
    [`${rbac}/namespaces/${namespace}/roles`, { metadata: { name: `${name}-role` }, rules: [] }],
    [
      `${rbac}/namespaces/${namespace}/rolebindings`,
      { metadata: { name: `${name}-rolebinding` }, roleRef, subjects: [account] },
    ],
    [`${rbac}/clusterroles`, { metadata: { name: cluster.name }, rules: [] }],
    [
      `${rbac}/clusterrolebindings`,
      {
        metadata: { name: `${name}-${namespace}-webhook-cert-secret-rolebinding` },
        roleRef: cluster,
        subjects: [account],
      },
    ],
  ];
  for (const [collection, body] of [...kept, ...gone]) await admin.call("POST", collection, body);
  for (const command of rest) await sh(command);
  const nameOf = (body: object): string => (body as { metadata: { name: string } }).metadata.name;
  for (const [collection, body] of kept) await admin.call("GET", `${collection}/${nameOf(body)}`);
  for (const [collection, body] of gone)
    await assert.rejects(admin.call("GET", `${collection}/${nameOf(body)}`), /not found/i);
  const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const crd = await admin.call<{ metadata: { annotations: Readonly<Record<string, string>> } }>(
    "GET",
    `${crds}/zoneawarepoddisruptionbudgets.rollout-operator.grafana.com`,
  );
  assert.equal(crd.metadata.annotations["helm.sh/resource-policy"], "keep");
});
