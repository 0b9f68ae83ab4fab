/**
 * A namespace with the project's RBAC, in which tests run the certificate job and the reconciler on webhook
 * configurations.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { Secret, WebhookConfiguration } from "../../../infra/kubernetes/resources.ts";
import { untilAllowed, writeKubeconfig } from "../stage/access.ts";
import { createManifest, deleteManifest, type Manifest, pathOfManifest, renderManifests } from "../stage/manifests.ts";
import { type OpenPlace, openPlace } from "../stage/place.ts";
import { type TestProcess, startEntry } from "../stage/process.ts";

const ACCOUNT = "zonewise-certificates";
const SECRET = "rollout-operator-self-signed-certificate";
const RBAC = new Set(["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]);

type Hook = Manifest & WebhookConfiguration;

export interface CertificateStage extends OpenPlace {
  /** One of the webhook configurations of the project's manifests, by its name without the namespace. */
  readonly hook: (name: string) => Hook;
  readonly addHook: (name: string) => Promise<void>;
  /** Replaces the configuration's webhooks. */
  readonly patchHook: (name: string, webhooks: readonly object[] | undefined) => Promise<void>;
  /** The Secret's data. */
  readonly secret: () => Promise<Readonly<Record<string, string>>>;
  /** Creates or updates the Secret. */
  readonly putSecret: (data: Readonly<Record<string, string>>) => Promise<void>;
  /** Starts the certificate job under its ServiceAccount. */
  readonly startJob: () => TestProcess;
}

/** On the cluster of KUBECONFIG. */
export async function openCertificateStage(): Promise<CertificateStage> {
  const place = await openPlace();
  const { admin, namespace, folder, defer } = place;
  const manifests = await renderManifests(namespace);
  const hooks = manifests.filter(({ kind }) => kind.endsWith("WebhookConfiguration")) as Hook[];
  for (const manifest of manifests.filter(({ kind }) => RBAC.has(kind)))
    if (await createManifest(admin, manifest)) defer(() => deleteManifest(admin, manifest));
  for (const manifest of hooks) defer(() => deleteManifest(admin, manifest));
  const certificate = { verbs: ["update"], apiGroups: [""], resources: ["secrets"], resourceNames: [SECRET] };
  await untilAllowed(admin, { namespace, account: ACCOUNT }, certificate);
  await writeKubeconfig(place, ACCOUNT);

  const secrets = `/api/v1/namespaces/${namespace}/secrets`;
  const hook: CertificateStage["hook"] = (name) =>
    hooks.find(({ metadata }) => metadata.name === `${name}-${namespace}`) ?? assert.fail(name);
  const pathOf = (name: string): string => `${pathOfManifest(hook(name))}/${name}-${namespace}`;
  return {
    ...place,
    hook,
    addHook: async (name) => void (await createManifest(admin, hook(name))),
    patchHook: async (name, webhooks) => void (await admin.call("PATCH", pathOf(name), { webhooks })),
    secret: async () => (await admin.call<Secret>("GET", `${secrets}/${SECRET}`)).data ?? {},
    async putSecret(data) {
      await admin
        .call("PATCH", `${secrets}/${SECRET}`, { data })
        .catch(() => admin.call("POST", secrets, { metadata: { name: SECRET }, data }));
    },
    startJob: () =>
      startEntry("infra/certs/act/main.ts", {
        PATH: process.env["PATH"] ?? "",
        KUBERNETES_NAMESPACE: namespace,
        KUBECONFIG: join(folder, ACCOUNT),
      }),
  };
}
