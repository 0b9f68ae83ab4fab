/**
 * docs/migrate/rollout-operator.md and what it needs of manifests and examples; test/cluster/migration runs its commands, there and
 * back.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { parseAllDocuments } from "yaml";
import { readPage } from "./pages.ts";

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
