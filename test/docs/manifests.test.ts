/** What pages say of manifests: the workloads that they name exist, and nothing is left, or lost, after their commands. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import { readPage, ROOT } from "./pages.ts";

/** Of the systems that the pages migrate from or stand beside. */
const OTHERS: Readonly<Record<string, string>> = {
  "brupop-controller-deployment": "docs/migrate/brupop.md",
  "rollout-operator": "docs/migrate/rollout-operator.md",
  "sts-phased-rollout-operator-controller-manager": "docs/migrate/sts-plus.md",
  "argocd-applicationset-controller": "docs/guides/gitops.md",
};
const KINDS = new Set(["Deployment", "CronJob", "DaemonSet"]);
const NAMED = /\b(deployment|cronjob|daemonset)s?[/ ]([a-z0-9]+-[a-z0-9-]+)/g;

const ours = new Set(
  globSync("{infra/manifests,knative}/**/*.yaml", { cwd: ROOT }).flatMap((file) =>
    parseAllDocuments(readPage(file)).flatMap((document) => {
      const { kind = "", metadata } = (document.toJS() ?? {}) as { kind?: string; metadata?: { name?: string } };
      return KINDS.has(kind) && metadata?.name !== undefined ? [`${kind.toLowerCase()} ${metadata.name}`] : [];
    }),
  ),
);

for (const page of ["README.md", "knative/README.md", ...globSync("docs/**/*.md", { cwd: ROOT })]) {
  const named = [...readPage(page).matchAll(NAMED)].filter(([, , name = ""]) => OTHERS[name] !== page);
  if (named.length > 0)
    it(`${page}: the workloads in its commands exist`, () => {
      for (const [text, kind, name] of named) assert.ok(ours.has(`${kind} ${name}`), text);
    });
}

const [, removal = ""] = readPage("docs/start/upgrade.md").split("\n## Remove\n");
/** Kustomizations that users apply by themselves; components are part of another one. */
const optional = globSync("infra/manifests/*/kustomization.yaml", { cwd: ROOT }).filter((file) =>
  /^# Optional[^]*^kind: Kustomization$/m.test(readPage(file)),
);

describe("the removal in docs/start/upgrade.md", () => {
  it("has optional kustomizations to name", () => assert.ok(optional.length >= 4));
  for (const file of optional) {
    const folder = file.replace("/kustomization.yaml", "");
    it(`names ${folder}`, () => assert.ok(removal.includes(`\`${folder}\``)));
  }
});

it("no command of the migration from rollout-operator deletes a definition, nor a folder that has some", () => {
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
