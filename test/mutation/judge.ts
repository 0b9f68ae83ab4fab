/**
 * Judges one mutation in a copy of the tree.
 *
 *   text found once? -> mutate -> compiles? -> run its tests --one fails--> killed
 *                                                            --all pass--> survived
 *
 * Other tests do not count: one that fails for a reason of its own would kill every mutation.
 */
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { WHOLE } from "../runs.ts";
import { mutate, type Mutation } from "./mutation.ts";

type MutationResult =
  /** `by` is the first test that failed. */
  | { readonly state: "killed"; readonly by: string }
  /** None of its tests noticed. */
  | { readonly state: "survived" }
  /** The text is not found exactly once: the table is out of date. */
  | { readonly state: "not found" }
  /** It does not compile, which says nothing about the tests. */
  | { readonly state: "invalid"; readonly message: string };

/** Judges the mutation in the tree at `path`, and leaves the tree as it was. */
export async function judge(path: string, mutation: Mutation): Promise<MutationResult> {
  const file = join(path, mutation.file);
  const original = await readFile(file, "utf8");
  const mutated = mutate(original, mutation);
  if (mutated === undefined) return { state: "not found" };
  await writeFile(file, mutated);
  try {
    const problem = await compile(path);
    if (problem !== undefined) return { state: "invalid", message: problem };
    const by = await findFailure(path, mutation.tests);
    return by === undefined ? { state: "survived" } : { state: "killed", by };
  } finally {
    await writeFile(file, original);
  }
}

/** Milliseconds that a test file may take; a mutation may make one hang. */
const MAX_TEST_MS = 120_000;
/** Milliseconds for all of them: Node.js cannot end a test file that spins and handles SIGTERM. */
const MAX_RUN_MS = 600_000;

/**
 * The name of the first test that fails, or undefined if all pass. The others are ended then: what a mutation breaks
 * may never end by itself.
 */
export async function findFailure(path: string, tests: readonly string[]): Promise<string | undefined> {
  const options = ["--test", "--test-reporter=tap", "--test-concurrency=1", `--test-timeout=${MAX_TEST_MS}`];
  const { code, output } = await execute(path, [...options, ...tests], FAILED);
  return code === 0 ? undefined : (FAILED.exec(output)?.groups?.["name"] ?? output.slice(-500));
}

const FAILED = /^\s*not ok \d+ - (?<name>.*)\n/m;

/** Only what may be mutated, and of that only what a mutation concerns. It may leave names unused. */
const CONFIG = {
  extends: "./tsconfig.json",
  compilerOptions: {
    noUnusedLocals: false,
    noUnusedParameters: false,
    incremental: true,
    tsBuildInfoFile: "./.mutated.tsbuildinfo",
  },
  include: ["cli", "functions", "reconciler", "infra"],
};

/** The first error of the compiler. */
async function compile(path: string): Promise<string | undefined> {
  const config = join(path, "tsconfig.mutated.json");
  await writeFile(config, JSON.stringify(CONFIG));
  const { code, output } = await execute(path, ["node_modules/typescript/bin/tsc", "-p", config]);
  return code === 0 ? undefined : output.split("\n", 1)[0];
}

interface Execution {
  /** Null if it was ended. */
  readonly code: number | null;
  readonly output: string;
}

/** Runs node in a process group of its own, and ends the whole group once the output matches `enough`. */
function execute(cwd: string, args: readonly string[], enough?: RegExp): Promise<Execution> {
  // A test run inside a test run would do nothing but report to the outer one. Rare cases need all counts.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, args, {
    cwd,
    // What one run has compiled, the next one need not.
    env: { NODE_COMPILE_CACHE: join(cwd, ".compile-cache"), ...env, [WHOLE]: "1" },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let output = "";
  let isEnded = false;
  const endAll = (): void => {
    if (isEnded || child.pid === undefined) return;
    isEnded = true;
    process.kill(-child.pid, "SIGKILL");
  };
  const keep = (text: string): void => {
    output += text;
    if (enough?.test(output)) endAll();
  };
  const timer = setTimeout(endAll, MAX_RUN_MS);
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", keep);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    });
  });
}
