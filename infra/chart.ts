/**
 * `npm run chart`: copies the manifests into the Helm chart, whose templates change them by its values. A chart has to
 * hold all its files: Helm reads none outside of it, and tools that fetch charts drop symbolic links (Flux does, and
 * then reports an installation of nothing: aws/karpenter#4227).
 */
import { cpSync, globSync, rmSync } from "node:fs";
import { join } from "node:path";

const FROM = "infra/manifests";
const OBSERVABILITY = "infra/observability";
const CHART = "infra/helm/zonewise";
/** Where the copies of a folder lie: Helm knows definitions by their folder. */
const INTO = {
  crds: `${CHART}/charts/crds/crds`,
  nodeCrds: `${CHART}/charts/node-update-crds/crds`,
  other: `${CHART}/manifests`,
  observability: `${CHART}/observability`,
};
/** What only kustomize reads. */
const KUSTOMIZE = /\/(?:kustomization|source)\.yaml$/;
/** Roles of people, once per cluster: no value of an installation. */
const PEOPLE = `${FROM}/cli/`;

/** Each manifest and its copy, paths from the repository's root. */
export function listCopies(root: string): { readonly from: string; readonly to: string }[] {
  const all = globSync([`${FROM}/{*,node-updates/*}/*.yaml`, `${OBSERVABILITY}/*.{yaml,json}`], { cwd: root });
  const files = all.filter((file) => !KUSTOMIZE.test(file) && !file.startsWith(PEOPLE));
  return files.toSorted().map((from) => ({
    from,
    to: from
      .replace(`${FROM}/crds`, INTO.crds)
      .replace(`${FROM}/node-updates/crds`, INTO.nodeCrds)
      .replace(FROM, INTO.other)
      .replace(OBSERVABILITY, INTO.observability),
  }));
}

/** All copies that there are, paths from the root. */
export const findCopies = (root: string): string[] =>
  globSync(
    Object.values(INTO).map((folder) => `${folder}/**/*.{yaml,json}`),
    { cwd: root },
  ).toSorted();

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  for (const folder of Object.values(INTO)) rmSync(join(root, folder), { recursive: true, force: true });
  for (const { from, to } of listCopies(root)) cpSync(join(root, from), join(root, to));
}
