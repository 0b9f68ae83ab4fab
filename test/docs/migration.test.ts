/**
 * docs/migrate/rollout-operator.md on the webhooks that the original does not have: its process answers them with 404, so they have to
 * go before it answers.
 */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { it } from "node:test";
import { parseAllDocuments } from "yaml";
import { VARIABLES } from "../../infra/config/variables.ts";
import { nameLease } from "../../reconciler/downscale/act/downscale-lease.ts";
import { readPage, ROOT } from "./pages.ts";

/** Configurations of the same kind and name, which the original's manifests replace. */
const SHARED = ["no-downscale", "prepare-downscale", "zpdb-validation"];

const names = globSync("infra/manifests/webhooks/*.yaml", { cwd: join(ROOT) }).map((path) => basename(path, ".yaml"));
const own = names.filter((name) => name !== "kustomization" && !SHARED.includes(name));

it("the way back deletes every webhook configuration that Zonewise alone has", () => {
  const [, back = ""] = readPage("docs/migrate/rollout-operator.md").split("## Back to rollout-operator");
  assert.ok(own.includes("pod-eviction"));
  const missing = own.filter(
    (name) =>
      !new RegExp(`^ +kubectl delete (?:mutating|validating)webhookconfiguration.* ${name}-NAMESPACE`, "m").test(back),
  );
  assert.deepEqual(missing, []);
});

it("the way back first deletes PhasedRollouts, while the reconciler can release them", () => {
  const [, back = ""] = readPage("docs/migrate/rollout-operator.md").split("## Back to rollout-operator");
  const [first] = back.match(/^ {7}kubectl .*$/m) ?? [];
  assert.match(first ?? "", /kubectl -n NAMESPACE delete phasedrollouts --all --timeout=\d+s$/);
});

it("the way back deletes every Lease of Zonewise, and sends nobody to a block that deletes the zone tracker", () => {
  const [, back = ""] = readPage("docs/migrate/rollout-operator.md").split("## Back to rollout-operator");
  const [, prefix = ""] =
    /^ +kubectl -n NAMESPACE get leases -o name \| grep \/(\S+) \| xargs -r kubectl/m.exec(back) ?? [];
  assert.notEqual(prefix, "");
  const names = [nameLease("ingester", ""), VARIABLES.LEASE_NAME.default];
  assert.deepEqual(
    names.filter((name) => !name.startsWith(prefix)),
    [],
  );
  assert.doesNotMatch(back, /install\.md#remove|configmap rollout-operator-zone-tracker/);
});

it("the way back deletes every kind of policy that Zonewise has", () => {
  const [, back = ""] = readPage("docs/migrate/rollout-operator.md").split("## Back to rollout-operator");
  const texts = globSync("infra/manifests/**/*.yaml", { cwd: join(ROOT) }).map(readPage);
  const kinds = texts.flatMap((text) =>
    [...text.matchAll(/^kind: (\w+AdmissionPolicy(?:Binding)?)$/gm)].map(([, kind = ""]) => kind.toLowerCase()),
  );
  assert.equal(new Set(kinds).size, 4);
  const missing = kinds.filter(
    (kind) => !new RegExp(`^ +kubectl delete (?:.*,)?${kind}[, ].*-l grafana.com/namespace=NAMESPACE$`, "m").test(back),
  );
  assert.deepEqual(missing, []);
});

it("the overlays of a migration treat the configurations of both as such", () => {
  assert.ok(readPage("infra/manifests/migration/kustomization.yaml").includes(`(${SHARED.join("|")})-.*`));
  const webhooks = readPage("infra/manifests/migration/webhooks/kustomization.yaml");
  for (const name of SHARED) assert.ok(webhooks.includes(`"/admission/${name}/"`), name);
});

it("no command of the page deletes a definition, nor a folder that has some", () => {
  const commands = readPage("docs/migrate/rollout-operator.md").match(/^ +kubectl .*delete .*$/gm) ?? [];
  assert.ok(commands.length > 10);
  for (const command of commands)
    assert.doesNotMatch(command, /\b(?:crds?|customresourcedefinitions?)\b|delete -f|-k infra\/manifests\/crds/);
});

it("pods of the example have the label by which alone the original finds those of a zone", () => {
  const sets = parseAllDocuments(readPage("examples/three-zones.yaml"))
    .map((document) => document.toJS() as { kind?: string; metadata: { name: string }; spec: Spec })
    .filter(({ kind }) => kind === "StatefulSet");
  assert.equal(sets.length, 3);
  for (const { metadata, spec } of sets) assert.equal(spec.template.metadata.labels["name"], metadata.name);
});

interface Spec {
  readonly template: { readonly metadata: { readonly labels: Readonly<Record<string, string>> } };
}
