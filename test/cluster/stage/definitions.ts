/** The project's definitions on a cluster on which others may have left them, changed them, or be removing them. */
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import type { Admin } from "./client.ts";
import { runKubectl } from "./kubectl.ts";
import { until } from "./until.ts";

const MANIFESTS = new URL("../../../infra/manifests/", import.meta.url);
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** The plural of each kind, and the folder of its manifest. */
const FOLDERS = {
  phasedrollouts: "crds",
  replicatemplates: "crds",
  rolloutgates: "crds",
  rolloutgroups: "crds",
  zoneawarepoddisruptionbudgets: "crds",
  bottlerocketshadows: "node-updates/crds",
  nodeupdatepolicies: "node-updates/crds",
} as const;

export type OwnKind = keyof typeof FOLDERS;

export interface Definition {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>> & {
    readonly group: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly { readonly name: string; readonly storage: boolean }[];
  };
}

interface Stored {
  readonly metadata: { readonly deletionTimestamp?: string };
}

export const readDefinition = async (kind: OwnKind): Promise<Definition> =>
  parse(await readFile(new URL(`${FOLDERS[kind]}/${kind}.yaml`, MANIFESTS), "utf8")) as Definition;

/** Makes the cluster serve these kinds as the manifests have them. The definitions stay: they are the cluster's. */
export async function define(admin: Pick<Admin, "call">, ...kinds: readonly OwnKind[]): Promise<void> {
  for (const kind of kinds) await putDefinition(admin, await readDefinition(kind));
}

/**
 * Creates the definition, or replaces the one that is there; resolves once its objects are served, and kubectl knows
 * them.
 */
export async function putDefinition({ call }: Pick<Admin, "call">, definition: Definition): Promise<void> {
  const { metadata, spec } = definition;
  await until(`${metadata.name} is stored`, async () => {
    if (await created(call, definition)) return true;
    const stored = await call<Stored>("GET", `${CRDS}/${metadata.name}`);
    // One that is being deleted ends with its last object.
    if (stored.metadata.deletionTimestamp !== undefined) return false;
    await call("PUT", `${CRDS}/${metadata.name}`, { ...definition, metadata: stored.metadata });
    return true;
  });
  // Another version may need a conversion, by a function that does not run.
  const version = spec.versions.find(({ storage }) => storage)?.name;
  await until(`${metadata.name} is served`, async () => {
    await call("GET", `/apis/${spec.group}/${version}/${spec.names.plural}?limit=1`);
    return true;
  });
  await until(`kubectl knows ${metadata.name}`, async () => {
    const { code, text } = await runKubectl(["get", metadata.name, "--all-namespaces", "-o", "name"]);
    if (code !== 0) throw new Error(text);
    return true;
  });
}

async function created(call: Admin["call"], definition: Definition): Promise<boolean> {
  try {
    await call("POST", CRDS, definition);
    return true;
  } catch (error) {
    if ((error as Error).cause === 409) return false;
    throw error;
  }
}
