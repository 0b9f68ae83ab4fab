/** Fault injection: rules that are matched in order against each request to a resource. */
import type { ApiRequest } from "./request.ts";

export type Effect =
  | { readonly kind: "latency"; readonly ms: number }
  /** The connection breaks before the request takes effect. */
  | { readonly kind: "dropBefore" }
  /** The connection breaks after the request has taken effect. */
  | { readonly kind: "dropAfter" }
  | { readonly kind: "conflict" }
  | { readonly kind: "tooMany"; readonly retryAfterSeconds: number }
  /** With a user, in the words of RBAC; otherwise as a policy might refuse it. */
  | { readonly kind: "forbidden"; readonly user?: string }
  | { readonly kind: "error" };

const MATCH_FIELDS = ["verb", "resource", "namespace", "name", "subresource", "dryRun"] as const;

/** Strikes the requests that match all given fields. */
export interface Fault extends Partial<Pick<ApiRequest, (typeof MATCH_FIELDS)[number]>> {
  readonly effect: Effect;
  /** How often it strikes; unlimited by default. */
  readonly times?: number;
}

export type Faults = ReturnType<typeof createFaults>;

export function createFaults() {
  const active = new Set<{ readonly fault: Fault; left: number }>();
  /** For each open watch the function that cuts it, and its resource. */
  const watches = new Map<() => void, string>();
  let struck = 0;

  return {
    /** Returns a function that removes the fault. */
    inject: (fault: Fault): (() => void) => {
      const entry = { fault, left: fault.times ?? Infinity };
      active.add(entry);
      return () => void active.delete(entry);
    },
    clear: (): void => active.clear(),
    /** How often faults have struck so far. */
    struck: (): number => struck,
    /** Breaks the connections of a resource's open watches; returns how many. */
    cutWatches: (resource: string): number => {
      const matching = [...watches].filter(([, watched]) => watched === resource);
      for (const [cut] of matching) cut();
      return matching.length;
    },
    /** For the server: the effects of the faults that strike this request. */
    strike: (request: ApiRequest): readonly Effect[] =>
      [...active].flatMap((entry) => {
        const { effect, ...fault } = entry.fault;
        const matches = MATCH_FIELDS.every((field) => fault[field] === undefined || fault[field] === request[field]);
        if (!matches || entry.left <= 0) return [];
        entry.left -= 1;
        struck += 1;
        return [effect];
      }),
    /** For the server: registers an open watch. Returns a function that unregisters it. */
    registerWatch: (resource: string, cut: () => void): (() => void) => {
      watches.set(cut, resource);
      return () => void watches.delete(cut);
    },
  };
}
