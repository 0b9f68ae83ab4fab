/** Metrics of inbound requests (§9). */
import type { Counter, Gauge, Histogram } from "prom-client";
import type { MetricRow } from "./tables/metric-row.ts";
import { METRICS } from "./tables/metric-table.ts";
import { OTHER } from "./series-limit.ts";

interface ServedRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  /** The context of its span (W3C Trace Context); undefined if no span is recorded. */
  readonly traceparent?: string | undefined;
}

interface WebhookAnswer {
  readonly webhook: string;
  readonly result: "allowed" | "denied" | "fault";
  readonly reason: string;
}

export interface WebhookMetrics {
  requestStarted(method: string, route: string): void;
  requestDone(request: ServedRequest): void;
  answered(answer: WebhookAnswer): void;
}

export interface Makers {
  readonly counter: (row: MetricRow) => Counter;
  readonly gauge: (row: MetricRow) => Gauge;
  readonly histogram: (row: MetricRow) => Histogram;
}

/** A request that is not sampled has no trace to look up. */
const SAMPLED = /^00-(?<trace_id>[\da-f]{32})-(?<span_id>[\da-f]{16})-[\da-f][13579bdf]$/;

export function createWebhookMetrics({
  counter,
  gauge,
  histogram,
  noteExemplar,
}: Makers & { readonly noteExemplar: () => void }): WebhookMetrics {
  const duration = histogram(METRICS.requests);
  const received = histogram(METRICS.requestBytes);
  const sent = histogram(METRICS.responseBytes);
  const inFlight = gauge(METRICS.requestsInFlight);
  const answers = counter(METRICS.webhookAnswers);
  return {
    requestStarted: (method, route) => inFlight.inc({ method: labelOf(method), route }),
    requestDone: ({ route, status, seconds, receivedBytes, sentBytes, traceparent = "", ...request }) => {
      const method = labelOf(request.method);
      inFlight.dec({ method, route });
      const trace = SAMPLED.exec(traceparent)?.groups;
      if (trace) noteExemplar();
      duration.observe({
        labels: { method, route, status_code: String(status), ws: "false" },
        value: seconds,
        exemplarLabels: { ...trace },
      });
      received.observe({ method, route }, receivedBytes);
      sent.observe({ method, route }, sentBytes);
    },
    answered: ({ webhook, result, reason }) => answers.inc({ webhook, result, reason }),
  };
}

/** The methods with their own series; callers choose the method, and every other one is refused. */
function labelOf(method: string): string {
  return method === "POST" ? method : OTHER;
}
