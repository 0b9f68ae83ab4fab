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

const ENTRIES = { job: "infra/certs/act/main.ts", reconciler: "reconciler/run/main.ts" } as const;
const ACCOUNTS = { job: "zonewise-certificates", reconciler: "zonewise-reconciler" } as const;
const SECRET = "rollout-operator-self-signed-certificate";
const RBAC = new Set(["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]);

type Hook = Manifest & WebhookConfiguration;

export interface CertificateStage extends OpenPlace {
  /** The names of the configurations of the project's manifests, without the namespace. */
  readonly hooks: readonly string[];
  /** One of the webhook configurations of the project's manifests, by its name without the namespace. */
  readonly hook: (name: string) => Hook;
  readonly addHook: (name: string) => Promise<void>;
  readonly removeHook: (name: string) => Promise<void>;
  /** Replaces the configuration's webhooks. */
  readonly patchHook: (name: string, webhooks: readonly object[] | undefined) => Promise<void>;
  /** The stored CA bundle of the configuration's first webhook. */
  readonly bundle: (name: string) => Promise<string | undefined>;
  /** The Secret's data. */
  readonly secret: () => Promise<Readonly<Record<string, string>>>;
  /** Creates or updates the Secret. */
  readonly putSecret: (data: Readonly<Record<string, string>>) => Promise<void>;
  readonly emptySecret: () => Promise<void>;
  /** Starts one of our processes under its ServiceAccount. */
  readonly start: (entry: keyof typeof ENTRIES, env?: Readonly<Record<string, string>>) => TestProcess;
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
  for (const account of Object.values(ACCOUNTS)) {
    await untilAllowed(admin, { namespace, account }, certificate);
    await writeKubeconfig(place, account);
  }

  const secrets = `/api/v1/namespaces/${namespace}/secrets`;
  const hook: CertificateStage["hook"] = (name) =>
    hooks.find(({ metadata }) => metadata.name === `${name}-${namespace}`) ?? assert.fail(name);
  const pathOf = (name: string): string => `${pathOfManifest(hook(name))}/${name}-${namespace}`;
  return {
    ...place,
    hooks: hooks.map(({ metadata }) => metadata.name.replace(`-${namespace}`, "")),
    hook,
    addHook: async (name) => void (await createManifest(admin, hook(name))),
    removeHook: (name) => deleteManifest(admin, hook(name)),
    patchHook: async (name, webhooks) => void (await admin.call("PATCH", pathOf(name), { webhooks })),
    bundle: async (name) =>
      (await admin.call<WebhookConfiguration>("GET", pathOf(name))).webhooks?.[0]?.clientConfig.caBundle,
    secret: async () => (await admin.call<Secret>("GET", `${secrets}/${SECRET}`)).data ?? {},
    async putSecret(data) {
      await admin
        .call("PATCH", `${secrets}/${SECRET}`, { data })
        .catch(() => admin.call("POST", secrets, { metadata: { name: SECRET }, data }));
    },
    emptySecret: async () => void (await admin.call("PATCH", `${secrets}/${SECRET}`, { data: null })),
    start(entry, env = {}) {
      const own = { KUBERNETES_NAMESPACE: namespace, KUBECONFIG: join(folder, ACCOUNTS[entry]) };
      return startEntry(ENTRIES[entry], { PATH: process.env["PATH"] ?? "", ...own, ...env });
    },
  };
}
