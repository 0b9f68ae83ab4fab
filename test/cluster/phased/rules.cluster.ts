/**
 * What the API server itself refuses of PhasedRollouts, without any webhook; and what keeps partitions of their
 * StatefulSets.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, it, type TestContext } from "node:test";
import { createPhasedValidation } from "../../../functions/phased/phased-validation.ts";
import { createRaisePartition } from "../../../functions/phased/raise-partition.ts";
import type { Webhook } from "../../../functions/http/webhook.ts";
import { generateCertificates } from "../../../infra/certs/act/generate.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { assertSaid, GATE_CASES, STORED, writeGate } from "../../functions/phased/gate-cases.ts";
import { assertOutcome, PARTITION_CASES, write } from "../../functions/phased/partition-cases.ts";
import { serve } from "../../functions/serve-one.ts";
import { type Admin, connectAdmin, remove } from "../stage/client.ts";
import { type Client, connect } from "../conformance/client.ts";
import { readKubeconfig } from "../conformance/recording.ts";
import { define } from "../stage/definitions.ts";
import {
  createManifest,
  deleteManifest,
  type Manifest,
  renderConfigurations,
  renderManifests,
  SERVICE,
} from "../stage/manifests.ts";
import { ownDefinition } from "../stage/own-definition.ts";
import { until } from "../stage/until.ts";

const query = { expr: "up == 0", url: "http://prom:9090" };

const REFUSED: readonly (readonly [string, object, RegExp])[] = [
  ["another scheme", { check: { query: { ...query, url: "ftp://prom" } } }, /only http and https are possible/],
  ["a URL without a host", { check: { query: { ...query, url: "http://" } } }, /the host is missing/],
  ["a path alone", { check: { query: { ...query, url: "/prom" } } }, /the host is missing/],
  ["a backslash", { check: { query: { ...query, url: "http://a\\b" } } }, /neither spaces nor backslashes/],
  ["an empty URL", { check: { query: { ...query, url: "" } } }, /at least 1 chars/],
  ["an empty expression", { check: { query: { ...query, expr: "" } } }, /at least 1 chars/],
  ["a threshold of 0", { check: { query, successThreshold: 0 } }, /greater than or equal to 1/],
  ["a negative delay", { check: { query, initialDelaySeconds: -1 } }, /greater than or equal to 0/],
  ["another successWhen", { check: { query: { ...query, successWhen: "Always" } } }, /supported values/],
  [
    "skipCheck and its other name, different",
    { check: { query }, skipCheck: true, standardRollingUpdate: false },
    /another name of skipCheck/,
  ],
  ["no check", {}, /spec\.check: Required/],
  ["an empty targetRef", { targetRef: "", check: { query } }, /at least 1 chars/],
];

const ADMITTED: readonly (readonly [string, object])[] = [
  ["the URL of the original's documentation", { check: { query: { ...query, url: "prom:9000/xx" } } }],
  ["a user in the URL", { check: { query: { ...query, url: "HTTPS://user:word@prom/x" } } }],
  ["an IPv6 address", { check: { query: { ...query, url: "http://[::1]:9090" } } }],
  ["both names, equal", { check: { query }, skipCheck: false, standardRollingUpdate: false }],
];

describe("the definition of PhasedRollouts", () => {
  let admin: Admin;
  const definition = ownDefinition({ plural: "phasedrollouts", version: "v1alpha1", group: "sts.plus" });
  const { group, path } = definition;
  before(async () => void (admin = await definition.create()));
  after(() => definition.remove());

  const create = (spec: object, name = "guard", dry = true): Promise<unknown> =>
    admin.call("POST", dry ? `${path}?dryRun=All` : path, {
      apiVersion: `${group}/v1alpha1`,
      kind: "PhasedRollout",
      metadata: { name },
      spec: { targetRef: "db", ...spec },
    });

  for (const [name, spec, why] of REFUSED) it(`refuses ${name}`, () => assert.rejects(create(spec), why));
  for (const [name, spec] of ADMITTED) it(`admits ${name}`, async () => void (await create(spec)));

  it("has the defaults, but none of successWhen, and keeps a 0", async () => {
    const { spec } = (await create({ check: { query, initialDelaySeconds: 0 } })) as { spec: { check: object } };
    assert.deepEqual(spec.check, { query, initialDelaySeconds: 0, periodSeconds: 60, successThreshold: 3 });
  });

  it("refuses another targetRef", async () => {
    await create({ check: { query } }, "stored", false);
    await assert.rejects(
      admin.call("PATCH", `${path}/stored`, { spec: { targetRef: "other" } }),
      /targetRef cannot be changed/,
    );
    await admin.call("PATCH", `${path}/stored`, { spec: { skipCheck: true } });
  });
});

/** A namespace of its own, where admission guards partitions. */
interface Guarded {
  readonly admin: Admin;
  readonly namespace: string;
  /** What guards it. */
  readonly manifests: readonly Manifest[];
  readonly close: () => void;
}

async function open(): Promise<Guarded> {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  const namespace = `zw-${randomBytes(4).toString("hex")}`;
  await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  return { admin, namespace, manifests: [], close: () => {} };
}

/** A namespace whose objects a webhook of the manifests judges, with our function behind it. */
async function guardBy(name: string, webhook: Webhook): Promise<Guarded> {
  const stage = await open();
  const { admin, namespace } = stage;
  const dnsNames = [`${SERVICE}.${namespace}.svc`];
  const validity = { organization: "test", validityDays: 1, now: new Date() };
  const { caPem, certPem, keyPem } = await generateCertificates({ dnsNames, ...validity });
  const { server, port } = await serve(webhook, { cert: certPem, key: keyPem });
  const service = { metadata: { name: SERVICE }, spec: { type: "ExternalName", externalName: "localhost" } };
  await admin.call("POST", `/api/v1/namespaces/${namespace}/services`, service);
  const manifests = await renderConfigurations(namespace, [name], { caPem, port });
  return { ...stage, manifests, close: () => (server.closeAllConnections(), void server.close()) };
}

/** Removes it all at the end of the test. */
function attach(t: TestContext, { admin, namespace, manifests, close }: Guarded): Client {
  const client = connect(readKubeconfig(process.env["KUBECONFIG"] ?? ""));
  t.after(async () => {
    for (const manifest of manifests) await deleteManifest(admin, manifest);
    await remove(admin, `/api/v1/namespaces/${namespace}`);
    close();
    client.close();
    admin.close();
  });
  return client;
}

/** What guards partitions: the policy, or the webhook of the manifests with our function behind it. */
const GUARDS = {
  async policy(): Promise<Guarded> {
    const stage = await open();
    return { ...stage, manifests: await renderManifests(stage.namespace, { folder: "infra/manifests/phased-policy" }) };
  },
  webhook: (): Promise<Guarded> => guardBy("raise-partition", createRaisePartition()),
};

for (const [guard, start] of Object.entries(GUARDS))
  it(`by the ${guard}: of the StatefulSet of a PhasedRollout, only the reconciler lowers the partition`, async (t) => {
    const guarded = await start();
    const { admin, namespace, manifests } = guarded;
    const client = attach(t, guarded);
    for (const manifest of manifests) await createManifest(admin, manifest);
    const [first] = PARTITION_CASES;
    assert.ok(first);
    // The API server takes both into account a moment after it has stored them.
    await until(`the ${guard} guards`, async () => {
      const { stored } = await write(first, client, namespace);
      return stored.spec.updateStrategy.rollingUpdate?.partition === first.partition;
    });
    for (const one of PARTITION_CASES) assertOutcome(one, await write(one, client, namespace), guard === "webhook");
  });

it("§14.12 the webhook of PhasedRollouts refuses a gate that could never be answered, and warns of what is no PromQL", async (t) => {
  // Of a gate it asks the cluster nothing.
  const guarded = await guardBy("phased-validation", createPhasedValidation({ cluster: {} as Cluster }));
  const { admin, namespace, manifests } = guarded;
  const client = attach(t, guarded);
  await define(admin, "rolloutgates");
  await admin.call("POST", `/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgates`, STORED);
  for (const manifest of manifests) await createManifest(admin, manifest);
  const refused = GATE_CASES.find(({ refused }) => refused) ?? assert.fail();
  await until("the webhook is asked", async () => (await writeGate(refused, client, namespace)).status === 422);
  for (const one of GATE_CASES) assertSaid(one, await writeGate(one, client, namespace));
});
