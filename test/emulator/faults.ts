/** Trouble on demand: rules, tried in order against each request to a resource. */
import { hash } from "node:crypto";
import type { Ask } from "./request.ts";

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

const AIMED_BY = ["verb", "resource", "namespace", "name", "subresource"] as const;

/** Strikes the requests that have all the fields given. */
export interface Fault extends Partial<Pick<Ask, (typeof AIMED_BY)[number]>> {
  readonly effect: Effect;
  /** How often it strikes; without end when left out. */
  readonly times?: number;
  /** 0 to 1; always when left out. */
  readonly probability?: number;
}

export type Faults = ReturnType<typeof createFaults>;

/** The same seed gives the same dice. */
export function createFaults(seed = 1) {
  const armed = new Set<{ readonly fault: Fault; left: number }>();
  /** What cuts each open watch, and the resource that it is on. */
  const watches = new Map<() => void, string>();
  let struck = 0;
  let thrown = 0;
  /** 0 to 1: the hash of how many there were before. */
  const throwDice = (): number => hash("sha256", `${seed}:${thrown++}`, "buffer").readUInt32BE() / 2 ** 32;

  return {
    /** The answer withdraws the fault. */
    inject: (fault: Fault): (() => void) => {
      const one = { fault, left: fault.times ?? Infinity };
      armed.add(one);
      return () => void armed.delete(one);
    },
    clear: (): void => armed.clear(),
    /** How often a fault has struck so far. */
    struck: (): number => struck,
    /** Ends all open watches, or those of one resource, without a word; answers how many. */
    cutWatches: (resource?: string): number => {
      const meant = [...watches].filter(([, watched]) => resource === undefined || watched === resource);
      for (const [cut] of meant) cut();
      return meant.length;
    },
    /** For the server: the effects that strike this request. */
    strike: (ask: Ask): readonly Effect[] =>
      [...armed].flatMap((one) => {
        const { effect, probability, ...fault } = one.fault;
        const isMeant = AIMED_BY.every((field) => fault[field] === undefined || fault[field] === ask[field]);
        if (!isMeant || one.left <= 0 || (probability !== undefined && throwDice() >= probability)) return [];
        one.left -= 1;
        struck += 1;
        return [effect];
      }),
    /** For the server: makes an open watch known; the answer forgets it. */
    watching: (resource: string, cut: () => void): (() => void) => {
      watches.set(cut, resource);
      return () => void watches.delete(cut);
    },
  };
}
