/** docs/migration.md: from the original to Zonewise and back, by the commands of the page, under a loop of writes. */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { generateCertificates } from "../../../infra/certs/act/generate.ts";
import { define } from "../stage/definitions.ts";
import { until } from "../stage/until.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { type Machines, openMachines } from "./machines.ts";
import { buildOriginal, KEPT, ORIGINAL, SECRET } from "./original.ts";
import { copyManifests, readCommands, runCommands } from "./steps.ts";
import { buildIllegal, isRefusal, startWrites } from "./writes.ts";
import { type PodServer, startPodServer } from "../stage/pods.ts";
import { openStage, type OpenStage } from "../stage/stage.ts";
import type { ZoneOptions } from "../stage/zones.ts";

interface Scene {
  readonly stage: OpenStage;
  readonly machines: Machines;
  /** Runs commands of the page. */
  readonly run: (commands: readonly string[]) => Promise<string>;
}

const zonesOf = ({ port }: PodServer): ZoneOptions[] => [
  { group: "rolled", name: "rolled-a", replicas: 2 },
  { group: "rolled", name: "rolled-b", replicas: 2 },
  { group: "evicted", name: "evicted-a", replicas: 2 },
  { group: "evicted", name: "evicted-b", replicas: 2 },
  { group: "kept", name: `${KEPT}a`, replicas: 1 },
  { group: "", name: "plain", replicas: 1 },
  { group: "", name: "phased", replicas: 2, strategy: { type: "RollingUpdate" } },
  { group: "", name: "guarded", replicas: 1, labels: { "grafana.com/no-downscale": "true" } },
  {
    group: "prepared",
    name: "prepared",
    replicas: 1,
    labels: { "grafana.com/prepare-downscale": "true" },
    annotations: {
      "grafana.com/prepare-downscale-http-path": "prepare",
      "grafana.com/prepare-downscale-http-port": String(port),
    },
  },
];

/** A namespace that the original serves, with its groups and budgets. */
async function openScene(t: TestContext): Promise<Scene> {
  const stage = await openStage((text) => t.diagnostic(text));
  const { admin, namespace, folder } = stage;
  const pods = await startPodServer();
  const machines = await openMachines({ admin, namespace, folder, env: pods.env });
  const originals = join(folder, "original");
  const run = (commands: readonly string[]): Promise<string> =>
    runCommands(commands, folder, { NAMESPACE: namespace, ORIGINAL: originals });
  t.after(async () => {
    const webhooks = "mutatingwebhookconfiguration,validatingwebhookconfiguration";
    const policies = ["validating", "mutating"].map((kind) => `${kind}admissionpolicy,${kind}admissionpolicybinding`);
    await run([
      `kubectl delete ${[webhooks, ...policies].join(",")} -l grafana.com/namespace=NAMESPACE`,
      `kubectl -n NAMESPACE patch phasedrollout phased --type=merge -p '{"metadata":{"finalizers":null}}' || true`,
      "kubectl delete -k infra/manifests/complete --ignore-not-found --wait=false",
    ]).catch((error: unknown) => t.diagnostic(String(error)));
    await machines.close();
    pods.close();
    await stage.close();
  });
  await mkdir(originals);
  await copyManifests(folder, namespace, machines.port);
  for (const [name, manifest] of Object.entries(buildOriginal(namespace, machines.port)))
    await writeFile(join(originals, name), JSON.stringify(manifest));
  await putCertificate(stage);
  await run([
    "kubectl apply -k infra/manifests/crds",
    "kubectl apply -f ORIGINAL/service.yaml -f ORIGINAL/deployment.yaml",
  ]);
  await define(admin, "zoneawarepoddisruptionbudgets", "phasedrollouts");
  await machines.start();
  await stage.create(zonesOf(pods));
  await createBudget(stage, "evicted", { maxUnavailable: 1 });
  await createBudget(stage, "kept", { maxUnavailable: 0 });
  await run([
    "kubectl -n NAMESPACE rollout status deployment/rollout-operator --timeout=300s",
    "kubectl apply -f ORIGINAL/webhooks.yaml",
    ...["mutatingwebhookconfiguration/prepare-downscale", "validatingwebhookconfiguration/no-downscale"].map(inject),
    ...["validatingwebhookconfiguration/pod-eviction", "validatingwebhookconfiguration/zpdb-validation"].map(inject),
  ]);
  for (const [name, write] of Object.entries(buildIllegal(stage)))
    await until(`the original refuses a ${name}`, async () => isRefusal(await write()));
  return { stage, machines, run };
}

/** As the original does for configurations with its label. */
const inject = (name: string): string =>
  `kubectl patch ${name}-NAMESPACE --type=json -p='[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"'$(kubectl -n NAMESPACE get secret ${SECRET} -o jsonpath='{.data.ca}')'"}]'`;

/** The Secret as the original makes it: three keys, for the name of its Service. */
async function putCertificate({ call, namespace }: OpenStage): Promise<void> {
  const dnsNames = [`${ORIGINAL}.${namespace}.svc`];
  const { caPem, certPem, keyPem } = await generateCertificates({
    dnsNames,
    organization: "test",
    validityDays: 365,
    now: new Date(),
  });
  const data = Object.entries({ ca: caPem, cert: certPem, key: keyPem });
  const encoded = Object.fromEntries(data.map(([key, text]) => [key, Buffer.from(text).toString("base64")]));
  await call("POST", `/api/v1/namespaces/${namespace}/secrets`, { metadata: { name: SECRET }, data: encoded });
}

/** A user's PhasedRollout of the StatefulSet `phased`. */
async function createPhasedRollout({ call, namespace }: OpenStage): Promise<void> {
  const check = { query: { expr: "up == 0", url: "http://prometheus", successWhen: "NoData" } };
  await call("POST", `/apis/sts.plus/v1alpha1/namespaces/${namespace}/phasedrollouts`, {
    apiVersion: "sts.plus/v1alpha1",
    kind: "PhasedRollout",
    metadata: { name: "phased" },
    spec: { targetRef: "phased", check },
  });
}

test("a migration and the way back refuse no legal write, leave none unjudged, and disrupt one zone at a time", async (t) => {
  const { stage, machines, run } = await openScene(t);
  const { timeline } = stage;
  const deleted = (group: string): number =>
    deletions(timeline.entries).filter((entry) => entry.group === group).length;
  const partition = (): number =>
    timeline.statefulSets.get("phased")?.spec?.updateStrategy?.rollingUpdate?.partition ?? 0;
  const writes = startWrites(stage);
  try {
    await sleep(1000);
    const to = await readCommands("To Zonewise");
    const back = await readCommands("Back to rollout-operator");
    assert.ok(to.length >= 14 && back.length >= 19, `${to.length} and ${back.length} commands`);
    assert.equal(deleted("rolled"), 0, "the stand-in rolls nothing out");
    await run([...to, "kubectl apply -k infra/manifests/phased-policy"]);
    t.diagnostic(`to Zonewise: ${writes.describe()}`);
    await timeline.until("Zonewise rolls out", () => deleted("rolled") >= 4);
    await createPhasedRollout(stage);
    await timeline.until("Zonewise guards a StatefulSet", () => partition() === 2);
    await run(back);
    await sleep(3000);
    await timeline.until("enough evictions", () => deleted("evicted") > 20, 600_000);
  } finally {
    await writes.stop();
    t.diagnostic(`all: ${writes.describe()}`);
    if (writes.refused.length + writes.unjudged.length > 0) t.diagnostic(await machines.outputs());
  }
  await timeline.until("the StatefulSet of the PhasedRollout rolls by itself again", () => partition() === 0);
  const policies = await stage.call<{ items: readonly { metadata: { name: string } }[] }>(
    "GET",
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
  );
  assert.deepEqual(
    policies.items.filter(({ metadata }) => metadata.name.endsWith(stage.namespace)),
    [],
  );
  assert.deepEqual(writes.refused, []);
  assert.deepEqual(writes.unjudged, []);
  assertNoViolations(timeline.entries.filter(({ group }) => group === "rolled" || group === "evicted"));
});
