/** The project's own manifests, rendered by kustomize for a namespace, and put on a cluster. */
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import type { Admin } from "./client.ts";

const FOLDER = new URL("../../infra/manifests/", import.meta.url).pathname;

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> };
}

/** Everything that infra/manifests/<folder> stands for in a namespace, said where the README says: in manifests/namespace. */
export async function renderManifests(namespace: string, folder = "complete"): Promise<Manifest[]> {
  const copy = await mkdtemp(join(tmpdir(), "manifests-"));
  try {
    await cp(FOLDER, copy, { recursive: true });
    const place = join(copy, "namespace/kustomization.yaml");
    const component = await readFile(place, "utf8");
    await writeFile(place, component.replace("\nnamespace: zonewise\n", `\nnamespace: ${namespace}\n`));
    const { stdout } = await promisify(execFile)(process.env["KUBECTL"] ?? "kubectl", ["kustomize", join(copy, folder)]);
    return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
  } finally {
    await rm(copy, { recursive: true });
  }
}

const PLURALS: Readonly<Record<string, string>> = {
  ServiceAccount: "serviceaccounts",
  Role: "roles",
  RoleBinding: "rolebindings",
  ClusterRole: "clusterroles",
  ClusterRoleBinding: "clusterrolebindings",
  ValidatingWebhookConfiguration: "validatingwebhookconfigurations",
  MutatingWebhookConfiguration: "mutatingwebhookconfigurations",
};

export function pathOfManifest({ apiVersion, kind, metadata: { namespace } }: Manifest): string {
  const plural = PLURALS[kind];
  if (plural === undefined) throw new Error(`no path is known for a ${kind}`);
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return namespace === undefined ? `${root}/${plural}` : `${root}/namespaces/${namespace}/${plural}`;
}

/** Creates the manifest; one that is shared by all installations may be there already. */
export async function createManifest(admin: Admin, manifest: Manifest): Promise<void> {
  await admin.call("POST", pathOfManifest(manifest), manifest).catch((error: unknown) => {
    if (manifest.kind !== "ClusterRole" || !String(error).includes("AlreadyExists")) throw error;
  });
}

export async function deleteManifest(admin: Admin, manifest: Manifest): Promise<void> {
  await admin.call("DELETE", `${pathOfManifest(manifest)}/${manifest.metadata.name}`).catch(() => {});
}
