/** What a collector is sent by processes whose environment names one. */
import assert from "node:assert/strict";
import { buffer } from "node:stream/consumers";
import { createServer } from "node:http";
import { SpanKind } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-node";
import { type TestContext, after, before, describe, it } from "node:test";
import { composeFunctions } from "../../../functions/compose.ts";
import { systemClock } from "../../../infra/clock.ts";
import { createTracer } from "../../../infra/tracing/act/otel.ts";
import type { Tracer } from "../../../infra/tracing/tracer.ts";
import { compose as composeReconciler } from "../../../reconciler/run/compose.ts";
import { run } from "../../../reconciler/run/run.ts";
import { reviewText } from "../../functions/http.ts";
import { createZone, keepingLog, reviewOf, setStage, writeKubeconfig } from "../../functions/stage.ts";
import { listen } from "../../loopback.ts";

interface Sent {
  readonly name: string;
  readonly trace: string;
  readonly id: string;
  /** "" for the first of a trace. */
  readonly parent: string;
  readonly kind: SpanKind;
  readonly attributes: ReadableSpan["attributes"];
  readonly resource: ReadableSpan["attributes"];
}

const readSpan = (span: ReadableSpan): Sent => {
  const { traceId: trace, spanId: id } = span.spanContext();
  const { name, kind, attributes, resource, parentSpanContext } = span;
  return { name, trace, id, parent: parentSpanContext?.spanId ?? "", kind, attributes, resource: resource.attributes };
};

/** Keeps the spans that it sends. */
class KeepingExporter extends OTLPTraceExporter {
  readonly spans: Sent[] = [];
  override export(...[spans, done]: Parameters<SpanExporter["export"]>): void {
    this.spans.push(...spans.map(readSpan));
    super.export(spans, done);
  }
}

/** The example of W3C's Trace Context. */
const CALLER = { trace: "0af7651916cd43dd8448eb211c80319c", span: "b7ad6b7169203331" };
const TRACEPARENT = `00-${CALLER.trace}-${CALLER.span}-01`;

describe("a process with an exporter", () => {
  let exporter: KeepingExporter;
  let tracer: Tracer;
  const received: (readonly [url: string | undefined, body: string])[] = [];
  const collector = createServer((request, response) => {
    void buffer(request).then((body) => {
      received.push([request.url, body.toString("latin1")]);
      response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    });
  });

  before(async () => {
    process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = `http://127.0.0.1:${await listen(collector)}`;
    process.env["OTEL_RESOURCE_ATTRIBUTES"] = "k8s.cluster.name=west";
    exporter = new KeepingExporter();
    tracer = createTracer({ "service.name": "zonewise-test", "k8s.pod.name": undefined }, keepingLog().log, exporter);
  });
  after(() => collector.close().closeAllConnections());

  /** The spans that were sent since. */
  async function flushed(): Promise<readonly Sent[]> {
    await tracer.flush();
    return exporter.spans.splice(0);
  }

  it("sends a span with its parent, its attributes, and the resource", async () => {
    const result = await tracer.span(
      () => ({ name: "outer", attributes: { a: 1, none: undefined } }),
      async (span) => {
        tracer.mark("inner", () => ({ b: true }));
        span.set({ c: "d" });
        return 5;
      },
    );
    const [inner, outer] = await flushed();
    assert.equal(result, 5);
    assert.deepEqual([inner?.name, inner?.parent, inner?.trace], ["inner", outer?.id, outer?.trace]);
    assert.deepEqual([outer?.parent, outer?.kind, outer?.attributes], ["", SpanKind.INTERNAL, { a: 1, c: "d" }]);
    assert.equal(outer?.resource["service.name"], "zonewise-test");
    assert.equal(outer?.resource["k8s.cluster.name"], "west");
    const [[url, body] = assert.fail("the collector has received nothing")] = received;
    assert.equal(url, "/v1/traces");
    for (const text of ["outer", "inner", "zonewise-test", "west"]) assert.ok(body.includes(text), text);
  });

  it("continues the trace of the API server's call in a webhook", async (t) => {
    const { stage, env } = await setTracedStage(t);
    const zone = createZone(stage, "web", { labels: { "grafana.com/no-downscale": "true" } });
    const { routes } = await composeFunctions(env, machine());
    const handler = routes.get("/admission/prepare-downscale");
    const server = createServer((request, response) => void handler?.(request, response));
    const port = await listen(server);
    t.after(() => server.close().closeAllConnections());
    const response = await fetch(`http://127.0.0.1:${port}/admission/prepare-downscale`, {
      method: "POST",
      headers: { "content-type": "application/json", traceparent: TRACEPARENT },
      body: reviewText(reviewOf(zone, 1)),
    });
    assert.equal(response.status, 200);
    const served = (await flushed()).find(({ name }) => name === "POST admission_prepare_downscale");
    assert.deepEqual([served?.trace, served?.parent, served?.kind], [CALLER.trace, CALLER.span, SpanKind.SERVER]);
    assert.equal(served?.attributes["zonewise.reason"], "NoDownscaleLabel");
    assert.equal(served?.attributes["zonewise.allowed"], false);
  });

  it("has a span a tick, group, decision and call of the API server, and the calls carry it", async (t) => {
    const { stage, env } = await setTracedStage(t);
    createZone(stage, "web");
    const { run: input } = await composeReconciler(env, machine());
    await run({ ...input, once: true, stop: AbortSignal.timeout(20_000) });
    const sent = await flushed();
    const named = (name: string) => sent.find((span) => span.name === name) ?? assert.fail(name);
    const [tick, group, decide] = [named("tick"), named("group"), named("decide")];
    assert.deepEqual([tick.parent, group.parent, decide.parent], ["", tick.id, group.id]);
    assert.deepEqual(group.attributes["zonewise.group"], "ingester");
    assert.ok(decide.attributes["zonewise.action"]);
    const list = named("GET apps/v1/statefulsets collection");
    assert.deepEqual(
      [list.kind, list.trace, list.attributes["http.response.status_code"]],
      [SpanKind.CLIENT, tick.trace, 200],
    );
    assert.ok(sent.some(({ name, trace }) => /^(?:PATCH|PUT|POST) /.test(name) && trace === tick.trace));
  });

  it("says once that a collector is away, and its work goes on", async () => {
    const { log, entries } = keepingLog();
    const away = { export: (_: unknown, done: Done) => done({ code: 1, error: new Error("away") }), shutdown };
    const other = createTracer({}, log, away);
    for (const i of [1, 2, 3]) {
      const result = await other.span(
        () => ({ name: "lost" }),
        () => Promise.resolve(i),
      );
      assert.equal(result, i);
      await other.flush();
    }
    const said = entries.filter(({ detail }) => String(detail).includes("away"));
    assert.deepEqual(
      said.map(({ level, msg }) => [level, msg]),
      [["warn", "traces could not be sent as they should be"]],
    );
  });

  const machine = () => ({ ...systemClock, tracer, write: () => {} });
});

type Done = (result: { code: number; error?: Error }) => void;
const shutdown = (): Promise<void> => Promise.resolve();

async function setTracedStage(t: TestContext) {
  const stage = await setStage(t);
  const env = { KUBERNETES_NAMESPACE: "default", KUBECONFIG: await writeKubeconfig(t, stage) };
  return { stage, env };
}
