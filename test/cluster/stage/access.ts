/** Gives the processes under test exactly the rights of the project's manifests. */
import { readFile } from "node:fs/promises";
import { parseAllDocuments } from "yaml";
import type { Admin } from "./client.ts";

/** The process to authorize; each has a folder of manifests with a ServiceAccount and RBAC rules. */
export type Role = "reconciler" | "functions" | "status-page" | "prometheus-secrets";

interface Manifest {
  readonly kind: string;
  readonly subjects?: readonly object[];
}

const PATHS: Readonly<Record<string, string>> = {
  ServiceAccount: "/api/v1/namespaces/{}/serviceaccounts",
  Role: "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
  RoleBinding: "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
};

/**
 * Creates the RBAC objects in a namespace. The manifests name none: users set it with kustomize, tests with
 * this.
 */
export async function applyRbac(admin: Admin, namespace: string, role: Role = "reconciler"): Promise<void> {
  const file = new URL(`../../../infra/manifests/${role}/rbac.yaml`, import.meta.url);
  for (const document of parseAllDocuments(await readFile(file, "utf8"))) {
    const manifest = document.toJS() as Manifest;
    const path = PATHS[manifest.kind];
    if (path === undefined) throw new Error(`${file.pathname}: unexpected kind ${manifest.kind}`);
    const subjects = manifest.subjects?.map((subject) => ({ ...subject, namespace }));
    await admin.call("POST", path.replace("{}", namespace), { ...manifest, ...(subjects && { subjects }) });
  }
}

/** Returns a kubeconfig with a token of the ServiceAccount, valid for an hour. */
export async function buildKubeconfig({ server, ca, call }: Admin, namespace: string, account = "zonewise-reconciler"): Promise<object> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  const { status } = await call<{ status: { token: string } }>("POST", path, { spec: { expirationSeconds: 3600 } });
  const cluster = { server, ...(ca !== undefined && { "certificate-authority-data": Buffer.from(ca).toString("base64") }) };
  return {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    clusters: [{ name: "test", cluster }],
    users: [{ name: "test", user: { token: status.token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
  };
}
