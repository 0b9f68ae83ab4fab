/** The original's binary, or another server with its flags and paths. */
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { certify } from "../certify.ts";
import { ORIGINAL_FLAGS, variableOf } from "../docs/reference/flags.ts";
import { freePort } from "../loopback.ts";
import { NAME } from "./review-load.ts";
import { placeOf, type Program } from "./review-server.ts";

/** The path of its eviction webhook. */
export const EVICTION_PATH = process.env["ORIGINAL_EVICTION_PATH"] ?? "/admission/pod-eviction";

/** The same for both: no limit of requests that the other has not, and few log lines. */
const SETTINGS: Readonly<Record<string, string>> = {
  SERVER_TLS_ENABLED: "true",
  SERVER_TLS_SELF_SIGNED_CERT_ENABLED: "false",
  WEBHOOKS_UPDATE_CA_BUNDLE: "false",
  KUBERNETES_CLIENT_QPS: "100000",
  KUBERNETES_CLIENT_BURST: "100000",
  LOG_LEVEL: "warn",
};

/**
 * The program of ORIGINAL, with more flags from ORIGINAL_FLAGS (separated by spaces), which win. Throws if ORIGINAL is
 * not set, or names no file that can be executed.
 */
export function readOriginal({ ORIGINAL: command, ORIGINAL_FLAGS: more = "" }: NodeJS.ProcessEnv): Program {
  if (!command)
    throw new Error(
      "ORIGINAL is not set: it is the path of the original's binary, as in ORIGINAL=/path npm run bench -- compare",
    );
  try {
    accessSync(command, constants.X_OK);
  } catch (cause) {
    throw new Error(`ORIGINAL=${command} is no file that can be executed`, { cause });
  }
  const added = more.split(" ").filter((flag) => flag !== "");
  return { command, args: (variables) => [...flagsOf({ ...variables, ...SETTINGS }), ...added] };
}

/** The flag of each variable: it has the same words. Throws for a variable without one. */
function flagsOf(variables: Readonly<Record<string, string>>): string[] {
  const flags = new Map(ORIGINAL_FLAGS.map(([flag]) => [variableOf(flag), flag]));
  return Object.entries(variables).map(([name, value]) => {
    const flag = flags.get(name);
    if (flag === undefined) throw new Error(`no flag has the words of ${name}`);
    return `-${flag}=${value}`;
  });
}

interface DaemonOptions {
  readonly namespace: string;
  /** The text of a kubeconfig. */
  readonly kubeconfig: string;
  /** A directory for its files. */
  readonly scratch: string;
}

/** Starts the program of ORIGINAL as a daemon, with its default intervals. */
export async function startDaemon({ namespace, kubeconfig, scratch }: DaemonOptions): Promise<ChildProcess> {
  const { command, args } = readOriginal(process.env);
  const { certPem, keyPem } = await certify(NAME);
  const files = { kubeconfig, crt: certPem, key: keyPem };
  const path = (name: keyof typeof files): string => join(scratch, `original-${namespace}.${name}`);
  for (const [name, text] of Object.entries(files)) await writeFile(path(name as keyof typeof files), text);
  const variables = {
    KUBERNETES_NAMESPACE: namespace,
    ...placeOf(path("kubeconfig"), kubeconfig),
    SERVER_TLS_CERT_FILE: path("crt"),
    SERVER_TLS_KEY_FILE: path("key"),
    SERVER_TLS_PORT: String(await freePort()),
    SERVER_PORT: String(await freePort()),
  };
  return spawn(command, args(variables), { stdio: ["ignore", "ignore", "inherit"] });
}
