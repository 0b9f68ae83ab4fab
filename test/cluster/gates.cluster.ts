/** A gate on a real control plane: a group of three zones whose check fails between b and c, by a real Prometheus where one is installed. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { PROMETHEUS_MISSING, startRealPrometheus } from "../prometheus/real.ts";
import { startPrometheus } from "../prometheus/scripted.ts";
import { assertNoViolations, deletions } from "./invariants.ts";
import { scenario, type Stage } from "./stage.ts";

const CRD = new URL("../../infra/manifests/crds/rolloutgates.yaml", import.meta.url);
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ZONES = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name }));

/** Installs the definition unless it is there: it is left, as others may use it. */
async function install({ call, namespace }: Stage): Promise<string> {
  await call("POST", CRDS, parse(await readFile(CRD, "utf8"))).catch((error: unknown) => assert.match(String(error), /AlreadyExists|409/));
  const path = `/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgates`;
  const isServed = (): Promise<boolean> =>
    call("GET", path).then(
      () => true,
      () => false,
    );
  while (!(await isServed())) await new Promise((resolve) => setTimeout(resolve, 50));
  return path;
}

interface GateStatus {
  readonly status?: {
    readonly identity: string;
    readonly settledTime?: string;
    readonly stages: readonly {
      readonly point: string;
      readonly zone: string;
      readonly state: string;
      readonly checks?: readonly { readonly sample?: string }[];
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

scenario("a gate that fails between b and c holds c until it is asked again and passes, over a killed reconciler", async (stage) => {
  const { call, create, start, setImage, done, timeline, diagnostic } = stage;
  if (PROMETHEUS_MISSING) diagnostic(`with a scripted server: ${PROMETHEUS_MISSING}`);
  const path = await install(stage);
  await using prometheus = await startSwitch();
  const check = {
    name: "errors",
    query: { expr: "test_errors > 0", url: prometheus.url },
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
  assertNoViolations(timeline.entries);
  assert.equal(deletions(timeline.entries).length, 9);
});
