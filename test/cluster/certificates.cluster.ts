/** X04 and the renewal, with the project's manifests, under exactly their RBAC. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { generateCertificates } from "../../infra/certs/generate.ts";
import type { Secret, WebhookConfiguration } from "../../infra/resources.ts";
import { buildKubeconfig } from "./access.ts";
import { type Admin, connectAdmin } from "./client.ts";
import { createManifest, deleteManifest, type Manifest, pathOfManifest, renderManifests } from "./manifests.ts";
import { type Reconciler, startEntry } from "./reconciler.ts";
import { startWebhook } from "./refusing-webhook.ts";

const JOB = fileURLToPath(new URL("../../infra/certs/main.ts", import.meta.url));
const RECONCILER = fileURLToPath(new URL("../../reconciler/main.ts", import.meta.url));
const NAME = "rollout-operator-self-signed-certificate";
const RBAC = new Set(["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]);
const DAY_MS = 86_400_000;
/** Between two calls of the API server, each a handshake. */
const PACE_MS = 50;

const namespace = `zw-certs-${randomBytes(3).toString("hex")}`;
const service = `rollout-operator.${namespace}.svc`;
const core = `/api/v1/namespaces/${namespace}`;
const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
const statefulSetSpec = {
  replicas: 0,
  serviceName: "zone-a",
  selector: { matchLabels: { name: "zone-a" } },
  template: { metadata: { labels: { name: "zone-a" } }, spec: { containers: [{ name: "c", image: "x" }] } },
};

const encode = (text: string): string => Buffer.from(text).toString("base64");
const decode = (text: string): string => Buffer.from(text, "base64").toString();

describe("certificates on a real control plane", () => {
  let admin: Admin;
  let folder: string;
  let hooks: readonly Manifest[];
  /** Of the cluster, and ours to remove. */
  const created: Manifest[] = [];

  before(async () => {
    admin = await connectAdmin(process.env["KUBECONFIG"]);
    folder = await mkdtemp(join(tmpdir(), "zonewise-"));
    const manifests = await renderManifests(namespace);
    hooks = manifests.filter(({ kind }) => kind.endsWith("WebhookConfiguration"));
    await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
    for (const manifest of manifests.filter(({ kind }) => RBAC.has(kind))) {
      if ((await createManifest(admin, manifest)) && manifest.metadata.namespace === undefined) created.push(manifest);
    }
    for (const account of ["zonewise-certificates", "zonewise-reconciler"]) {
      await writeFile(join(folder, account), JSON.stringify(await buildKubeconfig(admin, namespace, account)), { mode: 0o600 });
    }
  });
  after(async () => {
    for (const manifest of [...hooks, ...created]) await deleteManifest(admin, manifest);
    await admin.call("DELETE", `/api/v1/namespaces/${namespace}`);
    admin.close();
    await rm(folder, { recursive: true });
  });

  const hook = (name: string): Manifest => hooks.find(({ metadata }) => metadata.name === `${name}-${namespace}`) ?? assert.fail(name);
  const start = (account: string, entry = RECONCILER, env: Readonly<Record<string, string>> = {}): Reconciler => {
    const own = { KUBERNETES_NAMESPACE: namespace, KUBECONFIG: join(folder, account) };
    return startEntry(entry, { PATH: process.env["PATH"] ?? "", ...own, ...env });
  };
  const runJob = async (): Promise<string> => {
    const job = start("zonewise-certificates", JOB);
    assert.equal(await job.exited, 0, job.output());
    return job.output();
  };
  /** As the CronJob's next run does. */
  const heal = async (name: string): Promise<void> => {
    const reconciler = start("zonewise-reconciler");
    await reconciler.says(new RegExp(`were given the CA bundle.*${name}-${namespace}`));
    assert.equal(await reconciler.end(), 0);
  };
  const secret = async (): Promise<Readonly<Record<string, string>>> =>
    (await admin.call<Secret>("GET", `${core}/secrets/${NAME}`)).data ?? {};
  const bundle = async (name: string): Promise<string | undefined> => {
    const path = `${pathOfManifest(hook(name))}/${name}-${namespace}`;
    return (await admin.call<WebhookConfiguration>("GET", path)).webhooks?.[0]?.clientConfig.caBundle;
  };

  it("X04 configurations that came before the job, after it, later, or were edited, all end with the CA", async () => {
    await createManifest(admin, hook("no-downscale"));
    await runJob();
    await createManifest(admin, hook("prepare-downscale"));
    await heal("prepare-downscale");
    await createManifest(admin, hook("pod-eviction"));
    await createManifest(admin, hook("zpdb-validation"));
    await heal("zpdb-validation");
    const { webhooks } = hook("no-downscale") as Manifest & WebhookConfiguration;
    await admin.call("PATCH", `${pathOfManifest(hook("no-downscale"))}/no-downscale-${namespace}`, { webhooks });
    assert.equal(await bundle("no-downscale"), undefined);
    await heal("no-downscale");
    const { ca } = await secret();
    for (const name of ["no-downscale", "prepare-downscale", "pod-eviction", "zpdb-validation"]) assert.equal(await bundle(name), ca);
    assert.equal(await runJob(), "", "nothing is left to do");
  });

  it("configurations that are added or edited while no tick is due get the CA from the reconciler", async (t) => {
    const reconciler = start("zonewise-reconciler", RECONCILER, { RECONCILE_INTERVAL: "1h" });
    await reconciler.says(/"msg":"tick"/);
    const { ca } = await secret();
    const times: number[] = [];
    for (let round = 0; round < 10; round++) {
      const { webhooks } = hook("pod-eviction") as Manifest & WebhookConfiguration;
      if (round % 2 === 0) await deleteManifest(admin, hook("pod-eviction"));
      if (round % 2 === 0) await createManifest(admin, hook("pod-eviction"));
      else await admin.call("PATCH", `${pathOfManifest(hook("pod-eviction"))}/pod-eviction-${namespace}`, { webhooks });
      const from = performance.now();
      for (let look = 0; (await bundle("pod-eviction")) !== ca; look++) {
        assert.ok(look < 1000, reconciler.output());
        await wait(20);
      }
      times.push(performance.now() - from);
      // In between it is quiet, as it is when someone adds a configuration; every third change comes right after the last.
      if (round % 3 !== 0) await wait(2500);
    }
    t.diagnostic(`without a CA bundle for ${times.map((ms) => ms.toFixed(0)).join(", ")} ms`);
    assert.equal(await reconciler.end(), 0);
    assert.doesNotMatch(reconciler.output(), /are not watched/);
  });

  it("a renewal while the API server calls: no call fails, though the server takes up the new certificate late", async () => {
    const twoThirdsAgo = new Date(Date.now() - 90 * DAY_MS);
    const old = await generateCertificates({ dnsNames: [service], organization: "test", validityDays: 120, now: twoThirdsAgo });
    const webhook = await startWebhook({ cert: old.certPem, key: old.keyPem });
    try {
      const data = { ca: encode(old.caPem), cert: encode(old.certPem), key: encode(old.keyPem) };
      await admin.call("PATCH", `${core}/secrets/${NAME}`, { data });
      await admin.call("POST", `${core}/services`, {
        metadata: { name: "rollout-operator" },
        spec: { type: "ExternalName", externalName: "localhost" },
      });
      await admin.call("POST", sets, { metadata: { name: "zone-a" }, spec: statefulSetSpec });
      await deleteManifest(admin, hook("prepare-downscale"));
      await pointTo(hook("no-downscale"), webhook.port, encode(old.caPem));

      const job = start("zonewise-certificates", JOB);
      const answers = new Map<string, number>();
      let served = encode(old.certPem);
      let over = false;
      void job.exited.finally(() => (over = true));
      for (let call = 0; !over || served !== (await secret())["cert"]; call++) {
        const patch = { metadata: { annotations: { call: String(call) } } };
        const answer = await admin.call("PATCH", `${sets}/zone-a`, patch).then(() => "allowed", String);
        const told = /denied the request: .*?no/.exec(answer)?.[0] ?? answer;
        answers.set(told, (answers.get(told) ?? 0) + 1);
        await wait(PACE_MS);
        // A mounted Secret follows after a while; here the server lags by one round after the job has ended.
        const { cert = "", key = "" } = await secret();
        if (over && cert !== served) {
          webhook.reload({ cert: decode(cert), key: decode(key) });
          served = cert;
        }
      }
      assert.equal(await job.exited, 0, job.output());
      console.log([...answers]);
      assert.match(job.output(), /"reason":"NextTrusted"/);
      assert.deepEqual([...answers.keys()], ["denied the request: the webhook says no"], job.output());
      const last = await admin
        .call("PATCH", `${sets}/zone-a`, { metadata: { annotations: { call: "last" } } })
        .then(() => "allowed", String);
      assert.match(last, /denied the request: the webhook says no/);
    } finally {
      webhook.close();
    }
  });

  it("a certificate for another Service's name is refused no longer than until the job's first write", async (t) => {
    const names = { dnsNames: [`other.${namespace}.svc`], organization: "test", validityDays: 120, now: new Date() };
    const other = await generateCertificates(names);
    const webhook = await startWebhook({ cert: other.certPem, key: other.keyPem });
    try {
      const data = { ca: encode(other.caPem), cert: encode(other.certPem), key: encode(other.keyPem) };
      await admin.call("PATCH", `${core}/secrets/${NAME}`, { data });
      await pointTo(hook("no-downscale"), webhook.port, encode(other.caPem));
      const patch = { metadata: { annotations: { call: "other" } } };
      const ask = (): Promise<string> => admin.call("PATCH", `${sets}/zone-a`, patch).then(() => "allowed", String);
      assert.match(await ask(), /certificate is valid for other\./);

      const from = performance.now();
      const job = start("zonewise-certificates", JOB);
      for (let answer = ""; !answer.includes("the webhook says no"); answer = await ask()) {
        // In place of the kubelet, which takes up to a minute and a half.
        const { cert = "", key = "" } = await secret();
        webhook.reload({ cert: decode(cert), key: decode(key) });
        await wait(PACE_MS);
      }
      t.diagnostic(`refused for ${(performance.now() - from).toFixed(0)} ms from the start of the job`);
      assert.equal(await job.exited, 0, job.output());
      assert.match(job.output(), /"action":"issue","reason":"NoNameHeld"/);
      assert.doesNotMatch(job.output(), /"action":"wait"/);
    } finally {
      webhook.close();
    }
  });

  /** Puts the configuration anew, calling a port of this machine. */
  async function pointTo(manifest: Manifest, port: number, caBundle: string): Promise<void> {
    const { webhooks } = manifest as Manifest & WebhookConfiguration;
    const redirected = webhooks?.map((entry) => {
      const to = { ...entry.clientConfig.service, port };
      return { ...entry, clientConfig: { service: to, caBundle } };
    });
    await admin.call("PATCH", `${pathOfManifest(manifest)}/${manifest.metadata.name}`, { webhooks: redirected });
    const probe = { metadata: { annotations: { probe: "" } } };
    // A new configuration takes a moment to be in force.
    while ((await admin.call("PATCH", `${sets}/zone-a`, probe).then(() => "allowed", String)) === "allowed") {
      probe.metadata.annotations.probe += "x";
    }
  }
});
