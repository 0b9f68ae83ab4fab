/** What a scrape or a push shows. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, describe, it } from "node:test";
import { RolloutError } from "../../../infra/errors.ts";
import { createLog } from "../../../infra/log.ts";
import { METRICS } from "../../../infra/metrics/tables/metric-table.ts";
import { createMetrics, MAX_GROUPS, type Metrics } from "../../../infra/metrics/metrics.ts";
import { pushMetrics } from "../../../infra/metrics/push.ts";
import { listen } from "../../loopback.ts";

const ingester = { namespace: "cache", group: "ingester" };
const store = { namespace: "cache", group: "store" };
const finishedAt = new Date("2026-01-02T03:04:05Z");

/** The series of a metric, without help, type and the buckets of histograms. */
async function seriesOf(metrics: Metrics, name: string): Promise<string[]> {
  const lines = (await metrics.render()).split("\n");
  return lines.filter((line) => line.startsWith(name) && !line.startsWith(`${name}_bucket`));
}

function reconcile(metrics: Metrics, group: typeof ingester, failed = false): void {
  metrics.reconcileStarted(group);
  metrics.reconcileDone(group, { seconds: 0.25, failed, finishedAt });
}

describe("the metrics", () => {
  it("are those of the table, each with its help and type, and no others", async () => {
    const text = await createMetrics().render();
    for (const { name, help, type } of Object.values(METRICS)) {
      assert.ok(text.includes(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`), name);
    }
    assert.equal(text.match(/^# TYPE/gm)?.length, Object.keys(METRICS).length);
  });

  it("of two processes share nothing", async () => {
    const [one, other] = [createMetrics(), createMetrics()];
    one.tickDone("settled");
    assert.deepEqual(await seriesOf(other, METRICS.ticks.name), []);
  });

  it("count each reconcile of a group, and a failure only on error", async () => {
    const metrics = createMetrics();
    reconcile(metrics, ingester);
    reconcile(metrics, store, true);
    assert.deepEqual(await seriesOf(metrics, METRICS.groupReconciles.name), [
      'rollout_operator_group_reconciles_total{namespace="cache",rollout_group="ingester"} 1',
      'rollout_operator_group_reconciles_total{namespace="cache",rollout_group="store"} 1',
    ]);
    assert.deepEqual(await seriesOf(metrics, METRICS.groupFailures.name), [
      'rollout_operator_group_reconciles_failed_total{namespace="cache",rollout_group="ingester"} 0',
      'rollout_operator_group_reconciles_failed_total{namespace="cache",rollout_group="store"} 1',
    ]);
    assert.deepEqual(await seriesOf(metrics, METRICS.groupSuccess.name), [
      'rollout_operator_last_successful_group_reconcile_timestamp_seconds{namespace="cache",rollout_group="ingester"} 1767323045',
    ]);
    assert.deepEqual(await seriesOf(metrics, `${METRICS.groupDuration.name}_sum`), [
      'rollout_operator_group_reconcile_duration_seconds_sum{namespace="cache",rollout_group="ingester"} 0.25',
      'rollout_operator_group_reconcile_duration_seconds_sum{namespace="cache",rollout_group="store"} 0.25',
    ]);
  });

  it("remove the series of a deleted group, and keep the others", async () => {
    const metrics = createMetrics();
    for (const group of [ingester, store]) {
      reconcile(metrics, group);
      reconcile(metrics, group, true);
      metrics.podReplaced(group);
      metrics.groupHeld(group, "ZonePaused");
    }
    metrics.keepGroups([store]);
    const text = await metrics.render();
    assert.doesNotMatch(text, /ingester/);
    assert.match(text, /rollout_operator_group_reconciles_total{namespace="cache",rollout_group="store"} 2/);
    assert.match(text, /zonewise_pods_replaced_total{namespace="cache",rollout_group="store"} 1/);
  });

  it("show one reason a group at a time, and none once it moves", async () => {
    const metrics = createMetrics();
    const series = () => seriesOf(metrics, METRICS.groupHeld.name);
    metrics.groupHeld(ingester, "ZonePaused");
    metrics.groupHeld(ingester, "OtherZoneNotReady");
    assert.deepEqual(await series(), [
      'zonewise_group_held{namespace="cache",rollout_group="ingester",reason="OtherZoneNotReady"} 1',
    ]);
    metrics.groupHeld(ingester, undefined);
    assert.deepEqual(await series(), []);
  });

  it("keep no two groups apart once there are a thousand, until some of them are gone", async () => {
    const metrics = createMetrics();
    const groups = Array.from({ length: MAX_GROUPS + 5 }, (_, i) => ({ namespace: "cache", group: `g${i}` }));
    for (const group of groups) reconcile(metrics, group);
    metrics.groupHeld({ namespace: "cache", group: "late" }, "ZonePaused");
    assert.equal(
      (await seriesOf(metrics, METRICS.groupReconciles.name)).at(-1),
      `${METRICS.groupReconciles.name}{namespace="other",rollout_group="other"} 5`,
    );
    assert.equal((await seriesOf(metrics, METRICS.groupSuccess.name)).length, MAX_GROUPS);
    assert.deepEqual(await seriesOf(metrics, METRICS.groupHeld.name), []);
    metrics.keepGroups(groups.slice(1));
    metrics.groupHeld({ namespace: "cache", group: "late" }, "ZonePaused");
    assert.equal((await seriesOf(metrics, METRICS.groupHeld.name)).length, 1);
  });

  it("measure the calls of the Kubernetes API", async () => {
    const metrics = createMetrics();
    const { observer } = metrics;
    observer.answered({ path: "core/v1/pods object", method: "GET", status: "200", seconds: 0.03 });
    observer.rateLimited("apps");
    const text = await metrics.render();
    assert.match(text, /_bucket{le="0.05",path="core\/v1\/pods object",method="GET",status_code="200"} 1/);
    assert.match(text, /rollout_operator_kubernetes_api_client_rate_limited_requests_total{api_group="apps"} 1/);
  });
});

describe("the push", () => {
  const requests: [string | undefined, string | undefined, string][] = [];
  const authorizations: (string | undefined)[] = [];
  let status = 200;
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += String(chunk)));
    request.on("end", () => {
      requests.push([request.method, request.url, body]);
      authorizations.push(request.headers.authorization);
      if (status > 0) response.writeHead(status).end("pushed metrics are invalid\n");
    });
  });
  const listening = listen(server);
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  const target = async () => {
    return { url: `http://127.0.0.1:${await listening}/`, job: "zonewise", instance: "own/lease", deadlineMs: 5000 };
  };

  it("replaces what its job and instance had pushed", async () => {
    const metrics = createMetrics();
    metrics.tickDone("settled");
    await pushMetrics(metrics, await target());
    const [method, path, body] = requests.at(-1) ?? [];
    assert.deepEqual([method, path], ["PUT", "/metrics/job@base64/em9uZXdpc2U/instance@base64/b3duL2xlYXNl"]);
    assert.match(body ?? "", /zonewise_ticks_total{result="settled"} 1/);
  });

  const CREDENTIALS: readonly [string, string | undefined][] = [
    ["", undefined],
    ["alice:s3cret@", "alice:s3cret"],
    ["alice:p%40ss%3Aword@", "alice:p@ss:word"],
    ["alice:s3cret%zz@", "alice:s3cret%zz"],
    [":s3cret@", ":s3cret"],
    ["s3cret@", "s3cret:"],
  ];
  for (const [written, pair] of CREDENTIALS)
    it(`sends ${JSON.stringify(written)} of its URL as Basic authentication`, async () => {
      status = 200;
      await pushMetrics(createMetrics(), { ...(await target()), url: `http://${written}127.0.0.1:${await listening}` });
      assert.equal(authorizations.at(-1), pair && `Basic ${Buffer.from(pair).toString("base64")}`);
    });

  it("shows the credentials of its URL in no error and no log line", async () => {
    const lines: string[] = [];
    const log = createLog({ level: "debug", write: (line) => void lines.push(line), now: () => finishedAt });
    for (const [where, answer] of [
      [`127.0.0.1:${await listening}`, 500],
      [`127.0.0.1:${await listening}`, 0],
      ["127.0.0.1:1", 200],
      ["127.0.0.1:1/%zz", 200],
    ] as const) {
      status = answer;
      const url = `http://alice:s3cret@${where}`;
      const failure = await pushMetrics(createMetrics(), { ...(await target()), url, deadlineMs: 50 }).catch(
        (error: unknown) => error,
      );
      assert.ok(failure instanceof RolloutError);
      log.warn("the metrics could not be pushed", { error: failure });
    }
    assert.equal(lines.length, 4);
    for (const line of lines) assert.doesNotMatch(line, /s3cret|alice/);
  });

  it("follows a redirect with what it pushes, and keeps its credentials for its own host", async (t) => {
    status = 200;
    const port = await listening;
    const redirecting = createServer(({ url }, response) => {
      response.writeHead(301, { location: `http://127.0.0.1:${port}${url}` }).end();
    });
    t.after(() => (redirecting.closeAllConnections(), redirecting.close()));
    const url = `http://alice:s3cret@127.0.0.1:${await listen(redirecting)}`;
    await pushMetrics(createMetrics(), { ...(await target()), url });
    const [method, , body = ""] = requests.at(-1) ?? [];
    assert.deepEqual([method, body !== "", authorizations.at(-1)], ["PUT", true, undefined]);
  });

  it("reports the Pushgateway's refusal, and its timeout", async () => {
    status = 400;
    await assert.rejects(pushMetrics(createMetrics(), await target()), {
      code: "ServerError",
      message: "push metrics: pushed metrics are invalid (400)",
    });
    status = 0;
    await assert.rejects(pushMetrics(createMetrics(), { ...(await target()), deadlineMs: 50 }), { code: "Timeout" });
    await assert.rejects(pushMetrics(createMetrics(), { ...(await target()), url: "http://127.0.0.1:1" }), {
      code: "Unreachable",
    });
  });
});
