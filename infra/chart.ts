/**
 * `npm run chart`: copies the manifests into the Helm chart, whose templates change them by its values, and writes the
 * version of package.json into it and its subcharts. A chart has to hold all its files: Helm reads no files outside of
 * it, and tools that fetch charts drop symbolic links (Flux does, and then reports an installation of nothing:
 * aws/karpenter#4227).
 */
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FROM = "infra/manifests";
const OBSERVABILITY = "infra/observability";
const CHART = "infra/helm/zonewise";
/** The target folder of the copies of each folder: Helm knows definitions by their folder. */
const INTO = {
  crds: `${CHART}/charts/crds/crds`,
  nodeCrds: `${CHART}/charts/node-update-crds/crds`,
  other: `${CHART}/manifests`,
  observability: `${CHART}/observability`,
};
/** Files that only kustomize reads. */
const KUSTOMIZE = /\/(?:kustomization|source)\.yaml$/;
/** Roles for people: they exist once per cluster, so no installation has values for them. */
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

/** All existing copies, paths from the root. */
export const findCopies = (root: string): string[] =>
  globSync(
    Object.values(INTO).map((folder) => `${folder}/**/*.{yaml,json}`),
    { cwd: root },
  ).toSorted();

/** The chart and its subcharts, paths from the root. */
export const findCharts = (root: string): string[] =>
  globSync([`${CHART}/Chart.yaml`, `${CHART}/charts/*/Chart.yaml`], { cwd: root }).toSorted();

/** The text of a Chart.yaml with this version for the chart, its app and its subcharts. */
export const withVersion = (chart: string, version: string): string =>
  chart.replaceAll(/\b(version|appVersion): [^\s,}]+/g, `$1: ${version}`);

export const readVersion = (root: string): string =>
  (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }).version;

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  for (const folder of Object.values(INTO)) rmSync(join(root, folder), { recursive: true, force: true });
  for (const { from, to } of listCopies(root)) cpSync(join(root, from), join(root, to));
  for (const file of findCharts(root).map((chart) => join(root, chart)))
    writeFileSync(file, withVersion(readFileSync(file, "utf8"), readVersion(root)));
}
