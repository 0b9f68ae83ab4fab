/** A gate on a real control plane: a group of three zones whose check fails between b and c, by a real Prometheus where one is installed. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { generateCertificates } from "../../../infra/certs/generate.ts";
import { PROMETHEUS_MISSING, startGuard, startRealPrometheus } from "../../prometheus/real.ts";
import { startPrometheus } from "../../prometheus/scripted.ts";
import { applyRbac } from "../stage/access.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { scenario, type Stage } from "../stage/stage.ts";

const CRD = new URL("../../../infra/manifests/crds/rolloutgates.yaml", import.meta.url);
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ZONES = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name }));

interface Definition extends AsyncDisposable {
  /** Of the gates in the namespace of the stage. */
  readonly path: string;
}

/** Installs the definition unless it is there; dispose of it to remove what was installed. */
async function install({ call, namespace }: Stage): Promise<Definition> {
  const definition = parse(await readFile(CRD, "utf8")) as { metadata: { name: string } };
  const isOurs = await call("POST", CRDS, definition).then(
    () => true,
    (error: unknown) => assert.match(String(error), /AlreadyExists|409/),
  );
  const path = `/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgates`;
  const isServed = (): Promise<boolean> =>
    call("GET", path).then(
      () => true,
      () => false,
    );
  while (!(await isServed())) await new Promise((resolve) => setTimeout(resolve, 50));
  return {
    path,
    [Symbol.asyncDispose]: async () => void (isOurs && (await call("DELETE", `${CRDS}/${definition.metadata.name}`))),
  };
}

interface GateStatus {
  readonly status?: {
    readonly identity: string;
    readonly settledTime?: string;
    readonly stages: readonly {
      readonly point: string;
      readonly zone: string;
      readonly state: string;
      readonly checks?: readonly { readonly sample?: string; readonly message?: string }[];
    }[];
  };
}

/** A Prometheus whose expression `test_errors > 0` has series or not. */
interface Switch extends AsyncDisposable {
  readonly url: string;
  readonly set: (errors: number) => Promise<void>;
}

async function startSwitch(): Promise<Switch> {
  if (PROMETHEUS_MISSING) {
    const scripted = await startPrometheus();
    return {
      url: scripted.url,
      set: async (errors) => void (scripted.answer = () => errors),
      [Symbol.asyncDispose]: () => scripted[Symbol.asyncDispose](),
    };
  }
  const real = await startRealPrometheus();
  const set = async (errors: number): Promise<void> => {
    real.errors = errors;
    await real.until("test_errors > 0", errors > 0);
  };
  return { url: real.url, set, [Symbol.asyncDispose]: () => real[Symbol.asyncDispose]() };
}

/** TLS and a token in front of it; the token is in the Secret that the manifests name. */
async function guardSwitch(url: string, { call, namespace }: Stage) {
  const validity = { organization: "test", validityDays: 1, now: new Date() };
  const { caPem, certPem, keyPem } = await generateCertificates({ dnsNames: ["prometheus"], ipAddresses: ["127.0.0.1"], ...validity });
  const name = "zonewise-prometheus";
  await call("POST", `/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, stringData: { token: "s3cr3t" } });
  const guard = await startGuard(url, "Bearer s3cr3t", { cert: certPem, key: keyPem });
  return { query: { url: guard.url, caBundle: caPem, secretRef: name }, [Symbol.asyncDispose]: () => guard[Symbol.asyncDispose]() };
}

scenario("a gate that fails between b and c holds c until it is asked again and passes, over a killed reconciler", async (stage) => {
  const { call, create, start, setImage, done, timeline, diagnostic } = stage;
  if (PROMETHEUS_MISSING) diagnostic(`with a scripted server: ${PROMETHEUS_MISSING}`);
  await using definition = await install(stage);
  const { path } = definition;
  await using prometheus = await startSwitch();
  await using guard = await guardSwitch(prometheus.url, stage);
  const check = {
    name: "errors",
    query: { expr: "test_errors > 0", ...guard.query },
    successWhen: "NoData",
    initialDelaySeconds: 0,
    periodSeconds: 1,
    successThreshold: 2,
    failureThreshold: 3,
  };
  await call("POST", path, {
    apiVersion: "zonewise.dev/v1",
    kind: "RolloutGate",
    metadata: { name: "gate" },
    spec: { group: "cache", checks: [check] },
  });
  const read = () => call<GateStatus>("GET", `${path}/gate`);
  const stateOf = async (zone: string) => (await read()).status?.stages.find((one) => one.zone === zone)?.state;
  const until = async (zone: string, state: string): Promise<void> => {
    while ((await stateOf(zone)) !== state) await new Promise((resolve) => setTimeout(resolve, 100));
  };
  await create(ZONES);
  const first = start();
  while ((await read()).status?.settledTime === undefined) await new Promise((resolve) => setTimeout(resolve, 100));
  await setImage("app:2", ZONES);
  const problem = async () => (await read()).status?.stages.find(({ zone }) => zone === "zone-b")?.checks?.[0]?.message;
  while ((await problem()) === undefined) await new Promise((resolve) => setTimeout(resolve, 100));
  assert.match((await problem()) ?? "", /Secret zonewise-prometheus may not be read/);
  await applyRbac(stage.admin, stage.namespace, "prometheus-secrets");
  await until("zone-b", "Passed");
  await prometheus.set(7);
  await until("zone-c", "Failed");
  await done("app:2", ZONES.slice(0, 2));
  await first.kill();
  const second = start();
  await second.untilOutput(/"reason":"GateFailed"/);
  await prometheus.set(0);
  const { status } = await read();
  assert.match(
    status?.stages.find(({ zone }) => zone === "zone-c")?.checks?.[0]?.sample ?? "",
    PROMETHEUS_MISSING ? /./ : /^test_errors\{.*\} 7$/,
  );
  assert.equal(deletions(timeline.entries).filter(({ zone }) => zone === "zone-c").length, 0);
  await call("PATCH", `${path}/gate`, { metadata: { annotations: { "zonewise.dev/retry-gate": status?.identity } } });
  await done("app:2", ZONES);
  while ((await read()).status?.settledTime === undefined) await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(await second.end(), 0);
  assert.deepEqual(
    (await read()).status?.stages.map(({ zone, state }) => [zone, state]),
    [
      ["zone-b", "Passed"],
      ["zone-c", "Passed"],
    ],
  );
  const objects = [await read(), await call("GET", `/api/v1/namespaces/${stage.namespace}/events`)];
  assert.doesNotMatch([first.output(), second.output(), JSON.stringify(objects)].join(), /s3cr3t/);
  assertNoViolations(timeline.entries);
  assert.equal(deletions(timeline.entries).length, 9);
});
