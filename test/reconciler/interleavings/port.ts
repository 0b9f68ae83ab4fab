/** The Kubernetes port of one process of a play: each call takes effect in one step, and may fail in every way. */
import type { Cluster, Preconditions } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { createServer, Fields } from "./server.ts";
import type { Stepper } from "./stepper.ts";

/** The outcome of a call. A late one takes effect after its caller has given up. */
export const FATES = ["lostBefore", "lostAfter", "late", "throttled", "killed"] as const;
export type Fate = "well" | (typeof FATES)[number];

export interface PortOptions {
  readonly stepper: Stepper;
  readonly server: ReturnType<typeof createServer>;
  readonly fate: (actor: string) => Fate;
  /** Changes when more time passes than any call may last. */
  readonly epoch: () => number;
  readonly version: () => number;
  /** StatefulSets do not change, so that the time of their reads makes no difference. */
  readonly unchanging: boolean;
  readonly remove: (name: string, preconditions: Preconditions) => string;
  readonly reach: (what: string) => void;
}

export function connectPort(actor: string, options: PortOptions): Cluster {
  const { stepper, server, epoch, reach } = options;

  async function call<T>(label: string, effect: (fate: Fate) => T): Promise<T> {
    const begun = epoch();
    await stepper.step(label, actor);
    const fate = options.fate(actor);
    if (fate !== "well") reach(fate);
    // Its deadline passed before it reached the server.
    if (epoch() !== begun) throw new RolloutError("Timeout", label);
    if (fate === "throttled") throw new RolloutError("Throttled", label);
    if (fate === "lostBefore") throw new RolloutError("Timeout", label);
    if (fate === "late") {
      void stepper.step(`${label}, late`, "network").then(() => {
        try {
          if (epoch() === begun) effect(fate);
        } catch {}
      });
      throw new RolloutError("Timeout", label);
    }
    const result = effect(fate);
    if (fate === "lostAfter") throw new RolloutError("Timeout", label);
    if (fate !== "killed") return result;
    stepper.kill(actor);
    return await new Promise<never>(() => {});
  }

  return {
    async *list(resource, query) {
      const { plural } = resource;
      if (plural === "statefulsets" && options.unchanging) {
        yield { items: server.list(plural, "") as never[], resourceVersion: "" };
        return;
      }
      const items = await call(`list ${plural}`, () => server.list(plural, query.labelSelector ?? ""));
      yield { items: items as never[], resourceVersion: String(options.version()) };
    },
    get: async ({ plural }, { name }) => (await call(`get ${plural} ${name}`, () => server.get(plural, name))) as never,
    create: async ({ plural }, { body }) =>
      (await call(`create ${plural}`, () => server.create(plural, body as Fields))) as never,
    replace: async ({ plural }, { name, body }) =>
      (await call(`replace ${plural} ${name}`, () => server.replace(plural, name, body as Fields))) as never,
    patch: ({ plural }, { name }) => call(`patch ${plural} ${name}`, () => ""),
    remove: (_, { name, preconditions }) => call(`delete ${name}`, () => options.remove(name, preconditions)),
    change: (_, { name }) => Promise.reject(new RolloutError("NotFound", `nothing is scaled here, not ${name}`)),
    discover: () => Promise.resolve([]),
    watch: () => Promise.reject(new RolloutError("Expired", "no watches here")),
  };
}
