/** Creates an Eviction (policy/v1) through the API server. */
import type { Stage } from "./stage.ts";

interface EvictionOptions {
  /** The query of the request, with its question mark. */
  readonly query?: string;
  readonly deleteOptions?: object | undefined;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface EvictionAnswer {
  /** 201 if the pod is evicted; 0 without a response. */
  readonly code: number;
  /** The error; "" if the pod is evicted. */
  readonly message: string;
}

/**
 * Runs `run` while a finalizer keeps the pod: if it is evicted, it is terminating until `run` has ended, however slow
 * the machine is.
 */
export async function keepPod<T>(
  { call, namespace }: Pick<Stage, "call" | "namespace">,
  pod: string,
  run: () => Promise<T>,
): Promise<T> {
  const setFinalizers = (finalizers: readonly string[]): Promise<unknown> =>
    call("PATCH", `/api/v1/namespaces/${namespace}/pods/${pod}`, { metadata: { finalizers } });
  await setFinalizers(["example.com/keep"]);
  try {
    return await run();
  } finally {
    await setFinalizers([]);
  }
}

/** Never rejects. */
export async function evict(
  { call, namespace }: Pick<Stage, "call" | "namespace">,
  pod: string,
  { query = "", deleteOptions, annotations }: EvictionOptions = {},
): Promise<EvictionAnswer> {
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name: pod, namespace, ...(annotations && { annotations }) },
    ...(deleteOptions && { deleteOptions }),
  };
  try {
    await call("POST", `/api/v1/namespaces/${namespace}/pods/${pod}/eviction${query}`, eviction);
    return { code: 201, message: "" };
  } catch (error) {
    const message = String(error);
    return { code: Number(/: (?<code>\d{3}) /.exec(message)?.groups?.["code"] ?? 0), message };
  }
}

/** The API server gave the webhook up, or the webhook the verdict: the machine stood still. */
const IS_STALLED =
  /failed calling webhook.*(?:context deadline exceeded|Client\.Timeout)|no decision could be made in time/;
const MAX_TRIES = 5;

/** The same, tried again as drainers do where the machine stood still. Not for tests of who is reachable. */
export async function evictPatiently(...args: Parameters<typeof evict>): Promise<EvictionAnswer> {
  let answer = await evict(...args);
  for (let tries = 1; tries < MAX_TRIES && IS_STALLED.test(answer.message); tries++) answer = await evict(...args);
  return answer;
}
