/** A Prometheus that answers by a script: how it answers about each expression changes with time, as the seed draws. */
import type { Draw } from "../draw.ts";
import type { HostAnswer, Sent } from "../../emulator/in-process.ts";
import type { Schedule } from "../schedule.ts";

const HOST = "prometheus:9090";
export const PROMETHEUS_URL = `http://${HOST}`;

/** How it answers, and as what the answer counts. */
const MOODS = {
  good: "Success",
  bad: "Failure",
  /** Without data that may be missing. */
  partial: "Error",
  overloaded: "Error",
  scalar: "Error",
  garbled: "Error",
  /** Longer than anybody waits for it. */
  late: "Error",
  silent: "Error",
  refused: "Error",
} as const;
export type Mood = keyof typeof MOODS;
export type Verdict = (typeof MOODS)[Mood];

const NAMES = Object.keys(MOODS) as Mood[];
/** It stays in a mood for so long at most. */
const MOOD_MS = 90_000;
const LATE_MS = 5500;

/** What a check takes for good, and how it is answered once the trouble has ended. */
export interface Asked {
  readonly successWhen: "NoData" | "Data" | "WithinBaseline";
  readonly last: Mood;
}

export interface Told {
  readonly at: number;
  readonly expr: string;
  readonly verdict: Verdict;
}

export interface PrometheusOptions {
  readonly schedule: Schedule;
  readonly draw: Draw;
  /** The checks that it is asked for, by the name with which their expression begins. */
  readonly checks: Readonly<Record<string, Asked>>;
  readonly onAnswer: (told: Told) => void;
}

export function createPrometheus({ schedule, draw, checks, onAnswer }: PrometheusOptions) {
  const moods = new Map<string, Mood>();
  let isCalm = false;
  const change = (name: string): void => {
    if (isCalm) return;
    moods.set(name, draw.chance(0.6) ? "good" : draw.of(NAMES));
    schedule.after(draw.between(1000, MOOD_MS), () => change(name));
  };
  for (const name of Object.keys(checks)) change(name);

  /** Answers a query; undefined if the request is for another host, or refused. */
  function answer({ host, path, body }: Sent): HostAnswer | "silent" | undefined {
    if (host !== HOST || !path.startsWith("/api/v1/query")) return undefined;
    const expr = new URLSearchParams(body.toString()).get("query") ?? "";
    const name = /^\w*/.exec(expr)?.[0] ?? "";
    const mood = moods.get(name) ?? "bad";
    onAnswer({ at: schedule.now(), expr, verdict: MOODS[mood] });
    const { successWhen = "NoData" } = checks[name] ?? {};
    return successWhen === "WithinBaseline"
      ? sayNumber(mood, NUMBERS[name] ?? NUMBERS["gate"])
      : say(mood, successWhen);
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

const vector = (samples: number, rest: object = {}, value = "1"): HostAnswer => ({
  status: 200,
  body: JSON.stringify({
    status: "success",
    data: { resultType: "vector", result: Array.from({ length: samples }, () => ({ metric: {}, value: [0, value] })) },
    ...rest,
  }),
});

/** What is compared is good if both are: otherwise the one is too high, or the other too low. */
const NUMBERS: Readonly<Record<string, Readonly<Partial<Record<Mood, string>>>>> = {
  gate: { bad: "3" },
  baseline: { bad: "0.1" },
};

function sayNumber(mood: Mood, numbers: (typeof NUMBERS)[string] = {}): ReturnType<typeof say> {
  if (mood === "partial") return vector(1, { isPartial: true });
  if (mood === "good" || mood === "bad" || mood === "late")
    return { ...vector(1, {}, numbers[mood] ?? "1"), ...(mood === "late" && { lateMs: LATE_MS }) };
  return say(mood, "Data");
}

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
