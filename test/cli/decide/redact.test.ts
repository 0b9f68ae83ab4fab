/** What may leave a cluster in a dump: hostile objects, whose every secret has to be gone. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findSecrets, KEPT, namesOf, prune, REDACTED, scrub } from "../../../cli/decide/redact.ts";

const NONE: ReadonlySet<string> = new Set();
const clean = (text: string, secrets: ReadonlySet<string> = NONE, names: ReadonlySet<string> = NONE): unknown =>
  scrub(text, secrets, names).value;

describe("a text in a dump", () => {
  for (const [name, text, secret] of [
    ["a URL's password", "GET http://admin:hunter2hunter@prom:9090/api: 500", "hunter2hunter"],
    ["a password with an @ in it", "http://admin:p@ss@w0rd@prom/api failed", "ss@w0rd"],
    ["a token as the user of a URL", "https://ghp0token@git.example/x", "ghp0token"],
    ["a parameter of a URL", "https://prom/api?access=abcdef&x=1 answers 403", "abcdef"],
    ["a fragment of a URL", "https://prom/cb#id=s3cr3t", "s3cr3t"],
    ["a bearer token", "Authorization: Bearer abc.def-ghi", "abc.def-ghi"],
    ["basic authentication", "sent basic dXNlcjpwYXNz to it", "dXNlcjpwYXNz"],
    ["a JSON web token", "token eyJhbGciOi.eyJzdWIiOiIx.c2ln was refused", "eyJzdWIiOiIx"],
    ["an assignment", "DB_PASSWORD=swordfish is wrong", "swordfish"],
    ["a field of JSON", '{"apiKey":"k-12345","x":1}', "k-12345"],
    ["a header", "X-Auth-Token: zzz-yyy", "zzz-yyy"],
    ["a flag with a blank", "run --db.password swordfish now", "swordfish"],
    ["a key in PEM", "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----", "MIIE"],
    ["a key in PEM that is cut off", "bad: -----BEGIN RSA PRIVATE KEY----- MIIEab", "MIIEab"],
    ["a key of a cloud", "AKIAABCDEFGHIJKLMNOP is denied", "AKIAABCDEFGHIJKLMNOP"],
    ["a long word in a sentence", "got 0123456789abcdef0123456789abcdef from it", "0123456789abcdef0123456789abcdef"],
  ] as const)
    it(`has no ${name}`, () => {
      const said = String(clean(text));
      assert.ok(!said.includes(secret), said);
      assert.ok(said.includes(REDACTED), said);
    });

  for (const text of [
    "waits for ingester-zone-b-1, which is not ready since 2026-01-01T00:00:00Z",
    "http://prometheus.monitoring:9090",
    'sum(rate(rollout_operator_kubernetes_api_client_request_duration_seconds_count{job="a"}[5m])) > 0.01',
    "registry.example/app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef is pulled",
    "Secret prometheus-token is missing",
  ])
    it(`stays as it is: ${text}`, () => assert.equal(clean(text), text));

  it("is read in a moment, however long and hostile it is", () => {
    const words = ["a", "-a", "a.b-", "token", "http://", "://", "-----BEGIN ", "eyJ", "--x", "a1b2c3d4.", "pass="];
    const began = process.cpuUsage();
    for (const word of words) {
      const text = word.repeat(20_000);
      clean(text);
      findSecrets([text]);
    }
    const { user } = process.cpuUsage(began);
    assert.ok(user < 5e6, `${Math.round(user / 1000)} ms of CPU`);
  });

  it("has no value that was dropped as a secret, wherever it is said", () => {
    const secrets = findSecrets([{ containers: [{ env: [{ name: "DB_PASSWORD", value: "swordfish" }] }] }]);
    assert.equal(
      clean("the server says that swordfish is wrong", secrets),
      `the server says that ${REDACTED} is wrong`,
    );
  });

  it("keeps what is a part of a name: that is public", () => {
    const secrets = findSecrets([{ name: "DB_PASSWORD", value: "ingester" }]);
    const names = namesOf([{ metadata: { name: "ingester-zone-a", namespace: "mimir" } }]);
    assert.equal(clean("ingester-zone-a waits", secrets, names), "ingester-zone-a waits");
  });
});

describe("the secrets of an object", () => {
  for (const [name, object, expected] of [
    ["a variable by its name", { env: [{ name: "API_TOKEN", value: "tok-1" }] }, ["tok-1"]],
    ["a variable with a URL", { env: [{ name: "DATABASE", value: "postgres://u:pa55@db/x" }] }, ["pa55"]],
    ["an argument", { args: ["-server.auth-token=tok-2", "-log.level=info"] }, ["tok-2"]],
    ["an argument in two parts", { command: ["run", "--password", "tok-3"] }, ["tok-3"]],
    ["an annotation by its name", { metadata: { annotations: { "vault/token": "tok-4" } } }, ["tok-4"]],
    ["none", { env: [{ name: "LEVEL", value: "debug" }], args: ["-target=ingester"] }, []],
  ] as const)
    it(`are found: ${name}`, () => assert.deepEqual([...findSecrets([object])], expected));
});

describe("an object in a dump", () => {
  it("is of no kind that holds secrets", () => {
    for (const kind of ["Secret", "ConfigMap", "ServiceAccount", "Deployment", "__proto__", "constructor"]) {
      assert.equal(prune({ kind, metadata: { name: "x" }, data: { password: "x" } }), undefined, kind);
    }
    assert.ok(!Object.keys(KEPT).includes("Secret"));
  });

  it("keeps of a container only its name, image and resources, and no annotation of others", () => {
    const container = { name: "main", image: "app:1", env: [{ name: "A", value: "planted" }], args: ["planted"] };
    const probe = { readinessProbe: { httpGet: { httpHeaders: [{ name: "X", value: "planted" }] } } };
    const annotations = {
      "kubectl.kubernetes.io/last-applied-configuration": "planted",
      "rollout-max-unavailable": "2",
    };
    const template = {
      metadata: { labels: { app: "x" }, annotations: { "vault/x": "planted" } },
      spec: {
        containers: [{ ...container, ...probe }],
        initContainers: [container],
        volumes: [{ name: "planted", secret: { secretName: "planted" } }],
        imagePullSecrets: [{ name: "planted" }],
      },
    };
    const set = prune({
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "a", annotations, managedFields: ["planted"] },
      spec: { replicas: 1, template, volumeClaimTemplates: ["planted"] },
      status: { replicas: 1, conditions: [{ message: "planted" }] },
    });
    assert.ok(!JSON.stringify(set).includes("planted"), JSON.stringify(set));
    const revision = prune({
      kind: "ControllerRevision",
      metadata: { name: "r" },
      revision: 1,
      data: { spec: { template } },
    });
    assert.ok(!JSON.stringify(revision).includes("planted"), JSON.stringify(revision));
    const kept = set as { metadata: object; spec: { template: { spec: { containers: object[] } } } };
    assert.deepEqual(kept.metadata, { name: "a", annotations: { "rollout-max-unavailable": "2" } });
    assert.deepEqual(kept.spec.template.spec.containers, [{ name: "main", image: "app:1" }]);
  });

  it("keeps of a pod no message: a container may write anything into one", () => {
    const state = { terminated: { reason: "Error", exitCode: 1, message: "planted" } };
    const pod = prune({
      kind: "Pod",
      metadata: { name: "a-0" },
      spec: { nodeName: "n", containers: [{ env: ["planted"] }] },
      status: {
        phase: "Running",
        message: "planted",
        conditions: [{ type: "Ready", status: "False", message: "planted" }],
        containerStatuses: [{ name: "main", ready: false, state, lastState: state, containerID: "planted" }],
      },
    });
    assert.ok(!JSON.stringify(pod).includes("planted"), JSON.stringify(pod));
    assert.match(JSON.stringify(pod), /"exitCode":1/);
  });

  it("keeps of a gate what it compares and how long it soaks, and no credential of its checks", () => {
    const query = { url: "http://prometheus", expr: "a", caBundle: "planted", headers: { authorization: "planted" } };
    const baseline = { expr: "b", at: "BeforeRollout", maxRatio: "2", minRatio: "0.5", maxDifference: "0.01" };
    const check = { name: "errors", query, successWhen: "WithinBaseline", baseline: { ...baseline, token: "planted" } };
    const gate = prune({
      kind: "RolloutGate",
      metadata: { name: "gate" },
      spec: { group: "ingester", soakSeconds: 1800, checks: [check], notes: "planted" },
    }) as { spec: { soakSeconds: number; checks: readonly object[] } };
    assert.ok(!JSON.stringify(gate).includes("planted"), JSON.stringify(gate));
    const kept = { name: "errors", query: { expr: "a", url: "http://prometheus" }, successWhen: "WithinBaseline" };
    assert.deepEqual(gate.spec, { group: "ingester", soakSeconds: 1800, checks: [{ ...kept, baseline }] });
  });

  it("has no credential in the expressions of a baseline", () => {
    const baseline = { expr: 'up{token="swordfish"}', maxRatio: "2" };
    const said = scrub(prune({ kind: "RolloutGate", spec: { checks: [{ baseline }] } }), NONE, NONE).value;
    assert.ok(!JSON.stringify(said).includes("swordfish"), JSON.stringify(said));
  });
});
