/**
 * What code takes from Node.js without an argument: random numbers come from the seed, and a real timer is an error, as
 * nothing in the world may depend on the machine's time.
 */
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import type { Draw } from "./draw.ts";

/** Puts the seed in place of chance for the whole process; returns a function that takes it back. */
export function seedPlatform(draw: Draw): () => void {
  const { random } = Math;
  const { randomUUID } = crypto;
  const { setTimeout, setInterval } = globalThis;
  Math.random = () => draw.fraction();
  crypto.randomUUID = () => {
    const hex = Array.from({ length: 8 }, () => draw.below(0x10000).toString(16).padStart(4, "0")).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  const refuse = (): never => {
    throw new Error("a real timer in a simulated world: it must be the machine's");
  };
  Object.assign(globalThis, { setTimeout: refuse, setInterval: refuse });
  syncBuiltinESMExports();
  return () => {
    Math.random = random;
    crypto.randomUUID = randomUUID;
    Object.assign(globalThis, { setTimeout, setInterval });
    syncBuiltinESMExports();
  };
}
