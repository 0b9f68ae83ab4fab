/** Runs a measured script in a process of its own, with the image's arguments. */
import { type ChildProcess, execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { parse } from "yaml";

const DOCKERFILE = readFileSync(new URL("../../Dockerfile", import.meta.url), "utf8");

/** Node's arguments in the Dockerfile's ENTRYPOINT. */
export const NODE_ARGS = readEntrypoint(DOCKERFILE);

/** The Dockerfile's settings of malloc. */
export const MALLOC_ENV = Object.fromEntries(
  [...DOCKERFILE.matchAll(/\b(MALLOC_\w+)=(\d+)/g)].map(([, name, value]) => [name, value]),
);

/** Node's additional arguments in infra/manifests/functions, for the webhook server. */
export const SERVER_ARGS = readContainerArgs("functions/deployment.yaml");

interface Workload {
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: readonly { readonly args: readonly string[] }[] } };
  };
}

function readContainerArgs(file: string): readonly string[] {
  const { spec } = parse(readFileSync(new URL(`../../infra/manifests/${file}`, import.meta.url), "utf8")) as Workload;
  return (spec.template.spec.containers[0]?.args ?? []).slice(0, -1);
}

function readEntrypoint(dockerfile: string): readonly string[] {
  const [, json] = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile) ?? [];
  if (json === undefined) throw new Error("the Dockerfile has no ENTRYPOINT");
  return (JSON.parse(json) as string[]).slice(1);
}

const run = promisify(execFile);

/** Ends a process as a kubelet would. */
export async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}

/** Resolves with the script's output, parsed as JSON. */
export async function measure<T>(
  script: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<T> {
  const { stdout } = await run(process.execPath, [...NODE_ARGS, script, ...args], { env: { ...process.env, ...env } });
  return JSON.parse(stdout) as T;
}
