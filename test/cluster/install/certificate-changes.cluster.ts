/**
 * One certificate replaces another while the API server calls a webhook. Each call is a TLS handshake, so
 * each result shows whether the API server trusts the certificate.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createServer } from "node:https";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { type Certificates, generateCertificates } from "../../../infra/certs/act/generate.ts";
import type { Secret, WebhookConfiguration } from "../../../infra/kubernetes/resources.ts";
import { listen } from "../../loopback.ts";
import { untilAllowed, writeKubeconfig } from "../stage/access.ts";
import { type Manifest, createManifest, deleteManifest, pathOfManifest, renderManifests } from "../stage/manifests.ts";
import { type OpenPlace, openPlace } from "../stage/place.ts";
import { type TestProcess, startEntry } from "../stage/process.ts";
import { until } from "../stage/until.ts";

const ACCOUNT = "zonewise-certificates";
const SECRET = "rollout-operator-self-signed-certificate";
const RBAC = new Set(["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]);

type Hook = Manifest & WebhookConfiguration;

interface CertificateStage extends OpenPlace {
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
async function openCertificateStage(): Promise<CertificateStage> {
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

interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

interface RefusingWebhook {
  readonly port: number;
  readonly reload: (pair: KeyPair) => void;
  readonly close: () => void;
}

const REFUSAL = { allowed: false, status: { code: 403, message: "the webhook says no" } };

async function startWebhook(pair: KeyPair): Promise<RefusingWebhook> {
  const server = createServer(pair, (request, response) => {
    const answerReview = async (): Promise<void> => {
      const { uid } = ((await json(request)) as { request: { uid: string } }).request;
      const answer = { uid, ...REFUSAL };
      response.setHeader("connection", "close");
      response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
    };
    // The API server may have given up.
    void answerReview().catch(() => response.destroy());
  });
  const port = await listen(server, "localhost");
  return {
    port,
    reload: (pair) => server.setSecureContext(pair),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const DAY_MS = 86_400_000;
/** The pause between two calls. */
const PAUSE_MS = 50;

const statefulSetSpec = {
  replicas: 0,
  serviceName: "zone-a",
  selector: { matchLabels: { name: "zone-a" } },
  template: { metadata: { labels: { name: "zone-a" } }, spec: { containers: [{ name: "c", image: "x" }] } },
};

const EVERY_UPDATE = [
  { operations: ["UPDATE"], apiGroups: ["apps"], apiVersions: ["v1"], resources: ["statefulsets"] },
];

const encode = (text: string): string => Buffer.from(text).toString("base64");
const decode = (text: string): string => Buffer.from(text, "base64").toString();

describe("a change of certificates on a real control plane", () => {
  let stage: CertificateStage;
  let sets: string;
  before(async () => {
    stage = await openCertificateStage();
    sets = `/apis/apps/v1/namespaces/${stage.namespace}/statefulsets`;
    await stage.admin.call("POST", `/api/v1/namespaces/${stage.namespace}/services`, {
      metadata: { name: "rollout-operator" },
      spec: { type: "ExternalName", externalName: "localhost" },
    });
    await stage.admin.call("POST", sets, { metadata: { name: "zone-a" }, spec: statefulSetSpec });
    await stage.addHook("no-downscale");
  });
  after(() => stage.close());

  /**
   * Changes the StatefulSet, so that the API server calls the webhook. Resolves with "allowed" or the error.
   */
  const change = async (call: string): Promise<string> => {
    for (;;) {
      const answer = await stage.admin
        .call("PATCH", `${sets}/zone-a`, { metadata: { annotations: { call } } })
        .then(() => "allowed", String);
      // On a machine that stood still the API server gives the webhook up, whatever its certificate is.
      if (!/context deadline exceeded|Client\.Timeout/.test(answer)) return answer;
    }
  };

  /** Serves the webhook with this certificate, waits until the API server calls it, and runs the test. */
  async function serve(
    { caPem, certPem, keyPem }: Certificates,
    run: (webhook: RefusingWebhook) => Promise<void>,
  ): Promise<void> {
    const webhook = await startWebhook({ cert: certPem, key: keyPem });
    try {
      await stage.putSecret({ ca: encode(caPem), cert: encode(certPem), key: encode(keyPem) });
      const redirected = stage.hook("no-downscale").webhooks?.map((entry) => {
        const service = { ...entry.clientConfig.service, port: webhook.port };
        // As the manifest has it, only a Scale that shrinks would be sent.
        return {
          ...entry,
          rules: EVERY_UPDATE,
          matchConditions: [],
          clientConfig: { service, caBundle: encode(caPem) },
        };
      });
      await stage.patchHook("no-downscale", redirected);
      let probe = 0;
      await until("the webhook is called", async () => (await change(`probe ${probe++}`)) !== "allowed");
      await run(webhook);
    } finally {
      webhook.close();
    }
  }

  it("a renewal: no call fails, though the server loads the new certificate late", async () => {
    const now = new Date(Date.now() - 90 * DAY_MS);
    const dnsNames = [`rollout-operator.${stage.namespace}.svc`];
    const old = await generateCertificates({ dnsNames, organization: "test", validityDays: 120, now });
    await serve(old, async (webhook) => {
      const job = stage.startJob();
      const answers = new Map<string, number>();
      let served = encode(old.certPem);
      let exited = false;
      void job.exited.finally(() => (exited = true));
      for (let call = 0; !exited || served !== (await stage.secret())["cert"]; call++) {
        const answer = await change(String(call));
        const result = /denied the request: .*?no/.exec(answer)?.[0] ?? answer;
        answers.set(result, (answers.get(result) ?? 0) + 1);
        await wait(PAUSE_MS);
        // A mounted Secret is updated with a delay; here the server reloads one round after the job has
        // exited.
        const { cert = "", key = "" } = await stage.secret();
        if (exited && cert !== served) {
          webhook.reload({ cert: decode(cert), key: decode(key) });
          served = cert;
        }
      }
      assert.equal(await job.exited, 0, job.output());
      assert.match(job.output(), /"reason":"NextTrusted"/);
      assert.deepEqual([...answers.keys()], ["denied the request: the webhook says no"], job.output());
      assert.match(await change("last"), /denied the request: the webhook says no/);
    });
  });

  it("a certificate for another Service's name is refused no longer than until the job's first write", async (t) => {
    const dnsNames = [`other.${stage.namespace}.svc`];
    await serve(
      await generateCertificates({ dnsNames, organization: "test", validityDays: 120, now: new Date() }),
      async (webhook) => {
        assert.match(await change("other"), /certificate is valid for other\./);
        const from = performance.now();
        const job = stage.startJob();
        await until(
          () => `the webhook is trusted: ${job.output()}`,
          async () => {
            // Stands for the kubelet, which takes up to 90 s to update a mounted Secret.
            const { cert = "", key = "" } = await stage.secret();
            webhook.reload({ cert: decode(cert), key: decode(key) });
            return (await change("other")).includes("the webhook says no");
          },
        );
        t.diagnostic(`refused for ${(performance.now() - from).toFixed(0)} ms from the start of the job`);
        assert.equal(await job.exited, 0, job.output());
        assert.match(job.output(), /"action":"issue","reason":"NoNameHeld"/);
        assert.doesNotMatch(job.output(), /"action":"wait"/);
      },
    );
  });
});
