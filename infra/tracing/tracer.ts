/**
 * Traces: spans of what a process does. Without an exporter nothing is recorded, and the library is not even loaded
 * (load-tracer.ts).
 */

/** Undefined values are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Span {
  readonly set: (attributes: Attributes) => void;
}

export interface SpanStart {
  readonly name: string;
  /** The end of a request that it records; neither unless given. */
  readonly kind?: "server" | "client";
  readonly attributes?: Attributes;
  /**
   * Headers of the request that is served, with the caller's context (W3C Trace Context); without them, the span is a
   * child of the one around it.
   */
  readonly caller?: Readonly<Record<string, string | string[] | undefined>>;
}

export interface Tracer {
  /**
   * Runs `work` in a span that ends with it. If `work` rejects, the result rejects as well, and the span gets the
   * error. `start` is called only if spans are recorded, so that a call of the API server computes no name or
   * attributes without an exporter.
   */
  readonly span: <T>(start: () => SpanStart, work: (span: Span) => Promise<T>) => Promise<T>;
  /** A span without duration, for a decision that takes no time. `describe` is called only if spans are recorded. */
  readonly mark: (name: string, describe: () => Attributes) => void;
  /** The headers that give a request the context of the span around it. */
  readonly headers: () => Readonly<Record<string, string>>;
  /** Sends what has been recorded; resolves after 3 s at the latest, and never rejects. */
  readonly flush: () => Promise<void>;
}

const NO_SPAN: Span = { set: () => {} };
const NO_HEADERS = {};

/** Records nothing. */
export const NO_TRACER: Tracer = {
  span: (_start, work) => work(NO_SPAN),
  mark: () => {},
  headers: () => NO_HEADERS,
  flush: () => Promise.resolve(),
};
