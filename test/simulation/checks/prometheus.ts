/** A Prometheus that answers by a script: how it answers about each expression changes with time, as the seed draws. */
import type { Draw } from "../draw.ts";
import type { HostAnswer, Sent } from "../../emulator/in-process.ts";
import type { Schedule } from "../schedule.ts";

const HOST = "prometheus:9090";
export const PROMETHEUS_URL = `http://${HOST}`;

/** How it answers; `partial` without data that may be missing, `late` longer than anybody waits for it. */
const MOODS = ["good", "bad", "partial", "overloaded", "scalar", "garbled", "late", "silent", "refused"] as const;
export type Mood = (typeof MOODS)[number];

/** It stays in a mood for so long at most. */
const MOOD_MS = 90_000;
const LATE_MS = 5500;

/** What a check takes for good, and how it is answered once the trouble has ended. */
export interface Asked {
  readonly successWhen: "NoData" | "Data";
  readonly last: Mood;
}

export interface PrometheusOptions {
  readonly schedule: Schedule;
  readonly draw: Draw;
  /** The checks that it is asked for, by the name with which their expression begins. */
  readonly checks: Readonly<Record<string, Asked>>;
  readonly onAnswer: (told: string) => void;
}

export function createPrometheus({ schedule, draw, checks, onAnswer }: PrometheusOptions) {
  const moods = new Map<string, Mood>();
  let isCalm = false;
  const change = (name: string): void => {
    if (isCalm) return;
    moods.set(name, draw.chance(0.6) ? "good" : draw.of(MOODS));
    schedule.after(draw.between(1000, MOOD_MS), () => change(name));
  };
  for (const name of Object.keys(checks)) change(name);

  /** Answers a query; undefined if the request is for another host, or refused. */
  function answer({ host, path, body }: Sent): HostAnswer | "silent" | undefined {
    if (host !== HOST || !path.startsWith("/api/v1/query")) return undefined;
    const expr = new URLSearchParams(body.toString()).get("query") ?? "";
    const name = /^\w*/.exec(expr)?.[0] ?? "";
    const mood = moods.get(name) ?? "bad";
    onAnswer(`${expr} is ${mood}`);
    return say(mood, checks[name]?.successWhen ?? "NoData");
  }

  return {
    answer,
    /** From now on each check is answered as its shape says. */
    calm: () => {
      isCalm = true;
      for (const [name, { last }] of Object.entries(checks)) moods.set(name, last);
    },
  };
}

const vector = (samples: number, rest: object = {}): HostAnswer => ({
  status: 200,
  body: JSON.stringify({
    status: "success",
    data: { resultType: "vector", result: Array.from({ length: samples }, () => ({ metric: {}, value: [0, "1"] })) },
    ...rest,
  }),
});

function say(mood: Mood, successWhen: Asked["successWhen"]): HostAnswer | "silent" | undefined {
  const isData = (mood === "bad") !== (successWhen === "Data");
  switch (mood) {
    case "good":
    case "bad":
      return vector(isData ? 1 : 0);
    case "partial":
      return successWhen === "NoData" ? vector(0, { isPartial: true }) : { status: 200, body: '{"status":"success"}' };
    case "overloaded":
      return { status: 503, body: JSON.stringify({ status: "error", errorType: "timeout", error: "too many" }) };
    case "scalar":
      return { status: 200, body: '{"status":"success","data":{"resultType":"scalar","result":[0,"1"]}}' };
    case "garbled":
      return { status: 200, body: "<html>" };
    case "late":
      return { ...vector(isData ? 1 : 0), lateMs: LATE_MS };
    case "silent":
      return "silent";
    case "refused":
      return undefined;
  }
}
