/**
 * The standard variables of OpenTelemetry decide whether spans are recorded:
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/. One difference: without an
 * endpoint nothing is sent to localhost, where nothing listens in a pod.
 */
import type { Log } from "../log.ts";
import { NO_TRACER, type Tracer } from "./tracer.ts";

type Environment = Readonly<Record<string, string | undefined>>;

interface TracingChoice {
  readonly isWanted: boolean;
  /** The reason why no spans are recorded although they were requested. */
  readonly problem?: string;
}

/** The allowed values of the variables; in each row, the first variable that is set counts. */
const BOUNDS = [
  { names: ["OTEL_TRACES_EXPORTER"], pattern: /^otlp$/, allowed: "otlp and none" },
  {
    names: ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"],
    pattern: /^https?:\/\/[^/]/,
    allowed: "http and https URLs",
  },
  {
    names: ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"],
    pattern: /^http\/protobuf$/,
    allowed: "http/protobuf",
  },
] as const;

/** Tracing is optional: a wrong value switches it off, and never ends a process that protects pods. */
export function chooseTracing(env: Environment): TracingChoice {
  const isOff = env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true" || env["OTEL_TRACES_EXPORTER"] === "none";
  if (isOff) return { isWanted: false };
  for (const { names, pattern, allowed } of BOUNDS) {
    const name = names.find((one) => env[one]);
    if (name !== undefined && !pattern.test(env[name] ?? ""))
      return { isWanted: false, problem: `${name} is not supported as it is, allowed are ${allowed}` };
  }
  return { isWanted: BOUNDS[1].names.some((name) => env[name]) };
}

/** The tracer of a process. `service` is its name unless `OTEL_SERVICE_NAME` has one. */
export async function loadTracer(env: Environment, service: string, log: Log): Promise<Tracer> {
  const { isWanted, problem } = chooseTracing(env);
  if (problem !== undefined) log.warn("no traces are recorded", { problem });
  if (!isWanted) return NO_TRACER;
  const { createTracer } = await import("./act/otel.ts");
  const { POD_NAME: pod, KUBERNETES_NAMESPACE: namespace } = env;
  return createTracer({ "service.name": service, "k8s.pod.name": pod, "k8s.namespace.name": namespace }, log);
}
