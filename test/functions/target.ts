/** A target in the real functions-framework process. */
import { join } from "node:path";
import type { TestContext } from "node:test";
import { entryFile } from "../entries.ts";
import { freePort } from "../loopback.ts";
import { type Running, run } from "./process.ts";

const root = join(import.meta.dirname, "../..");

export interface Target extends Running {
  readonly port: number;
  readonly url: string;
}

/** It `says(SERVING)` once it listens. */
export async function startTarget(
  t: TestContext,
  target: string,
  env: Readonly<Record<string, string>>,
  ...flags: readonly string[]
): Promise<Target> {
  const port = await freePort();
  const args = [`--target=${target}`, `--port=${port}`, `--source=${entryFile("functions/index.ts")}`, ...flags];
  const running = run(t, join(root, "node_modules/.bin/functions-framework"), args, {
    KUBERNETES_NAMESPACE: "default",
    ...env,
  });
  return { ...running, port, url: `http://127.0.0.1:${port}` };
}

export const SERVING = /Serving function/;
