/**
 * What Prometheus would scrape of the functions, minute by minute of a simulated time: as input for `promtool test
 * rules`.
 */

export interface Recording {
  /** Adds the text of one scrape. */
  readonly add: (text: string) => void;
  readonly minutes: () => number;
  /** One value a minute; `_` where a scrape lacks the series. */
  readonly series: () => { readonly series: string; readonly values: string }[];
}

/** `name{labels} value`; names of labels are never quoted, and their values escape quotes. */
const SAMPLE = /^(\w+)(?:\{(.*)\})? (\S+)$/;

/**
 * `target` has the labels of the scrape's target; a series keeps those of its own (`honorLabels`). The first scrape is
 * at `from`, seconds since the epoch: promtool's time begins at 0, so that is taken from timestamps.
 */
export function startRecording(target: Readonly<Record<string, string>>, from: number): Recording {
  const recorded = new Map<string, string[]>();
  let minutes = 0;

  /** Empty labels count as absent. */
  function nameSeries(name: string, own: string): string {
    const more = Object.entries(target).filter(([label]) => !new RegExp(`(?:^|,)${label}="`).test(own));
    return `${name}{${[own, ...more.map(([label, value]) => `${label}="${value}"`)].filter(Boolean).join(",")}}`;
  }

  return {
    add(text) {
      for (const line of text.split("\n")) {
        const [, name, own = "", value = ""] = SAMPLE.exec(line) ?? [];
        if (name === undefined) continue;
        const key = nameSeries(name, own);
        const values = recorded.get(key) ?? [];
        const shown = name.endsWith("_timestamp_seconds") ? String(Number(value) - from) : value;
        recorded.set(key, [...values, ...Array.from({ length: minutes - values.length }, () => "_"), shown]);
      }
      minutes++;
    },
    minutes: () => minutes,
    series: () => [...recorded].map(([series, values]) => ({ series, values: values.join(" ") })),
  };
}
