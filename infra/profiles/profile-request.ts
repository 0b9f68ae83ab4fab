/** Requests for profiles of a process: their parameters, or the reason of a refusal. Pure. */

/** The profile of each path. */
export const PROFILES = {
  "/debug/pprof/profile": { kind: "cpu", extension: "cpuprofile" },
  "/debug/pprof/heap": { kind: "heap", extension: "heapprofile" },
} as const;

export interface ProfileRequest {
  /**
   * `cpu`: the functions that use the processor's time; `heap`: the functions that allocated the objects still in
   * memory.
   */
  readonly kind: "cpu" | "heap";
  /** The extension of the file in the answer. */
  readonly extension: "cpuprofile" | "heapprofile";
  readonly seconds: number;
}

export interface ProfileRefusal {
  readonly status: 400 | 403 | 404 | 405;
  readonly message: string;
}

/** The default of `go tool pprof`, and an upper bound: a profile slows down the process. */
const DEFAULT_SECONDS = 30;
const MAX_SECONDS = 120;

/** Prevents DNS rebinding: a web page whose host name resolves to an address of ours sends its own host name. */
const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;

interface Head {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** The header of that name. */
  readonly host?: string | undefined;
}

export function readProfileRequest({ method, url = "", host = "" }: Head): ProfileRequest | ProfileRefusal {
  if (!LOOPBACK.test(host)) return { status: 403, message: "profiles are for localhost: use kubectl port-forward" };
  const [path = "", query = ""] = url.split("?", 2);
  if (!isProfile(path)) return { status: 404, message: `there are ${Object.keys(PROFILES).join(" and ")}` };
  if (method !== "GET") return { status: 405, message: "profiles are asked for by GET" };
  const seconds = readSeconds(new URLSearchParams(query));
  return typeof seconds === "number" ? { ...PROFILES[path], seconds } : { status: 400, message: seconds };
}

const isProfile = (path: string): path is keyof typeof PROFILES => Object.hasOwn(PROFILES, path);

/** The seconds, or a sentence about the parameter that is wrong. */
function readSeconds(parameters: URLSearchParams): number | string {
  const unknown = [...parameters.keys()].find((name) => name !== "seconds");
  if (unknown !== undefined) return `${JSON.stringify(unknown)} is not known, there is seconds alone`;
  const given = parameters.getAll("seconds");
  const [text = String(DEFAULT_SECONDS), more] = given;
  const isNumber = more === undefined && /^[1-9]\d{0,2}$/.test(text) && Number(text) <= MAX_SECONDS;
  return isNumber
    ? Number(text)
    : `seconds is ${JSON.stringify(given.join())}, allowed is one whole number from 1 to ${MAX_SECONDS}`;
}
