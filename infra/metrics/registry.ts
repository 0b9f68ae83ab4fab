/** The registry of a process: its own series, and the series that it shows for processes that have ended. */
import {
  Counter,
  Gauge,
  Histogram,
  type Metric,
  type MetricType,
  type OpenMetricsContentType,
  Registry,
} from "prom-client";

export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** For a series of a histogram, such as `name_sum`. */
  readonly metricName?: string;
  /** The exemplar of a bucket, if it has one. */
  readonly exemplar?: object | null;
}

/** By the name of the metric. */
export type Samples = ReadonlyMap<string, readonly Sample[]>;

interface OwnRegistry {
  readonly counter: (row: MetricRow) => Counter;
  readonly gauge: (row: MetricRow) => Gauge;
  readonly histogram: (row: MetricRow) => Histogram;
  /** A metric that this process only shows. */
  readonly foreign: (row: MetricRow) => void;
  /** The process's own series of a metric. */
  readonly read: (row: MetricRow) => Promise<readonly Sample[]>;
  /** Replaces the series that are shown beside its own. */
  readonly show: (samples: Samples) => void;
  /** The content type for a scraper with this Accept header: OpenMetrics only once there is an exemplar to show. */
  readonly typeFor: (accept: string | undefined) => string;
  /** Called with each exemplar that a metric is given. */
  readonly noteExemplar: () => void;
  /** In Prometheus' text format, or that of the type. */
  readonly render: (contentType?: string) => Promise<string>;
}

export const TEXT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;
const OPEN_METRICS_TYPE = Registry.OPENMETRICS_CONTENT_TYPE;

/** Whether an Accept header takes OpenMetrics 1.0.0, at no lower quality than the text format (RFC 9110, 12.5.1). */
function prefersOpenMetrics(accept: string): boolean {
  const ranges = accept.toLowerCase().replaceAll(" ", "").split(",");
  const qualityOf = (type: RegExp): number =>
    Math.max(
      0,
      ...ranges.filter((range) => type.test(range)).map((range) => Number(/;q=([\d.]+)/.exec(range)?.[1] ?? 1)),
    );
  const open = qualityOf(/^application\/openmetrics-text(?!.*;version=(?!1\.0\.0))/);
  return open > 0 && open >= qualityOf(/^text\/plain/);
}

export function createRegistry(): OwnRegistry {
  const [text, open] = [new Registry(), new Registry<OpenMetricsContentType>()];
  open.setContentType(OPEN_METRICS_TYPE);
  const own = new Map<string, Counter | Gauge | Histogram>();
  let hasExemplar = false;
  let shown: Samples = new Map();
  const options = ({ name, help, labels }: MetricRow) => ({ name, help, labelNames: [...labels], registers: [] });

  async function read({ name }: MetricRow): Promise<readonly Sample[]> {
    return ((await own.get(name)?.get())?.values ?? []) as readonly Sample[];
  }

  /** The registry only names its metrics, and asks each for its values when it is read. */
  function register(row: MetricRow): void {
    const { name, help, type } = row;
    const get = async () => ({ name, help, type, values: [...(await read(row)), ...(shown.get(name) ?? [])] });
    text.registerMetric({ name, get } as unknown as Metric);
    // In OpenMetrics the suffix of a counter belongs to its samples, and the registry adds it.
    const family = type === "counter" ? name.replace(/_total$/, "") : name;
    open.registerMetric({ name, get: async () => ({ ...(await get()), name: family }) } as unknown as Metric);
  }

  function add<M extends Counter | Gauge | Histogram>(row: MetricRow, metric: M): M {
    own.set(row.name, metric);
    register(row);
    return metric;
  }

  return {
    counter: (row) => add(row, new Counter(options(row))),
    gauge: (row) => add(row, new Gauge(options(row))),
    histogram: (row) =>
      add(
        row,
        new Histogram({
          ...options(row),
          buckets: [...(row.buckets ?? [])],
          enableExemplars: row.exemplars ?? false,
        }),
      ),
    foreign: register,
    read,
    show: (samples) => void (shown = samples),
    typeFor: (accept = "") => (hasExemplar && prefersOpenMetrics(accept) ? OPEN_METRICS_TYPE : TEXT_TYPE),
    noteExemplar: () => void (hasExemplar = true),
    render: (contentType = TEXT_TYPE) => (contentType === OPEN_METRICS_TYPE ? open : text).metrics(),
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
  /** Its buckets name the last traced request (docs/operate/internals.md). */
  readonly exemplars?: true;
  /** Only shown, from kept series. */
  readonly foreign?: true;
}
