/** Gives the processes under test exactly the rights of the project's manifests. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { Admin } from "./client.ts";
import { until } from "./until.ts";

/** The process to authorize; each has a folder of manifests with a ServiceAccount and RBAC rules. */
type Role = "reconciler" | "functions" | "status-page" | "prometheus-secrets";

export interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules?: readonly Rule[];
  readonly roleRef?: { readonly name: string };
  readonly subjects?: readonly { readonly name: string }[];
}

const PATHS: Readonly<Record<string, string>> = {
  ServiceAccount: "/api/v1/namespaces/{}/serviceaccounts",
  Role: "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
  RoleBinding: "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
};

/**
 * Creates the RBAC objects in a namespace; resolves once the API server knows them. The manifests name no namespace:
 * users set it with kustomize, tests with this.
 */
export async function applyRbac(admin: Admin, namespace: string, role: Role = "reconciler"): Promise<void> {
  const file = new URL(`../../../infra/manifests/${role}/rbac.yaml`, import.meta.url);
  const manifests = parseAllDocuments(await readFile(file, "utf8")).map((document) => document.toJS() as Manifest);
  for (const manifest of manifests) {
    const path = PATHS[manifest.kind];
    if (path === undefined) throw new Error(`${file.pathname}: unexpected kind ${manifest.kind}`);
    const subjects = manifest.subjects?.map((subject) => ({ ...subject, namespace }));
    await admin.call("POST", path.replace("{}", namespace), { ...manifest, ...(subjects && { subjects }) });
  }
  for (const { roleRef, subjects = [] } of manifests) {
    const rules =
      manifests.find(({ kind, metadata }) => kind === "Role" && metadata.name === roleRef?.name)?.rules ?? [];
    for (const { name } of subjects)
      for (const rule of rules) await untilAllowed(admin, { namespace, account: name }, rule);
  }
}

/** Resolves once the ServiceAccount has what the rule gives it: an API server knows new bindings after a moment. */
export async function untilAllowed(
  { call }: Pick<Admin, "call">,
  { namespace, account }: { readonly namespace: string; readonly account: string },
  { verbs: [verb], apiGroups: [group], resources: [kind = ""], resourceNames: [name] = [] }: Rule,
): Promise<void> {
  const [resource, subresource] = kind.split("/");
  const user = `system:serviceaccount:${namespace}:${account}`;
  const spec = { user, resourceAttributes: { namespace, verb, group, resource, subresource, name } };
  await until(`${account} may ${verb} ${kind}`, async () => {
    const review = await call<{ status: { allowed: boolean } }>(
      "POST",
      "/apis/authorization.k8s.io/v1/subjectaccessreviews",
      { spec },
    );
    return review.status.allowed;
  });
}

interface Place {
  readonly admin: Admin;
  readonly namespace: string;
  readonly folder: string;
}

/** Creates a ServiceAccount with these rights in the namespace; resolves with the path of its kubeconfig. */
export async function createAccount(place: Place, account: string, rules: readonly Rule[]): Promise<string> {
  const { admin, namespace } = place;
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const metadata = { name: account };
  await admin.call("POST", `/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata });
  await admin.call("POST", `${rbac}/roles`, { metadata, rules });
  await admin.call("POST", `${rbac}/rolebindings`, {
    metadata,
    subjects: [{ kind: "ServiceAccount", name: account, namespace }],
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: account },
  });
  for (const rule of rules) await untilAllowed(admin, { namespace, account }, rule);
  return await writeKubeconfig(place, account);
}

/** Resolves with the path of a kubeconfig of the ServiceAccount. */
export async function writeKubeconfig({ admin, namespace, folder }: Place, account?: string): Promise<string> {
  const path = join(folder, account ?? "kubeconfig");
  await writeFile(path, JSON.stringify(await buildKubeconfig(admin, namespace, account)), { mode: 0o600 });
  return path;
}

/** Returns a kubeconfig with a token of the ServiceAccount, valid for an hour. */
export async function buildKubeconfig(
  { server, ca, call }: Admin,
  namespace: string,
  account = "zonewise-reconciler",
): Promise<object> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  const { status } = await call<{ status: { token: string } }>("POST", path, { spec: { expirationSeconds: 3600 } });
  const cluster = {
    server,
    ...(ca !== undefined && { "certificate-authority-data": Buffer.from(ca).toString("base64") }),
  };
  return {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    clusters: [{ name: "test", cluster }],
    users: [{ name: "test", user: { token: status.token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
  };
}
