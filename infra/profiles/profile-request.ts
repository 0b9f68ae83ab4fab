/** Requests for profiles of a process: what they ask for, or why they are refused. Pure. */

/** What a path gives. */
export const PROFILES = {
  "/debug/pprof/profile": { kind: "cpu", extension: "cpuprofile" },
  "/debug/pprof/heap": { kind: "heap", extension: "heapprofile" },
} as const;

export interface ProfileRequest {
  /** Where the processor's time goes; or which functions allocate what is still in memory. */
  readonly kind: "cpu" | "heap";
  /** Of the file that is answered. */
  readonly extension: "cpuprofile" | "heapprofile";
  readonly seconds: number;
}

export interface ProfileRefusal {
  readonly status: 400 | 403 | 404 | 405;
  readonly message: string;
}

/** What `go tool pprof` asks for by default, and a bound: the process works more slowly meanwhile. */
const DEFAULT_SECONDS = 30;
const MAX_SECONDS = 120;

/** A page of a browser that gets itself an address of ours by DNS names its own host. */
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

/** The seconds, or what is wrong, as a sentence that names it. */
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
