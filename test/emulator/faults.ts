/** Trouble on demand: a table of rules, tried in order against each request to a resource. */
import type { Ask, Verb } from "./request.ts";

export type Effect =
  | { readonly kind: "latency"; readonly ms: number }
  /** The connection breaks before anything happened. */
  | { readonly kind: "dropBefore" }
  /** The connection breaks after the request took effect. */
  | { readonly kind: "dropAfter" }
  | { readonly kind: "conflict" }
  /** Lists and gets answer as of an earlier resourceVersion. */
  | { readonly kind: "stale"; readonly resourceVersion: number }
  | { readonly kind: "tooMany"; readonly retryAfterSeconds: number }
  | { readonly kind: "error" };

export interface Fault {
  readonly effect: Effect;
  readonly verb?: Verb;
  /** "<plural>.<group>". */
  readonly resource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
  /** How often it strikes; without end when left out. */
  readonly times?: number;
  /** 0 to 1; always when left out. */
  readonly probability?: number;
}

export interface Faults {
  /** The answer withdraws the fault. */
  inject(fault: Fault): () => void;
  clear(): void;
  /** How often a fault has struck so far. */
  struck(): number;
  /** Ends all open watches, or those of one resource, without a word; answers how many. */
  cutWatches(resource?: string): number;
  /** For the server: the effects that strike this request. */
  strike(ask: Ask): readonly Effect[];
  /** For the server: makes an open watch known; the answer forgets it. */
  watching(resource: string, cut: () => void): () => void;
}

interface Armed {
  readonly fault: Fault;
  left: number;
}

/** The same seed gives the same dice. */
export function createFaults(seed = 1): Faults {
  const armed = new Set<Armed>();
  const watches = new Set<{ resource: string; cut: () => void }>();
  const random = dice(seed);
  let count = 0;

  const strikes = (one: Armed, ask: Ask): boolean => {
    const { fault } = one;
    const isMeant = (["verb", "resource", "namespace", "name", "subresource"] as const).every(
      (field) => fault[field] === undefined || fault[field] === ask[field],
    );
    if (!isMeant || one.left <= 0) return false;
    if (fault.probability !== undefined && random() >= fault.probability) return false;
    one.left -= 1;
    count += 1;
    return true;
  };

  return {
    inject: (fault) => {
      const one = { fault, left: fault.times ?? Infinity };
      armed.add(one);
      return () => void armed.delete(one);
    },
    clear: () => armed.clear(),
    struck: () => count,
    cutWatches: (resource) => {
      const cut = [...watches].filter((watch) => resource === undefined || watch.resource === resource);
      for (const watch of cut) watch.cut();
      return cut.length;
    },
    strike: (ask) => [...armed].filter((one) => strikes(one, ask)).map(({ fault }) => fault.effect),
    watching: (resource, cut) => {
      const watch = { resource, cut };
      watches.add(watch);
      return () => void watches.delete(watch);
    },
  };
}

/** mulberry32: small, seeded, even enough. */
function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
