/** What the API server itself refuses of PhasedRollouts, without any webhook; and the policy that raises partitions. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import { type Admin, connectAdmin } from "./client.ts";
import { ownDefinition } from "./own-definition.ts";

const MANIFESTS = new URL("../../infra/manifests/", import.meta.url);
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

  it("S09 has the defaults, but none of successWhen, and keeps a 0", async () => {
    const { spec } = (await create({ check: { query, initialDelaySeconds: 0 } })) as { spec: { check: object } };
    assert.deepEqual(spec.check, { query, initialDelaySeconds: 0, periodSeconds: 60, successThreshold: 3 });
  });

  it("S03 refuses another targetRef", async () => {
    await create({ check: { query } }, "stored", false);
    await assert.rejects(admin.call("PATCH", `${path}/stored`, { spec: { targetRef: "other" } }), /targetRef cannot be changed/);
    await admin.call("PATCH", `${path}/stored`, { spec: { skipCheck: true } });
  });
});

describe("the policy that raises partitions", () => {
  let admin: Admin;
  const namespace = `zw-${randomBytes(4).toString("hex")}`;
  const policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
  const bindings = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
  const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const template = (image: string): object => ({
    metadata: { labels: { app: "db" } },
    spec: { containers: [{ name: "c", image }] },
  });
  before(async () => {
    admin = await connectAdmin(process.env["KUBECONFIG"]);
    await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
    const text = (await readFile(new URL("phased-policy/policy.yaml", MANIFESTS), "utf8"))
      .replaceAll("raise-partition.zonewise", `raise-partition.${namespace}`)
      .replaceAll(": zonewise", `: ${namespace}`);
    const [policy, binding] = parseAllDocuments(text).map((document) => document.toJS() as object);
    await admin.call("POST", policies, policy);
    await admin.call("POST", bindings, binding);
  });
  after(async () => {
    for (const path of [policies, bindings]) await admin.call("DELETE", `${path}/raise-partition.${namespace}`);
    await admin.call("DELETE", `/api/v1/namespaces/${namespace}`);
    admin.close();
  });

  interface Set {
    readonly spec: {
      readonly updateStrategy: { readonly rollingUpdate?: { readonly partition?: number; readonly maxUnavailable?: number } };
    };
  }

  async function createSet(name: string, annotations: object, updateStrategy: object = { type: "RollingUpdate" }): Promise<void> {
    const spec = { replicas: 3, serviceName: "db", selector: { matchLabels: { app: "db" } }, template: template("x:1"), updateStrategy };
    await admin.call("POST", sets, { metadata: { name, annotations }, spec });
  }

  /** The partition after a change, which is not stored; 0 if there is none. */
  async function partitionAfter(name: string, spec: object): Promise<number> {
    const { spec: after } = await admin.call<Set>("PATCH", `${sets}/${name}?dryRun=All`, { spec });
    return after.updateStrategy.rollingUpdate?.partition ?? 0;
  }

  const MANAGED = { "sts.plus/phasedRollout": "guard" };

  it("S08 raises it to the replicas with another template, in the same write", async () => {
    await createSet("db", MANAGED);
    // The API server takes a policy into account a moment after it has stored it.
    const last = Date.now() + 30_000;
    while ((await partitionAfter("db", { template: template("x:2") })) !== 3) {
      assert.ok(Date.now() < last, "the policy does nothing");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.equal(await partitionAfter("db", { template: template("x:2"), replicas: 5 }), 5);
    assert.equal(await partitionAfter("db", { template: template("x:2"), updateStrategy: { rollingUpdate: { partition: 1 } } }), 3);
  });
  it("leaves other changes alone, and other StatefulSets", async () => {
    await createSet("free", {});
    await createSet("manual", MANAGED, { type: "OnDelete" });
    assert.equal(await partitionAfter("db", { replicas: 5 }), 0);
    assert.equal(await partitionAfter("db", { updateStrategy: { rollingUpdate: { partition: 2 } } }), 2);
    assert.equal(await partitionAfter("db", { template: template("x:2"), updateStrategy: { rollingUpdate: { partition: 7 } } }), 7);
    assert.equal(await partitionAfter("free", { template: template("x:2") }), 0);
    assert.equal(await partitionAfter("manual", { template: template("x:2") }), 0);
  });
});
