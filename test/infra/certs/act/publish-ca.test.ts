/** The CA bundle reaches agents and the definition of the shadows, before a new certificate serves. */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { certify } from "../../../certify.ts";
import { runCertificateJob } from "../../../../infra/certs/act/job.ts";
import { CA_CONFIG_MAP, publishCa } from "../../../../infra/certs/act/publish-ca.ts";
import { systemClock } from "../../../../infra/clock.ts";
import { dig, put } from "../../../emulator/objects.ts";
import { keepingLog, setStage, type Stage } from "../../../functions/stage.ts";
import { read } from "../../manifests.ts";
import { add } from "../../../builders/objects.ts";

const NAMESPACE = "brupop-bottlerocket-aws";
const DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io";
const NAME = "bottlerocketshadows.brupop.bottlerocket.aws";

async function setNamespace(t: TestContext): Promise<Stage> {
  const stage = await setStage(t);
  add(stage.emulator.store, "Namespace", NAMESPACE);
  return stage;
}

/** Waits for nothing. */
const clock = { ...systemClock, sleep: async () => {} };

async function run({ cluster }: Stage): Promise<number> {
  const issue = () => certify("api");
  const stop = AbortSignal.timeout(20_000);
  const { log } = keepingLog();
  const publish = (caPem: string) => publishCa(caPem, { cluster, log, namespace: NAMESPACE });
  const names = { namespace: NAMESPACE, secretName: "certificate", dnsNames: ["api"] };
  return await runCertificateJob({ ...names, cluster, clock, log, issue, inject: false, publish, stop });
}

function define({ emulator: { store } }: Stage): void {
  const [definition] = read("infra/manifests/node-updates/crds/bottlerocketshadows.yaml");
  store.create(DEFINITIONS, definition as never);
}

it("a run makes the certificate, and gives its CA to the agents and to the definition", async (t) => {
  const stage = await setNamespace(t);
  define(stage);
  const { store } = stage.emulator;
  assert.equal(await run(stage), 0);
  const ca = Buffer.from(
    String(dig(store.get("secrets", NAMESPACE, "certificate"), "data", "ca")),
    "base64",
  ).toString();
  const map = store.get("configmaps", NAMESPACE, CA_CONFIG_MAP);
  assert.deepEqual(map?.["data"], { "ca.crt": ca });
  assert.doesNotMatch(JSON.stringify(map), /PRIVATE/);
  const bundle = (): unknown =>
    dig(store.get(DEFINITIONS, undefined, NAME), "spec", "conversion", "webhook", "clientConfig", "caBundle");
  assert.equal(Buffer.from(String(bundle()), "base64").toString(), ca);

  stage.calls.length = 0;
  assert.equal(await run(stage), 0);
  assert.deepEqual(
    stage.calls.filter((call) => !call.startsWith("GET")),
    [],
    "a second run writes nothing",
  );
});

it("a definition of another installation is left alone, and a missing one is no error", async (t) => {
  const stage = await setNamespace(t);
  assert.equal(await run(stage), 0);
  define(stage);
  const { store } = stage.emulator;
  const definition = store.get(DEFINITIONS, undefined, NAME);
  if (definition) store.update(DEFINITIONS, put(definition, ["metadata", "labels", "grafana.com/namespace"], "other"));
  assert.equal(await run(stage), 0);
  assert.equal(
    dig(store.get(DEFINITIONS, undefined, NAME), "spec", "conversion", "webhook", "clientConfig", "caBundle"),
    undefined,
  );
});

it("a run that could not publish the CA ends with 1", async (t) => {
  const stage = await setNamespace(t);
  stage.emulator.faults.inject({ resource: "configmaps", effect: { kind: "error" } });
  assert.equal(await run(stage), 1);
});
