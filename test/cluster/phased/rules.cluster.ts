/**
 * What the API server itself refuses of PhasedRollouts, without any webhook; and what keeps partitions of their
 * StatefulSets.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, it, type TestContext } from "node:test";
import { createRaisePartition } from "../../../functions/phased/raise-partition.ts";
import { generateCertificates } from "../../../infra/certs/act/generate.ts";
import { assertOutcome, PARTITION_CASES, write } from "../../functions/phased/partition-cases.ts";
import { serve } from "../../functions/serve-one.ts";
import { type Admin, connectAdmin, remove } from "../stage/client.ts";
import { connect } from "../conformance/client.ts";
import { readKubeconfig } from "../conformance/recording.ts";
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

interface Guarding {
  readonly admin: Admin;
  readonly namespace: string;
  readonly t: TestContext;
}

/** What guards partitions: the policy, or the webhook of the manifests with our function behind it. */
const GUARDS: Readonly<Record<string, (guarding: Guarding) => Promise<readonly Manifest[]>>> = {
  policy: ({ namespace }) => renderManifests(namespace, { folder: "infra/manifests/phased-policy" }),
  async webhook({ admin, namespace, t }) {
    const dnsNames = [`${SERVICE}.${namespace}.svc`];
    const validity = { organization: "test", validityDays: 1, now: new Date() };
    const { caPem, certPem, keyPem } = await generateCertificates({ dnsNames, ...validity });
    const { server, port } = await serve(createRaisePartition(), { cert: certPem, key: keyPem });
    t.after(() => (server.closeAllConnections(), void server.close()));
    const service = { metadata: { name: SERVICE }, spec: { type: "ExternalName", externalName: "localhost" } };
    await admin.call("POST", `/api/v1/namespaces/${namespace}/services`, service);
    return await renderConfigurations(namespace, ["raise-partition"], { caPem, port });
  },
};

for (const [guard, render] of Object.entries(GUARDS))
  it(`by the ${guard}: of the StatefulSet of a PhasedRollout, only the reconciler lowers the partition`, async (t) => {
    const admin = await connectAdmin(process.env["KUBECONFIG"]);
    const client = connect(readKubeconfig(process.env["KUBECONFIG"] ?? ""));
    const namespace = `zw-${randomBytes(4).toString("hex")}`;
    await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
    const manifests = await render({ admin, namespace, t });
    t.after(async () => {
      for (const manifest of manifests) await deleteManifest(admin, manifest);
      await remove(admin, `/api/v1/namespaces/${namespace}`);
      client.close();
      admin.close();
    });
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
