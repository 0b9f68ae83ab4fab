/** The declaration of a metric. */
import type { MetricType } from "prom-client";

export interface MetricRow {
  readonly name: string;
  readonly type: Exclude<`${MetricType}`, "summary">;
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
  /**
   * The reconciler's series are kept on its Lease, and the functions show them; `shared`: with a label, because
   * functions have series of their own.
   */
  readonly kept?: "alone" | "shared";
  /** Its buckets name the last traced request (docs/tracing.md). */
  readonly exemplars?: true;
  /** Only shown, from kept series. */
  readonly foreign?: true;
}
