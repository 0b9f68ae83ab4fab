/** What a collector is sent by processes whose environment names one. */
import assert from "node:assert/strict";
import { buffer } from "node:stream/consumers";
import { createServer } from "node:http";
import { type TestContext, after, before, describe, it } from "node:test";
import { PbfReader } from "pbf";
import { composeFunctions } from "../../../functions/compose.ts";
import { systemClock } from "../../../infra/clock.ts";
import { createTracer } from "../../../infra/tracing/act/otel.ts";
import type { Tracer } from "../../../infra/tracing/tracer.ts";
import { compose as composeReconciler } from "../../../reconciler/run/compose.ts";
import { run } from "../../../reconciler/run/run.ts";
import { reviewText } from "../../functions/http.ts";
import { createZone, keepingLog, reviewOf, setStage, writeKubeconfig } from "../../functions/stage.ts";
import { listen } from "../../loopback.ts";

type Values = Readonly<Record<string, string | number | boolean>>;

interface ReceivedSpan {
  readonly name: string;
  readonly trace: string;
  readonly id: string;
  /** "" for the first of a trace. */
  readonly parent: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly failed: boolean;
  readonly attributes: Values;
  readonly resource: Values;
}

interface Collector {
  readonly url: string;
  readonly spans: ReceivedSpan[];
}

/** Listens on loopback until the end of the test. */
async function startCollector(t: Pick<TestContext, "after">): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      if (request.url === "/v1/traces") spans.push(...readRequest(body));
      response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    });
  });
  const port = await listen(server);
  t.after(() => server.close().closeAllConnections());
  return { url: `http://127.0.0.1:${port}`, spans };
}

type Fields = Readonly<Record<number, (reader: PbfReader) => void>>;

/** Fields by their numbers in opentelemetry/proto/trace/v1/trace.proto; others are skipped. */
function readMessage(reader: PbfReader, fields: Fields, end = reader.length): void {
  reader.readFields((tag, _result, at) => fields[tag]?.(at), undefined, end);
}

const within = (fields: Fields) => (reader: PbfReader) => readMessage(reader, fields, reader.readVarint() + reader.pos);

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

function readRequest(body: Buffer): ReceivedSpan[] {
  const spans: ReceivedSpan[] = [];
  readMessage(new PbfReader(body), {
    1: (reader) => {
      const resource: Record<string, string | number | boolean> = {};
      const found: Omit<ReceivedSpan, "resource">[] = [];
      within({
        1: within({ 1: (at) => readAttribute(at, resource) }),
        2: within({ 2: (at) => found.push(readSpan(at)) }),
      })(reader);
      spans.push(...found.map((span) => ({ ...span, resource })));
    },
  });
  return spans;
}

function readSpan(reader: PbfReader): Omit<ReceivedSpan, "resource"> {
  const attributes: Record<string, string | number | boolean> = {};
  const span = { name: "", trace: "", id: "", parent: "", kind: 0, failed: false };
  within({
    1: (at) => (span.trace = hex(at.readBytes())),
    2: (at) => (span.id = hex(at.readBytes())),
    4: (at) => (span.parent = hex(at.readBytes())),
    5: (at) => (span.name = at.readString()),
    6: (at) => (span.kind = at.readVarint()),
    9: (at) => readAttribute(at, attributes),
    15: within({ 3: (at) => (span.failed = at.readVarint() === 2) }),
  })(reader);
  return { ...span, attributes };
}

function readAttribute(reader: PbfReader, into: Record<string, string | number | boolean>): void {
  let key = "";
  within({
    1: (at) => (key = at.readString()),
    2: within({
      1: (at) => (into[key] = at.readString()),
      2: (at) => (into[key] = at.readBoolean()),
      3: (at) => (into[key] = at.readVarint()),
    }),
  })(reader);
}

/** The example of W3C's Trace Context. */
const CALLER = { trace: "0af7651916cd43dd8448eb211c80319c", span: "b7ad6b7169203331" };
const TRACEPARENT = `00-${CALLER.trace}-${CALLER.span}-01`;

describe("a process with an exporter", () => {
  let spans: ReceivedSpan[] = [];
  let tracer: Tracer;
  const ended = new AbortController();

  before(async () => {
    const closers: (() => unknown)[] = [];
    const collector = await startCollector({ after: (close) => void closers.push(close as () => unknown) });
    ended.signal.addEventListener("abort", () => closers.forEach((close) => close()));
    ({ spans } = collector);
    process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url;
    process.env["OTEL_RESOURCE_ATTRIBUTES"] = "k8s.cluster.name=west";
    tracer = createTracer({ "service.name": "zonewise-test", "k8s.pod.name": undefined }, keepingLog().log);
  });
  after(() => ended.abort());

  /** The spans that were recorded since. */
  async function flushed(): Promise<readonly ReceivedSpan[]> {
    await tracer.flush();
    return spans.splice(0);
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
    assert.deepEqual([outer?.parent, outer?.kind, outer?.attributes], ["", 1, { a: 1, c: "d" }]);
    assert.equal(outer?.resource["service.name"], "zonewise-test");
    assert.equal(outer?.resource["k8s.cluster.name"], "west");
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
    assert.deepEqual([served?.trace, served?.parent, served?.kind], [CALLER.trace, CALLER.span, 2]);
    assert.equal(served?.attributes["zonewise.reason"], "NoDownscaleLabel");
    assert.equal(served?.attributes["zonewise.allowed"], false);
  });

  it("has a span a tick, group, decision and call of the API server, and the calls carry it", async (t) => {
    const { stage, env } = await setTracedStage(t);
    createZone(stage, "web");
    const { run: input } = await composeReconciler(env, machine());
    await run({ ...input, once: true, stop: AbortSignal.timeout(20_000) });
    const received = await flushed();
    const named = (name: string) => received.find((span) => span.name === name) ?? assert.fail(name);
    const [tick, group, decide] = [named("tick"), named("group"), named("decide")];
    assert.deepEqual([tick.parent, group.parent, decide.parent], ["", tick.id, group.id]);
    assert.deepEqual(group.attributes["zonewise.group"], "ingester");
    assert.ok(decide.attributes["zonewise.action"]);
    const list = named("GET apps/v1/statefulsets collection");
    assert.deepEqual([list.kind, list.trace, list.attributes["http.response.status_code"]], [3, tick.trace, 200]);
    assert.ok(received.some(({ name, trace }) => /^(?:PATCH|PUT|POST) /.test(name) && trace === tick.trace));
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
