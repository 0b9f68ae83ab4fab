/** The tracer by OpenTelemetry's SDK: spans are sent in batches by OTLP over HTTP. Loaded only if there is an exporter. */
import {
  context,
  diag,
  DiagLogLevel,
  propagation,
  SpanKind,
  type Span as OtelSpan,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider, type SpanExporter } from "@opentelemetry/sdk-trace-node";
import { messageOf, RolloutError } from "../../errors.ts";
import type { Log } from "../../log.ts";
import type { Attributes, Span, Tracer } from "../tracer.ts";

/** Milliseconds that a process may spend at its end on sending its last spans. */
const FLUSH_MS = 3000;

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT } as const;

/**
 * Reads sampling, limits, batches, endpoint, headers and resource attributes from the standard `OTEL_*` variables of
 * the process. Create only one per process: it registers itself.
 */
export function createTracer(resource: Attributes, log: Log, exporter: SpanExporter = new OTLPTraceExporter()): Tracer {
  const diagnostics = reportOnce(log);
  diag.setLogger(diagnostics, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const processor = new BatchSpanProcessor(exporter);
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes(known(resource)))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [processor],
  });
  provider.register();
  const tracer = provider.getTracer("zonewise");
  return {
    async span(start, work) {
      const { name, kind, attributes = {}, caller } = start();
      const parent = caller ? propagation.extract(context.active(), caller) : context.active();
      const options = { kind: kind ? KINDS[kind] : SpanKind.INTERNAL, attributes: known(attributes) };
      const span = tracer.startSpan(name, options, parent);
      const shown: Span = { set: (more) => void span.setAttributes(known(more)) };
      try {
        return await context.with(trace.setSpan(parent, span), () => work(shown));
      } catch (error) {
        fail(span, error);
        throw error;
      } finally {
        span.end();
      }
    },
    mark: (name, describe) => tracer.startSpan(name, { attributes: known(describe()) }).end(),
    headers() {
      const headers: Record<string, string> = {};
      propagation.inject(context.active(), headers);
      return headers;
    },
    async flush() {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, FLUSH_MS)));
      await Promise.race([provider.forceFlush().catch((error: unknown) => diagnostics.error(messageOf(error))), late]);
      clearTimeout(timer);
    },
  };
}

function fail(span: OtelSpan, error: unknown): void {
  const message = messageOf(error);
  if (error instanceof RolloutError) span.setAttribute("error.type", error.code);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

const known = (attributes: Attributes): Record<string, string | number | boolean> =>
  Object.fromEntries(
    Object.entries(attributes).filter((pair): pair is [string, string | number | boolean] => pair[1] !== undefined),
  );

/** A missing collector would fill the log: each message is written once in the life of a process. */
function reportOnce(log: Log) {
  const seen = new Set<string>();
  const report = (message: string, ...details: unknown[]): void => {
    const text = [message, ...details.map(messageOf)].join(" ").slice(0, 500);
    if (seen.has(text) || seen.size >= 20) return;
    seen.add(text);
    log.warn("traces could not be sent as they should be", { detail: text });
  };
  const nothing = (): void => {};
  return { error: report, warn: report, info: nothing, debug: nothing, verbose: nothing };
}
