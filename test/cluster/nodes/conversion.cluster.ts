/** BottlerocketShadows between v1 and v2, converted by a real API server through our function. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer } from "node:https";
import { after, before, describe, it } from "node:test";
import { CONNECTION_TIMEOUTS } from "../../../functions/http/server.ts";
import { serveConversion } from "../../../functions/nodes/crd-convert.ts";
import { generateCertificates } from "../../../infra/certs/act/generate.ts";
import { systemClock } from "../../../infra/clock.ts";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { listen } from "../../loopback.ts";
import { type Admin, connectAdmin, remove } from "../stage/client.ts";
import { define, putDefinition, readDefinition } from "../stage/definitions.ts";
import { until } from "../stage/until.ts";

const namespace = `zw-convert-${randomBytes(3).toString("hex")}`;
const shadowsOf = (version: string): string =>
  `/apis/brupop.bottlerocket.aws/${version}/namespaces/${namespace}/bottlerocketshadows`;

interface Shadow {
  readonly spec: { readonly state: string; readonly version?: string | null };
  readonly status?: Readonly<Record<string, unknown>>;
}

const v1 = (name: string, state: string) => ({
  apiVersion: "brupop.bottlerocket.aws/v1",
  kind: "BottlerocketShadow",
  metadata: { name, labels: { team: "x" } },
  spec: { state },
});

const log = createLog({
  level: "warn",
  format: "json",
  write: (line) => process.stderr.write(line),
  now: () => new Date(),
});
const handler = serveConversion({
  clock: systemClock,
  log,
  metrics: createMetrics().webhooks,
  requestTimeoutMs: 10_000,
});
let admin: Admin;
let server: ReturnType<typeof createServer>;

before(async () => {
  admin = await connectAdmin(process.env["KUBECONFIG"]);
  const { caPem, certPem, keyPem } = await generateCertificates({
    dnsNames: ["localhost"],
    ipAddresses: ["127.0.0.1"],
    organization: "test",
    validityDays: 1,
    now: new Date(),
  });
  server = createServer(
    { ...CONNECTION_TIMEOUTS, key: keyPem, cert: certPem },
    (...exchange) => void handler(...exchange),
  );
  const url = `https://127.0.0.1:${await listen(server)}/crdconvert`;
  const webhook = {
    conversionReviewVersions: ["v1"],
    clientConfig: { url, caBundle: Buffer.from(caPem).toString("base64") },
  };
  const definition = await readDefinition("bottlerocketshadows");
  await putDefinition(admin, {
    ...definition,
    spec: { ...definition.spec, conversion: { strategy: "Webhook", webhook } },
  });
  await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  // The API server may use the conversion that was there before, for a moment.
  await until(
    "converted",
    async () => !!(await admin.call("POST", `${shadowsOf("v1")}?dryRun=All`, v1("brs-probe", "Idle"))),
  );
});

after(async () => {
  // Without the objects nothing has to be converted any more, and another test finds the conversion of the manifests.
  await remove(admin, shadowsOf("v2"));
  await define(admin, "bottlerocketshadows").catch((error: unknown) => console.error(error));
  await remove(admin, `/api/v1/namespaces/${namespace}`);
  admin.close();
  server.closeAllConnections();
  server.close();
});

describe("conversion", () => {
  it("stores what a v1 client writes, and loses nothing that a v2 client has written", async () => {
    await admin.call("POST", shadowsOf("v1"), v1("brs-one", "PerformedUpdate"));
    const stored = await admin.call<Shadow>("GET", `${shadowsOf("v2")}/brs-one`);
    assert.equal(stored.spec.state, "StagedAndPerformedUpdate");
    const status = {
      current_version: "1.0.0",
      target_version: "1.1.0",
      current_state: "ErrorReset",
      crash_count: 3,
      state_transition_failure_timestamp: "2026-01-01T00:00:00Z",
      boot_id: "b",
    };
    await admin.call("PATCH", `${shadowsOf("v2")}/brs-one/status`, { status });
    const old = await admin.call<Shadow>("GET", `${shadowsOf("v1")}/brs-one`);
    assert.deepEqual(
      [old.spec.state, old.status],
      ["PerformedUpdate", { current_version: "1.0.0", target_version: "1.1.0", current_state: "MonitoringUpdate" }],
    );
    await admin.call("PATCH", `${shadowsOf("v1")}/brs-one`, { spec: { version: "1.1.0" } });
    const again = await admin.call<Shadow>("GET", `${shadowsOf("v2")}/brs-one`);
    assert.deepEqual([again.spec.version, again.status], ["1.1.0", status]);
  });

  it("converts lists", async () => {
    for (let i = 0; i < 20; i++)
      await admin.call("POST", shadowsOf("v2"), {
        ...v1(`brs-list-${i}`, "Idle"),
        apiVersion: "brupop.bottlerocket.aws/v2",
      });
    const { items } = await admin.call<{ items: readonly Shadow[] }>("GET", shadowsOf("v1"));
    assert.equal(items.length, 21);
  });
});
