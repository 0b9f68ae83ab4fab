/** Finds the resources of a kind through the API server's discovery endpoints. */
import type { Resource } from "./resources.ts";

interface ApiGroup {
  readonly versions?: readonly { readonly version: string }[];
  readonly preferredVersion?: { readonly version: string };
}

interface ApiResources {
  readonly resources?: readonly { readonly name: string; readonly kind: string }[];
}

/**
 * The resources of a kind in a group, the preferred version first; none if the server does not know the kind.
 * `read` resolves with the JSON at a path, or with undefined if the path does not exist.
 */
export async function discoverKind(
  group: string,
  kind: string,
  read: (path: string) => Promise<unknown>,
): Promise<Resource[]> {
  const root = group === "" ? "/api" : `/apis/${encodeURIComponent(group)}`;
  const versions = group === "" ? ["v1"] : versionsOf((await read(root)) as ApiGroup | undefined);
  const found = versions.map(async (version) => {
    const list = (await read(`${root}/${version}`)) as ApiResources | undefined;
    // `replicatemplates/scale` is of the kind Scale, but a name with a slash may also repeat the parent's kind.
    const names = (list?.resources ?? []).filter((resource) => resource.kind === kind && !resource.name.includes("/"));
    return names.map(({ name }): Resource => ({ group, version, plural: name }));
  });
  return (await Promise.all(found)).flat();
}

function versionsOf(group: ApiGroup | undefined): string[] {
  const preferred = group?.preferredVersion?.version;
  const all = (group?.versions ?? []).map(({ version }) => version);
  return [...all.filter((version) => version === preferred), ...all.filter((version) => version !== preferred)];
}
