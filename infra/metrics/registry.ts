/** The registry of a process: its own series, and the series that it shows for processes that have ended. */
import { Counter, Gauge, Histogram, type Metric, type MetricType, Registry } from "prom-client";

export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** For a series of a histogram, such as `name_sum`. */
  readonly metricName?: string;
}

export type Samples = ReadonlyMap<string, readonly Sample[]>;

export const TEXT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

export function createRegistry() {
  const registry = new Registry();
  const own = new Map<string, Counter | Gauge | Histogram>();
  let shown: Samples = new Map();
  const options = ({ name, help, labels }: MetricRow) => ({ name, help, labelNames: [...labels], registers: [] });

  async function read({ name }: MetricRow): Promise<readonly Sample[]> {
    return ((await own.get(name)?.get())?.values ?? []) as readonly Sample[];
  }

  /** The registry only names its metrics, and asks each for its values when it is read. */
  function register(row: MetricRow): void {
    const { name, help, type } = row;
    const get = async () => ({ name, help, type, values: [...(await read(row)), ...(shown.get(name) ?? [])] });
    registry.registerMetric({ name, get } as unknown as Metric);
  }

  function add<M extends Counter | Gauge | Histogram>(row: MetricRow, metric: M): M {
    own.set(row.name, metric);
    register(row);
    return metric;
  }

  return {
    counter: (row: MetricRow) => add(row, new Counter(options(row))),
    gauge: (row: MetricRow) => add(row, new Gauge(options(row))),
    histogram: (row: MetricRow) => add(row, new Histogram({ ...options(row), buckets: [...(row.buckets ?? [])] })),
    /** A metric that this process only shows. */
    foreign: register,
    /** The process's own series of a metric. */
    read,
    /** Replaces the series that are shown beside its own. */
    show: (samples: Samples): void => void (shown = samples),
    /** In Prometheus' text format. */
    render: () => registry.metrics(),
  };
}

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
  /** Only shown, from kept series. */
  readonly foreign?: true;
}
