/**
 * A gate on a real control plane: a group of three zones whose check fails between b and c, by a real Prometheus where
 * one is installed.
 */
import assert from "node:assert/strict";
import { generateCertificates } from "../../../infra/certs/act/generate.ts";
import { PROMETHEUS_MISSING, startGuard, startRealPrometheus } from "../../prometheus/real.ts";
import { startPrometheus } from "../../prometheus/scripted.ts";
import { applyRbac } from "../stage/access.ts";
import { define } from "../stage/definitions.ts";
import { doneWithHelp } from "../stage/done-with-help.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import type { ZoneOptions } from "../stage/zones.ts";

const ZONES: readonly ZoneOptions[] = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name }));

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
  const { caPem, certPem, keyPem } = await generateCertificates({
    dnsNames: ["prometheus"],
    ipAddresses: ["127.0.0.1"],
    ...validity,
  });
  const name = "zonewise-prometheus";
  await call("POST", `/api/v1/namespaces/${namespace}/secrets`, {
    metadata: { name },
    stringData: { token: "s3cr3t" },
  });
  const guard = await startGuard(url, "Bearer s3cr3t", { cert: certPem, key: keyPem });
  return {
    query: { url: guard.url, caBundle: caPem, secretRef: name },
    [Symbol.asyncDispose]: () => guard[Symbol.asyncDispose](),
  };
}

scenario(
  "a gate that fails between b and c holds c until it is asked again and passes, over a killed reconciler",
  async (stage) => {
    const { call, create, start, setImage, done, timeline, diagnostic } = stage;
    if (PROMETHEUS_MISSING) diagnostic(`with a scripted server: ${PROMETHEUS_MISSING}`);
    await define(stage.admin, "rolloutgates");
    const path = `/apis/zonewise.dev/v1/namespaces/${stage.namespace}/rolloutgates`;
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
    const untilState = (zone: string, state: string) =>
      until(`${zone} is ${state}`, async () => (await stateOf(zone)) === state);
    const untilSettled = () =>
      until("the gate has settled", async () => (await read()).status?.settledTime !== undefined);
    await create(ZONES);
    const first = start();
    await untilSettled();
    // It would begin with the zone whose change it saw first.
    assert.equal(await first.end(), 0);
    // Pods of zone b become ready when the test says so: c's check is not asked before it fails.
    const [a, b, c] = ZONES as [ZoneOptions, ZoneOptions, ZoneOptions];
    await setImage("app:2", [b], { "sim/ready": "false" });
    await setImage("app:2", [a, c]);
    const second = start();
    const problem = async () =>
      (await read()).status?.stages.find(({ zone }) => zone === "zone-b")?.checks?.[0]?.message;
    await until("the check has a problem", async () =>
      /Secret zonewise-prometheus may not be read/.test((await problem()) ?? ""),
    );
    await applyRbac(stage.admin, stage.namespace, "prometheus-secrets");
    await untilState("zone-b", "Passed");
    await prometheus.set(7);
    await doneWithHelp(stage, "app:2", [a, b]);
    await untilState("zone-c", "Failed");
    await second.kill();
    const third = start();
    await third.untilOutput(/"reason":"GateFailed"/);
    await prometheus.set(0);
    const { status } = await read();
    assert.match(
      status?.stages.find(({ zone }) => zone === "zone-c")?.checks?.[0]?.sample ?? "",
      PROMETHEUS_MISSING ? /./ : /^test_errors\{.*\} 7$/,
    );
    assert.equal(deletions(timeline.entries).filter(({ zone }) => zone === "zone-c").length, 0);
    await call("PATCH", `${path}/gate`, { metadata: { annotations: { "zonewise.dev/retry-gate": status?.identity } } });
    await done("app:2", ZONES);
    await untilSettled();
    assert.equal(await third.end(), 0);
    assert.deepEqual(
      (await read()).status?.stages.map(({ zone, state }) => [zone, state]),
      [
        ["zone-b", "Passed"],
        ["zone-c", "Passed"],
      ],
    );
    const objects = [await read(), await call("GET", `/api/v1/namespaces/${stage.namespace}/events`)];
    assert.doesNotMatch([first.output(), second.output(), third.output(), JSON.stringify(objects)].join(), /s3cr3t/);
    assertNoViolations(timeline.entries);
    assert.equal(deletions(timeline.entries).length, 9);
  },
);
