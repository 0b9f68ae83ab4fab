/** What is declared of a metric. */
import type { MetricType } from "prom-client";

export interface MetricRow {
  readonly name: string;
  readonly type: Exclude<`${MetricType}`, "summary">;
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
  /**
   * The reconciler's are kept on its Lease, and shown by the functions; `shared`: with a label, as functions have
   * series of their own.
   */
  readonly kept?: "alone" | "shared";
  /** Its buckets name the last traced request (docs/tracing.md). */
  readonly exemplars?: true;
  /** Only shown, from what is kept. */
  readonly foreign?: true;
}
