import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { Server } from "node:https";
import { json } from "node:stream/consumers";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { generateCertificates } from "../../../infra/certs/generate.ts";
import { dig, fieldsOf, listOf, plainText } from "../objects.ts";
import type { Fields } from "../objects.ts";
import { configMap, CONFIG_MAPS, MERGE, stage } from "../stage.ts";
import type { Stage } from "../stage.ts";

type Hook = (request: Fields) => Fields | Promise<Fields> | "silence" | "nonsense";

interface Registration {
  readonly type?: "validating" | "mutating";
  /** Fields of the webhook beside those that all have. */
  readonly more?: Fields;
  readonly resources?: string[];
  readonly operations?: string[];
}

const SERVICE = { namespace: "default", name: "hook" };

/** A webhook behind a Service of type ExternalName; answers what it was asked. */
async function register(t: TestContext, { call }: Stage, hook: Hook, registration: Registration = {}): Promise<Fields[]> {
  const { type = "validating", more = {}, resources = ["configmaps"], operations = ["*"] } = registration;
  const certificates = await generateCertificates({
    dnsNames: ["hook.default.svc"],
    organization: "test",
    validityDays: 1,
    now: new Date(),
  });
  const asked: Fields[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const review = fieldsOf(dig(await json(request), "request"));
    asked.push({ ...review, url: request.url });
    const answer = await hook(review);
    if (answer === "nonsense") response.writeHead(500).end("boom");
    if (typeof answer === "string") return;
    response.end(
      JSON.stringify({ kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", response: { uid: review["uid"], ...answer } }),
    );
  };
  const { certPem: cert, keyPem: key } = certificates;
  const server = createServer({ key, cert }, (request, response) => void serve(request, response));
  const port = await listen(server);
  t.after(() => (server.closeAllConnections(), server.close()));
  await call("POST", "/api/v1/namespaces/default/services", {
    metadata: { name: "hook" },
    spec: { type: "ExternalName", externalName: "localhost" },
  });
  const caBundle = Buffer.from(certificates.caPem).toString("base64");
  const rules = [{ apiGroups: ["*"], apiVersions: ["*"], operations, resources }];
  const clientConfig = { caBundle, service: { ...SERVICE, port, path: "/hook" } };
  const webhook = { name: "a.example.com", admissionReviewVersions: ["v1"], sideEffects: "None", clientConfig, rules, ...more };
  const { status } = await call("POST", `/apis/admissionregistration.k8s.io/v1/${type}webhookconfigurations`, {
    metadata: { name: type },
    webhooks: [webhook],
  });
  assert.equal(status, 201);
  return asked;
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address ? address.port : 0);
    }),
  );
}

const OUTCOMES: readonly [title: string, hook: Hook, more: Fields, status: number, message: RegExp][] = [
  [
    "a denial with its message and code",
    () => ({ allowed: false, status: { code: 429, message: "not now" } }),
    {},
    429,
    /^admission webhook "a.example.com" denied the request: not now$/,
  ],
  ["a denial with a code below 400", () => ({ allowed: false, status: { code: 200, message: "no" } }), {}, 400, /denied the request: no$/],
  ["a bare denial", () => ({ allowed: false }), {}, 400, /denied the request without explanation$/],
  [
    "a broken webhook",
    () => "nonsense",
    {},
    500,
    /failed calling webhook "a.example.com": failed to call webhook: an error on the server \("boom"\)/,
  ],
  ["a broken webhook that may be passed over", () => "nonsense", { failurePolicy: "Ignore" }, 201, /^$/],
  [
    "a slow webhook",
    () => "silence",
    { timeoutSeconds: 1 },
    500,
    /Post "https:\/\/hook.default.svc:\d+\/hook\?timeout=1s": context deadline exceeded$/,
  ],
  [
    "an answer to another question",
    () => ({ uid: "x", allowed: true }),
    {},
    500,
    /received invalid webhook response: expected response.uid=/,
  ],
  ["another namespace", () => ({ allowed: false }), { namespaceSelector: { matchLabels: { a: "b" } } }, 201, /^$/],
  ["another object", () => ({ allowed: false }), { objectSelector: { matchLabels: { a: "b" } } }, 201, /^$/],
];

for (const [title, hook, more, status, message] of OUTCOMES)
  test(`admission: ${title} gives ${status}`, async (t) => {
    const ground = await stage(t);
    await register(t, ground, hook, { more });
    const answer = await ground.call("POST", CONFIG_MAPS, configMap("a"));
    assert.equal(answer.status, status);
    assert.match(plainText(dig(answer.body, "message")), message);
  });

test("a mutating webhook patches the object and warns its author", async (t) => {
  const ground = await stage(t);
  const patch = Buffer.from(JSON.stringify([{ op: "add", path: "/data", value: { added: "yes" } }])).toString("base64");
  await register(t, ground, () => ({ allowed: true, patchType: "JSONPatch", patch, warnings: ['careful "you"'] }), { type: "mutating" });
  const { status, body, headers } = await ground.call("POST", CONFIG_MAPS, { metadata: { name: "a" } });
  assert.deepEqual([status, dig(body, "data")], [201, { added: "yes" }]);
  assert.equal(headers["warning"], '299 - "careful \\"you\\""');
});

test("a change that meets another one goes through admission again, on the object as it is then", async (t) => {
  const ground = await stage(t);
  await ground.call("POST", CONFIG_MAPS, configMap("a", { v: "0" }));
  let first = true;
  const asked = await register(
    t,
    ground,
    (request) => {
      if (first && dig(request, "object", "data", "w") === "1") {
        first = false;
        const { store } = ground.emulator;
        const current = store.get("configmaps", "default", "a");
        if (current) store.update("configmaps", { ...current, data: { v: "meanwhile" } });
      }
      return { allowed: true };
    },
    { operations: ["UPDATE"] },
  );
  const { status, body } = await ground.call("PATCH", `${CONFIG_MAPS}/a`, { data: { w: "1" } }, MERGE);
  assert.deepEqual([status, dig(body, "data")], [200, { v: "meanwhile", w: "1" }]);
  assert.deepEqual(
    asked.map((request) => dig(request, "oldObject", "data", "v")),
    ["0", "meanwhile"],
  );
});

test("a change that names its version and meets another one is a conflict", async (t) => {
  const ground = await stage(t);
  const created = await ground.call("POST", CONFIG_MAPS, configMap("a"));
  const resourceVersion = dig(created.body, "metadata", "resourceVersion");
  await register(t, ground, () => {
    const { store } = ground.emulator;
    const current = store.get("configmaps", "default", "a");
    if (current) store.update("configmaps", { ...current, data: { n: String(store.version()) } });
    return { allowed: true };
  });
  const { status } = await ground.call("PATCH", `${CONFIG_MAPS}/a`, { metadata: { resourceVersion }, data: { w: "1" } }, MERGE);
  assert.equal(status, 409);
});

test("scales and evictions are asked about as such, dry runs too", async (t) => {
  const ground = await stage(t);
  const template = { metadata: { labels: { app: "s" } }, spec: { containers: [{ name: "c", image: "i:1" }] } };
  const set = { metadata: { name: "s" }, spec: { serviceName: "s", replicas: 3, selector: { matchLabels: { app: "s" } }, template } };
  await ground.call("POST", "/apis/apps/v1/namespaces/default/statefulsets", set);
  await ground.call("POST", "/api/v1/namespaces/default/pods", { metadata: { name: "p" }, spec: template.spec });
  const resources = ["statefulsets/scale", "pods/eviction"];
  const asked = await register(t, ground, () => ({ allowed: false, status: { code: 403, message: "no" } }), { resources });
  const scale = await ground.call("PATCH", "/apis/apps/v1/namespaces/default/statefulsets/s/scale", { spec: { replicas: 1 } }, MERGE);
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "p" } };
  const evicted = await ground.call("POST", "/api/v1/namespaces/default/pods/p/eviction?dryRun=All", eviction);
  assert.deepEqual([scale.status, evicted.status], [403, 403]);
  const seen = asked.map(({ kind, operation, subResource, name, dryRun, object, oldObject }) => ({
    kind: dig(kind, "kind"),
    operation,
    subResource,
    name,
    dryRun,
    replicas: [dig(oldObject, "spec", "replicas"), dig(object, "spec", "replicas")],
  }));
  assert.deepEqual(seen, [
    { kind: "Scale", operation: "UPDATE", subResource: "scale", name: "s", dryRun: false, replicas: [3, 1] },
    { kind: "Eviction", operation: "CREATE", subResource: "eviction", name: "p", dryRun: true, replicas: [undefined, undefined] },
  ]);
  assert.ok(listOf(asked).every((request) => String(dig(request, "url")).endsWith("?timeout=10s")));
});
