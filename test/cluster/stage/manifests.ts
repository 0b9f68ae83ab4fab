/** Renders the project's manifests with kustomize for a namespace, and applies them to a cluster. */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments, stringify } from "yaml";
import { type Admin, remove } from "./client.ts";
import { KUBECTL } from "./kubectl.ts";
import type { Stage } from "./stage.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

export interface Rendering {
  /** The kustomization's path from the repository's root. */
  readonly folder?: string;
  /** Components to add, paths from the repository's root. */
  readonly components?: readonly string[];
  /** Edits of files, as a user makes them, by path. */
  readonly edit?: Readonly<Record<string, (text: string) => string>>;
}

/** Renders a kustomization. The namespace is set where users set it, in infra/manifests/namespace. */
export async function renderManifests(
  namespace: string,
  { folder = "infra/manifests/complete", components = [], edit = {} }: Rendering = {},
): Promise<Manifest[]> {
  const copy = await mkdtemp(join(tmpdir(), "manifests-"));
  try {
    for (const part of ["infra/manifests", "infra/observability", "knative"])
      await cp(join(ROOT, part), join(copy, part), { recursive: true });
    const setNamespace = (text: string): string =>
      text.replace("\nnamespace: zonewise\n", `\nnamespace: ${namespace}\n`);
    for (const [file, change] of Object.entries({
      "infra/manifests/namespace/kustomization.yaml": setNamespace,
      ...edit,
    }))
      await writeFile(join(copy, file), change(await readFile(join(copy, file), "utf8")));
    const all = {
      kind: "Kustomization",
      resources: [`../${folder}`],
      components: components.map((path) => `../${path}`),
    };
    await mkdir(join(copy, "all"));
    await writeFile(join(copy, "all/kustomization.yaml"), stringify(all));
    const { stdout } = await promisify(execFile)(KUBECTL, ["kustomize", join(copy, "all")]);
    return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

const PLURALS: Readonly<Record<string, string>> = {
  Secret: "secrets",
  ServiceAccount: "serviceaccounts",
  Role: "roles",
  RoleBinding: "rolebindings",
  ClusterRole: "clusterroles",
  ClusterRoleBinding: "clusterrolebindings",
  ValidatingWebhookConfiguration: "validatingwebhookconfigurations",
  MutatingWebhookConfiguration: "mutatingwebhookconfigurations",
  ValidatingAdmissionPolicy: "validatingadmissionpolicies",
  ValidatingAdmissionPolicyBinding: "validatingadmissionpolicybindings",
  MutatingAdmissionPolicy: "mutatingadmissionpolicies",
  MutatingAdmissionPolicyBinding: "mutatingadmissionpolicybindings",
  CustomResourceDefinition: "customresourcedefinitions",
  NetworkPolicy: "networkpolicies",
  Service: "services",
  Deployment: "deployments",
  DaemonSet: "daemonsets",
  PodDisruptionBudget: "poddisruptionbudgets",
  Job: "jobs",
  CronJob: "cronjobs",
  DomainMapping: "domainmappings",
  PingSource: "pingsources",
  ApiServerSource: "apiserversources",
};

export function pathOfManifest({ apiVersion, kind, metadata: { namespace } }: Manifest): string {
  const plural = PLURALS[kind];
  if (plural === undefined) throw new Error(`unknown kind ${kind}`);
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return namespace === undefined ? `${root}/${plural}` : `${root}/namespaces/${namespace}/${plural}`;
}

/** Resolves with false if a ClusterRole exists already: installations share some. */
export async function createManifest(admin: Admin, manifest: Manifest): Promise<boolean> {
  try {
    await admin.call("POST", pathOfManifest(manifest), manifest);
    return true;
  } catch (error) {
    if (manifest.kind === "ClusterRole" && String(error).includes("AlreadyExists")) return false;
    throw error;
  }
}

export async function deleteManifest(admin: Admin, manifest: Manifest): Promise<void> {
  await remove(admin, `${pathOfManifest(manifest)}/${manifest.metadata.name}`);
}

/** The Service that the project's webhook configurations name. */
export const SERVICE = "rollout-operator";

export interface Configuration extends Manifest {
  readonly webhooks: readonly {
    readonly clientConfig: { readonly service: object };
    readonly rules: readonly { readonly resources: readonly string[] }[];
  }[];
}

/** A component that a user adds to the complete installation. */
const withComponent = (name: string): Rendering => ({
  edit: {
    "infra/manifests/complete/kustomization.yaml": (text) => text.replace("components: [", `components: [../${name}, `),
  },
});

export const WITH_STATUS_PAGE = withComponent("status-page");

/** The project's own admission policies and their bindings. */
export async function renderPolicies(namespace: string, rendering?: Rendering): Promise<Manifest[]> {
  return (await renderManifests(namespace, rendering)).filter(({ kind }) => kind.includes("AdmissionPolicy"));
}

/** Puts those whose names begin so in force for the length of the test. */
export async function enforcePolicies(
  { admin, namespace, defer }: Pick<Stage, "admin" | "namespace" | "defer">,
  { prefix = "", ...rendering }: Rendering & { readonly prefix?: string } = {},
): Promise<void> {
  for (const policy of await renderPolicies(namespace, rendering)) {
    if (!policy.metadata.name.startsWith(prefix)) continue;
    defer(() => deleteManifest(admin, policy));
    await createManifest(admin, policy);
  }
}

export interface Registration {
  readonly caPem: string;
  readonly port: number;
  /** Resources that are registered besides. */
  readonly more?: readonly string[];
  readonly rendering?: Rendering;
}

/** Renders webhook configurations by name, for a server behind the Service at `port`. */
export async function renderConfigurations(
  namespace: string,
  names: readonly string[],
  { caPem, port, more = [], rendering }: Registration,
): Promise<Configuration[]> {
  const caBundle = Buffer.from(caPem).toString("base64");
  const all = (await renderManifests(namespace, rendering)) as Configuration[];
  const wanted = all.filter(({ metadata }) => names.some((name) => metadata.name === `${name}-${namespace}`));
  if (wanted.length !== names.length)
    throw new Error(`found ${wanted.length} of the configurations ${names.join(", ")}`);
  return wanted.map((configuration) => ({
    ...configuration,
    webhooks: configuration.webhooks.map((webhook) => ({
      ...webhook,
      clientConfig: { caBundle, service: { ...webhook.clientConfig.service, port } },
      rules: webhook.rules.map((rule) => ({ ...rule, resources: [...rule.resources, ...more] })),
    })),
  }));
}
