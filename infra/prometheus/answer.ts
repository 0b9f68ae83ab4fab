/** Reads Prometheus' answers to instant queries: https://prometheus.io/docs/prometheus/latest/querying/api/. Pure. */
import * as z from "zod";
import { cut } from "../cut.ts";

/** Why a query has no result. */
export type QueryErrorCode =
  /** The URL, the host or the CA bundle of the query may not or cannot be used. Nothing was sent. */
  | "TargetInvalid"
  /** The Secret is missing, may not be read, or holds no usable credentials. Nothing was sent. */
  | "SecretUnusable"
  /** No answer: refused, reset, DNS, TLS, or out of time. */
  | "Unreachable"
  /** 401 or 403. */
  | "Refused"
  /** 400, or 422 of other servers: Prometheus says what is wrong with the expression. */
  | "BadQuery"
  /** 422 of Prometheus: it understands the expression, but cannot evaluate it on the data of now. */
  | "NotEvaluated"
  /** 429 or 503: too many queries, or this one took too long. */
  | "Overloaded"
  /** The expression gives a scalar, a string or a range vector. */
  | "NotAVector"
  /** A query that is compared gives no single number. */
  | "NotComparable"
  /** Anything else: a redirect, another status, no JSON, too long. */
  | "BadAnswer";

/**
 * The outcome of one query. Texts are safe to show: bounded, on one line, and without the credentials that were sent.
 */
export type QueryAnswer =
  | {
      readonly kind: "Vector";
      /** How many series it has. */
      readonly samples: number;
      /** The first series and its value, in Prometheus' notation. */
      readonly sample?: string;
      /** The value of the first series; absent for a histogram. */
      readonly value?: string | undefined;
      /** A partial answer has warnings. */
      readonly warnings: readonly string[];
    }
  /** The comparison of two queries: whether one number is within bounds of the other, and both in words. */
  | { readonly kind: "Comparison"; readonly isWithin: boolean; readonly text: string }
  | { readonly kind: "Error"; readonly code: QueryErrorCode; readonly message: string };

export interface PrometheusAnswer {
  readonly status: number;
  readonly body: string;
}

const MAX_TEXT_LENGTH = 300;
const MAX_WARNINGS = 5;

const Series = z.looseObject({
  metric: z.record(z.string(), z.string()).default({}),
  value: z.tuple([z.number(), z.string()]).optional(),
});
const AllSeries = z.array(Series);
const Body = z.looseObject({
  status: z.string().optional(),
  errorType: z.string().optional(),
  error: z.string().optional(),
  warnings: z.array(z.string()).optional(),
  // VictoriaMetrics, in place of a warning:
  // https://docs.victoriametrics.com/victoriametrics/cluster-victoriametrics/#cluster-availability
  isPartial: z.boolean().optional(),
  data: z.looseObject({ resultType: z.string(), result: z.unknown() }).optional(),
});

const CODES: Readonly<Record<number, QueryErrorCode>> = {
  400: "BadQuery",
  401: "Refused",
  403: "Refused",
  429: "Overloaded",
  503: "Overloaded",
};

/** An error with a text that is safe to show. */
export function queryError(code: QueryErrorCode, message: string): QueryAnswer {
  return { kind: "Error", code, message: shorten(message) };
}

type ReadBody = z.output<typeof Body>;

/**
 * Reads an answer. If the answer is no success, only Prometheus' own error message is shown: other bodies may come from
 * any server. `hide` removes secrets from each text before the text is shortened.
 */
export function readAnswer({ status, body }: PrometheusAnswer, hide = (text: string): string => text): QueryAnswer {
  if (status >= 300 && status < 400) return queryError("BadAnswer", `a redirect (${status}) is not followed`);
  const read = Body.safeParse(parseJson(body)).data ?? {};
  const said = errorOf(read, hide);
  if (status !== 200)
    return queryError(codeOfStatus(status, read), `${said ?? "no error message of Prometheus"} (${status})`);
  return said === undefined ? readSuccess(read, hide) : queryError(codeOfType(read.errorType), said);
}

function errorOf({ status, error }: ReadBody, hide: (text: string) => string): string | undefined {
  return status === "error" && error !== undefined ? hide(error) : undefined;
}

function readSuccess(
  { status, data, warnings = [], isPartial }: ReadBody,
  hide: (text: string) => string,
): QueryAnswer {
  if (status !== "success" || !data) return queryError("BadAnswer", "the answer is not that of Prometheus' query API");
  const show = (text: string): string => shorten(hide(text));
  const all = isPartial ? ["the answer is partial", ...warnings] : warnings;
  return readVector(data, all.slice(0, MAX_WARNINGS).map(show), hide);
}

function readVector(
  { resultType, result }: NonNullable<ReadBody["data"]>,
  warnings: readonly string[],
  hide: (text: string) => string,
): QueryAnswer {
  const show = (text: string): string => shorten(hide(text));
  if (resultType !== "vector")
    return queryError("NotAVector", `the expression gives a ${show(resultType)}, not an instant vector`);
  const series = AllSeries.safeParse(result).data;
  if (!series) return queryError("BadAnswer", "the vector in the answer cannot be read");
  const [first] = series;
  const sample = first && {
    sample: show(`${describeSeries(first.metric, hide)} ${first.value?.[1] ?? "(a histogram)"}`),
    ...(first.value && { value: show(first.value[1]) }),
  };
  return { kind: "Vector", samples: series.length, ...sample, warnings };
}

/** Hides secrets before it quotes: a secret may look different once it is quoted. */
function describeSeries(
  { __name__: name = "", ...labels }: Readonly<Record<string, string>>,
  hide: (text: string) => string,
): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${JSON.stringify(hide(value))}`);
  return `${name}{${pairs.join(", ")}}`;
}

// https://github.com/prometheus/prometheus/blob/v2.42.0/web/api/v1/api.go#L66
function codeOfType(type = ""): QueryErrorCode {
  if (type === "bad_data") return "BadQuery";
  if (type === "execution") return "NotEvaluated";
  return type === "timeout" || type === "canceled" ? "Overloaded" : "BadAnswer";
}

/** VictoriaMetrics answers 422 to what it cannot read, with another type of error. */
function codeOfStatus(status: number, { errorType }: ReadBody): QueryErrorCode {
  if (status === 422) return errorType === "execution" ? "NotEvaluated" : "BadQuery";
  return CODES[status] ?? "BadAnswer";
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** A text on one line, at most 300 characters long. */
function shorten(text: string): string {
  const line = text.replaceAll(/[\s\p{Cc}]+/gu, " ").trim();
  return line.length <= MAX_TEXT_LENGTH ? line : `${cut(line, MAX_TEXT_LENGTH - 1)}…`;
}
