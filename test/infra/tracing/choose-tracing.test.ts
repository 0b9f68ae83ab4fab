import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { chooseTracing, loadTracer } from "../../../infra/tracing/load-tracer.ts";
import { statefulSets } from "../../../infra/kubernetes/resources.ts";
import { NO_TRACER, type SpanStart, type Tracer } from "../../../infra/tracing/tracer.ts";
import { keepingLog } from "../../functions/stage.ts";
import { json, stage } from "../stage.ts";

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

describe("traces are recorded", () => {
  for (const [what, env] of [
    ["with an endpoint", ENDPOINT],
    ["with an endpoint for traces alone", { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://collector/v1/traces" }],
    ["with the exporter named", { ...ENDPOINT, OTEL_TRACES_EXPORTER: "otlp" }],
    ["with the protocol named", { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf" }],
  ] as const)
    it(what, () => assert.deepEqual(chooseTracing(env), { isWanted: true }));
});

describe("no traces are recorded", () => {
  for (const [what, env, problem] of [
    ["without an endpoint", {}, undefined],
    ["with an empty one", { OTEL_EXPORTER_OTLP_ENDPOINT: "" }, undefined],
    ["without an endpoint, although the exporter is named", { OTEL_TRACES_EXPORTER: "otlp" }, undefined],
    ["if the exporter is none", { ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" }, undefined],
    ["if the SDK is disabled", { ...ENDPOINT, OTEL_SDK_DISABLED: "True" }, undefined],
    ["by another exporter", { ...ENDPOINT, OTEL_TRACES_EXPORTER: "zipkin" }, /OTEL_TRACES_EXPORTER .* otlp and none/],
    ["by gRPC", { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, /OTEL_EXPORTER_OTLP_PROTOCOL .* http.protobuf/],
    [
      "at what is no URL",
      { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" },
      /OTEL_EXPORTER_OTLP_ENDPOINT .* http and https URLs/,
    ],
  ] as const)
    it(what, async () => {
      const { log, entries } = keepingLog();
      assert.equal(await loadTracer(env, "zonewise-test", log), NO_TRACER);
      assert.deepEqual(
        entries.map(({ level, msg }) => [level, msg]),
        problem ? [["warn", "no traces are recorded"]] : [],
      );
      if (problem) assert.match(String(entries[0]?.["problem"]), problem);
    });
});

describe("without an exporter", () => {
  const never = (): never => assert.fail("it was described");

  it("no span and no mark is described", async () => {
    assert.equal(await NO_TRACER.span(never, () => Promise.resolve(5)), 5);
    NO_TRACER.mark("decide", never);
  });

  it("a call of the API server leaves it to the tracer to describe its span", async () => {
    const started: (() => SpanStart)[] = [];
    const tracer: Tracer = {
      ...NO_TRACER,
      span: (start, work) => {
        started.push(start);
        return NO_TRACER.span(start, work);
      },
    };
    const { cluster } = await stage([json({})], { tracer });
    await cluster.get(statefulSets, { namespace: "default", name: "web" });
    assert.deepEqual(
      started.map((start) => start().name),
      ["GET apps/v1/statefulsets object"],
    );
  });
});
