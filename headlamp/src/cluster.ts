/**
 * The Kubernetes port through Headlamp: each request is the user's own, with the rights that the user has in that
 * cluster. It only reads.
 */
import { showUnseen } from "../../functions/status/view/unseen.ts";
import { startStopwatch, type Clock } from "../../infra/clock.ts";
import { RolloutError } from "../../infra/errors.ts";
import { errorOfCall, errorOfStatus } from "../../infra/kubernetes/api-error.ts";
import { pathOf, type Place } from "../../infra/kubernetes/api-path.ts";
import type { Call, Cluster, Query } from "../../infra/kubernetes/cluster.ts";
import { FULL, limitOf, METADATA_LIST } from "../../infra/kubernetes/list-forms.ts";
import type { ListBody, Resource } from "../../infra/kubernetes/resources.ts";
import type { OnDate } from "../../infra/server-clock.ts";

/** The parameters of Headlamp's `clusterRequest` (ApiProxy), whose answer is a Response unless `isJSON`. */
export interface HostParams {
  readonly cluster: string;
  /** Milliseconds. */
  readonly timeout: number;
  readonly isJSON: false;
  readonly autoLogoutOnAuthError: false;
  readonly headers: Record<string, string>;
}

/** Rejects with an error that has the `status` of the answer, and "Forbidden - …" as its message. */
export type HostRequest = (path: string, params: HostParams) => Promise<unknown>;

export interface PortOptions {
  readonly request: HostRequest;
  /** Its name in Headlamp. */
  readonly cluster: string;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly onDate: OnDate;
}

interface Answer {
  readonly headers: { readonly get: (name: string) => string | null };
  readonly text: () => Promise<string>;
}

interface Request {
  readonly path: string;
  readonly accept?: string;
  readonly call?: Call | undefined;
}

/** Milliseconds that a call may take. */
const TIMEOUT_MS = 10_000;
/** The answer of Headlamp for an unknown cluster, and of an API server for an unknown API group. */
const NO_PAGE = "404 page not found";

/**
 * Reads one cluster for one view of it: each object is read only once. Verbs that write reject with `Invalid`, without
 * a request.
 */
export function openPort({ request, cluster, clock, onDate }: PortOptions): Cluster {
  const objects = new Map<string, Promise<unknown>>();
  let version: Promise<unknown> | undefined;

  async function ask({ path, accept = FULL, call: { deadlineMs = TIMEOUT_MS } = {} }: Request): Promise<unknown> {
    const elapsed = startStopwatch(clock);
    const timeout = Math.max(1, Math.ceil(Math.min(deadlineMs, TIMEOUT_MS)));
    const asked = {
      cluster,
      timeout,
      isJSON: false,
      autoLogoutOnAuthError: false,
      headers: { Accept: accept },
    } as const;
    const { headers, text } = readAnswer(await request(path, asked));
    onDate(headers.get("date") ?? undefined, elapsed());
    return parse(await text());
  }

  async function read(what: string, asked: Request): Promise<unknown> {
    try {
      return await ask(asked);
    } catch (error) {
      const { status, said } = explainFailure(error);
      if (status === 404 && said === NO_PAGE) await (version ??= ask({ path: "/version" }).catch(unknownCluster));
      throw errorOfCall(what, errorOfHost(error));
    }
  }

  function unknownCluster(error: unknown): never {
    const { status } = explainFailure(error);
    if (status !== 404) throw errorOfCall("get version", errorOfHost(error));
    throw new RolloutError("Unreachable", `Headlamp knows no cluster ${cluster}`);
  }

  return {
    async *list<T>(resource: Resource<T>, query: Query, call?: Call) {
      const accept = resource.metadataOnly ? METADATA_LIST : FULL;
      let token: string | undefined;
      do {
        const limit = limitOf(resource, query);
        const { labelSelector, fieldSelector } = query;
        const path = pathOf(resource, query) + formatQuery({ labelSelector, fieldSelector, limit, continue: token });
        const body = (await read(`list ${resource.plural}`, { path, accept, call })) as ListBody<T>;
        yield { items: body.items ?? [], resourceVersion: body.metadata?.resourceVersion ?? "" };
        token = body.metadata?.continue || undefined;
      } while (token !== undefined);
    },
    async get<T>(resource: Resource<T>, ref: Place, call?: Call) {
      const path = pathOf(resource, ref);
      const object = objects.get(path) ?? read(`get ${resource.plural} ${ref.name}`, { path, call });
      objects.set(path, object);
      object.catch(() => objects.delete(path));
      return (await object) as T;
    },
    create: refuse,
    replace: refuse,
    patch: refuse,
    change: refuse,
    remove: refuse,
    discover: refuse,
    watch: refuse,
  };
}

async function refuse(): Promise<never> {
  throw new RolloutError("Invalid", "the plugin only lists objects and gets them");
}

function readAnswer(answer: unknown): Answer {
  const { headers } = answer as Answer;
  return { headers, text: () => (answer as Answer).text() };
}

/** Parses objects, and replaces invisible characters in their texts: any user can write messages. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text, (_, value: unknown) => (typeof value === "string" ? showUnseen(value) : value));
  } catch (error) {
    throw new RolloutError("ServerError", "the answer is no JSON", { cause: error });
  }
}

function formatQuery(parameters: Readonly<Record<string, string | undefined>>): string {
  const set = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return `?${new URLSearchParams(set).toString()}`;
}

/** `Forbidden - pods is forbidden: …`; over HTTP/2 without the first word. */
function explainFailure(error: unknown): { readonly status: number | undefined; readonly said: string } {
  const { status, message = "" } = error as { readonly status?: number; readonly message?: string };
  const at = message.indexOf(" - ");
  return { status, said: (at === -1 ? message : message.slice(at + 3)).trim() };
}

function errorOfHost(error: unknown): RolloutError {
  if (error instanceof RolloutError) return error;
  const { status, said } = explainFailure(error);
  // Headlamp's own words for a request without an answer.
  const isUnanswered = status === undefined || (status === 502 && said === "Unreachable");
  return isUnanswered ? new RolloutError("Unreachable", said, { cause: error }) : errorOfStatus(status, said);
}
