import assert from "node:assert/strict";
import { createServer } from "node:net";
import { describe, it } from "node:test";
import { certify } from "../../../certify.ts";
import type { QueryAnswer } from "../../../../infra/prometheus/answer.ts";
import { createPrometheusClient, type PrometheusOptions } from "../../../../infra/prometheus/act/client.ts";
import { listen } from "../../../loopback.ts";
import { failure, startPrometheus, vector } from "../../../prometheus/scripted.ts";

const client = (options: Partial<PrometheusOptions> = {}) =>
  createPrometheusClient({ timeoutMs: 60_000, allowedHosts: [], ...options });
const codeOf = (answer: QueryAnswer): string => (answer.kind === "Error" ? answer.code : answer.kind);
const certificates = await certify("prometheus");

describe("the client of Prometheus", () => {
  it("posts the expression as it is, to the query API below the URL", async () => {
    await using prometheus = await startPrometheus();
    prometheus.answer = () => 1;
    const answer = await client().query({ url: `127.0.0.1:${prometheus.port}/base/?x=1`, expr: `up{a="b  c"} > 0` });
    assert.deepEqual(answer, {
      kind: "Vector",
      samples: 1,
      sample: `up{instance="pod-0"} 1`,
      value: "1",
      warnings: [],
    });
    const [{ method, path, search, expr, headers } = assert.fail()] = prometheus.seen;
    assert.deepEqual([method, path, search, expr], ["POST", "/base/api/v1/query", "x=1", `up{a="b  c"} > 0`]);
    assert.deepEqual([headers.authorization, headers["accept-encoding"]], [undefined, "identity"]);
  });

  for (const status of [405, 501])
    it(`asks again by GET after ${status}`, async () => {
      await using prometheus = await startPrometheus();
      prometheus.answer = ({ method }) => (method === "POST" ? { status, body: "" } : 2);
      assert.equal(codeOf(await client().query({ url: `${prometheus.url}?x=1&query=up`, expr: "a+b" })), "Vector");
      assert.deepEqual(
        prometheus.seen.map(({ method, search, expr }) => [method, search, expr]),
        [
          ["POST", "x=1", "a+b"],
          ["GET", "x=1", "a+b"],
        ],
      );
    });

  it("does not follow a redirect, and sends no credentials there", async () => {
    await using elsewhere = await startPrometheus();
    await using prometheus = await startPrometheus();
    prometheus.answer = () => ({ status: 307, body: "", headers: { location: elsewhere.url } });
    assert.equal(codeOf(await client().query({ url: prometheus.url, expr: "up" })), "BadAnswer");
    assert.deepEqual(elsewhere.seen, []);
  });

  it("sends the credentials of a Secret rather than those of the URL", async () => {
    await using prometheus = await startPrometheus();
    const url = prometheus.url.replace("//", "//u:p@");
    await client().query({ url, expr: "up", credentials: { authorization: "Bearer t", secrets: ["t"] } });
    await client().query({ url, expr: "up" });
    assert.deepEqual(
      prometheus.seen.map(({ headers }) => headers.authorization),
      ["Bearer t", `Basic ${Buffer.from("u:p").toString("base64")}`],
    );
  });

  it("shows no credentials, even if the server repeats them", async () => {
    await using prometheus = await startPrometheus();
    const said = ["s3cret", Buffer.from("u:s3cret").toString("base64")].join(" and ");
    const query = { url: prometheus.url.replace("//", "//u:s3cret@"), expr: "up" };
    const shown: unknown[] = [];
    prometheus.answer = () => ({ status: 400, body: failure(said) });
    shown.push(await client().query(query));
    // The text is cut within the password.
    prometheus.answer = () => ({ status: 400, body: failure(`${"x".repeat(296)}s3cret`) });
    shown.push(await client().query(query));
    const series = [{ metric: { a: said }, value: [1, "1"] }];
    prometheus.answer = () => ({
      body: { ...(vector(0) as object), data: { resultType: "vector", result: series }, warnings: [said] },
    });
    shown.push(await client().query(query));
    shown.push(await client({ allowedHosts: ["x"] }).query(query));
    shown.push(await client().query({ ...query, url: "http://u:s3cret@127.0.0.1:1" }));
    assert.deepEqual(shown[0], { kind: "Error", code: "BadQuery", message: "*** and *** (400)" });
    assert.ok(!/s3c|dTpz/.test(JSON.stringify(shown)), JSON.stringify(shown));
  });

  it("asks no host that is not allowed", async () => {
    await using prometheus = await startPrometheus();
    assert.deepEqual(await client({ allowedHosts: ["prometheus"] }).query({ url: prometheus.url, expr: "up" }), {
      kind: "Error",
      code: "TargetInvalid",
      message: `the host 127.0.0.1:${prometheus.port} is not in PROMETHEUS_ALLOWED_HOSTS`,
    });
    assert.deepEqual(prometheus.seen, []);
  });

  it("gives up when its time is over", async () => {
    await using prometheus = await startPrometheus();
    prometheus.answer = () => "hang";
    assert.deepEqual(await client({ timeoutMs: 50 }).query({ url: prometheus.url, expr: "up" }), {
      kind: "Error",
      code: "Unreachable",
      message: `${prometheus.url}/api/v1/query: no answer within 50 ms`,
    });
  });

  it("gives up at the same time while an answer is still coming", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {}).write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
      const drip = setInterval(() => socket.write("1\r\n \r\n"), 5);
      socket.on("close", () => clearInterval(drip));
    });
    const url = `http://127.0.0.1:${await listen(server)}`;
    const message = `${url}/api/v1/query: no answer within 100 ms`;
    assert.deepEqual(await client({ timeoutMs: 100 }).query({ url, expr: "up" }), {
      kind: "Error",
      code: "Unreachable",
      message,
    });
    server.close();
  });

  it("ends with its caller", async () => {
    await using prometheus = await startPrometheus();
    const caller = new AbortController();
    prometheus.answer = () => {
      caller.abort();
      return "hang";
    };
    assert.equal(codeOf(await client().query({ url: prometheus.url, expr: "up" }, caller.signal)), "Unreachable");
  });

  it("reads no more than 1 MiB", async () => {
    await using prometheus = await startPrometheus();
    prometheus.answer = () => ({ body: " ".repeat(1024 * 1024 + 1) });
    const answer = await client().query({ url: prometheus.url, expr: "up" });
    assert.ok(
      answer.kind === "Error" && answer.code === "BadAnswer" && answer.message.includes("longer than"),
      JSON.stringify(answer),
    );
  });

  for (const [name, url, code] of [
    ["nobody listens", "http://127.0.0.1:1", "Unreachable"],
    ["the name is unknown", "http://prometheus.invalid", "Unreachable"],
    ["the scheme is wrong", "ftp://prometheus", "TargetInvalid"],
  ] as const)
    it(`reports ${code} when ${name}`, async () =>
      assert.equal(codeOf(await client().query({ url, expr: "up" })), code));

  it("reports Unreachable when the server speaks no HTTP or ends within the answer", async () => {
    for (const bytes of ["hello\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"]) {
      const server = createServer((socket) => void socket.on("error", () => {}).end(bytes));
      const port = await listen(server);
      assert.equal(codeOf(await client().query({ url: `http://127.0.0.1:${port}`, expr: "up" })), "Unreachable");
      server.close();
    }
  });

  const { caPem, certPem, keyPem } = certificates;
  for (const [name, options, code] of [
    ["an unknown CA", {}, "Unreachable"],
    ["the CA in PEM", { caBundle: caPem }, "Vector"],
    ["the CA in base64", { caBundle: Buffer.from(caPem).toString("base64") }, "Vector"],
    ["no verification", { insecureSkipVerify: true }, "Vector"],
    ["an unreadable CA bundle", { caBundle: "nonsense" }, "TargetInvalid"],
    [
      "a broken CA bundle",
      { caBundle: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" },
      "TargetInvalid",
    ],
  ] as const)
    it(`answers ${code} over TLS with ${name}`, async () => {
      await using prometheus = await startPrometheus({ cert: certPem, key: keyPem });
      const answer = await client().query({ url: prometheus.url, expr: "up", ...options });
      assert.equal(codeOf(answer), code, JSON.stringify(answer));
    });
});
