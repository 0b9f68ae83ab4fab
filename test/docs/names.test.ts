/** Workloads that README and docs name in commands exist: in our manifests, or in somebody else's where the page says so. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { it } from "node:test";
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
