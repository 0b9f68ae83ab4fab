/** A process under test: its log lines and its exit code. It never outlives the test. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";

const { NODE_COMPILE_CACHE } = process.env;
/** What another process has compiled, a new one need not: half of its start. */
export const COMPILED: Readonly<Record<string, string>> =
  NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };

export interface Running {
  readonly child: ChildProcess;
  readonly lines: readonly string[];
  /** The first line that matches, now or later; rejects when the process ends before. */
  says(pattern: RegExp): Promise<string>;
  /** Its exit code. */
  readonly exited: Promise<number | null>;
}

export function run(
  t: TestContext,
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd?: string,
): Running {
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env["PATH"], ...COMPILED, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  const keepLine = (line: string): void => {
    lines.push(line);
    for (const look of waiting) look();
  };
  for (const stream of [child.stdout, child.stderr]) createInterface(stream).on("line", keepLine);
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  t.after(() => (child.kill("SIGKILL"), exited));
  return {
    child,
    lines,
    exited,
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = lines.find((line) => pattern.test(line));
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
        void exited.then(() => reject(new Error(`it ended without ${pattern}:\n${lines.join("\n")}`)));
      }),
  };
}
