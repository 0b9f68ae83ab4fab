/** The processes under test, each a child process. */
import { join } from "node:path";
import { type ChildProcess, spawn } from "node:child_process";
import { entryFile } from "../../entries.ts";
import { COMPILED } from "../../functions/process.ts";
import { SOME_TIME_MS } from "./until.ts";

export interface TestProcess {
  /** Everything it has written so far, stdout and stderr. */
  readonly output: () => string;
  /**
   * Resolves once `pattern` matches the output from its character `from` on; rejects if the process ends
   * without it, or after some minutes.
   */
  readonly untilOutput: (pattern: RegExp, from?: number) => Promise<void>;
  /** SIGKILL: nothing is released, nothing is flushed. */
  readonly kill: () => Promise<void>;
  /** SIGTERM: it ends after the current step. Resolves with the exit code. */
  readonly end: () => Promise<number | null>;
  /** The exit code, null after a SIGKILL. */
  readonly exited: Promise<number | null>;
}

export function startReconciler(env: Readonly<Record<string, string>>): TestProcess {
  return startEntry("reconciler/run/main.ts", env);
}

/** Starts one of the project's entry points, by the path of its source from the root. */
export function startEntry(source: string, env: Readonly<Record<string, string>>): TestProcess {
  const child: ChildProcess = spawn(process.execPath, [entryFile(source)], {
    // Nothing else of this environment reaches it.
    env: { ...COMPILED, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const waiting = new Set<() => void>();
  const collect = (chunk: Buffer): void => {
    output += chunk.toString();
    for (const check of waiting) check();
  };
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));

  const signal = (name: "SIGKILL" | "SIGTERM"): Promise<number | null> => {
    child.kill(name);
    return exited;
  };
  return {
    output: () => output,
    untilOutput: (pattern, from = 0) =>
      new Promise((resolve, reject) => {
        const fail = (what: string): void => {
          waiting.delete(check);
          clearTimeout(timer);
          reject(new Error(`${what} before its output matched ${pattern}:\n${output}`));
        };
        const timer = setTimeout(() => fail(`${SOME_TIME_MS} ms went by`), SOME_TIME_MS);
        const check = (): void => {
          if (!pattern.test(output.slice(from))) return;
          waiting.delete(check);
          clearTimeout(timer);
          resolve();
        };
        waiting.add(check);
        check();
        void exited.then((code) => fail(`it exited with ${code}`));
      }),
    kill: async () => void (await signal("SIGKILL")),
    end: () => signal("SIGTERM"),
    exited,
  };
}

interface ServerFiles {
  readonly namespace: string;
  /** Holds `kubeconfig`, `tls.crt` and `tls.key`. */
  readonly folder: string;
  readonly tlsPort: number;
  readonly port: number;
}

/** The variables of a server of ours on loopback. */
export const serverVariables = ({
  namespace,
  folder,
  tlsPort,
  port,
}: ServerFiles): Readonly<Record<string, string>> => ({
  KUBERNETES_NAMESPACE: namespace,
  KUBECONFIG: join(folder, "kubeconfig"),
  SERVER_TLS_CERT_FILE: join(folder, "tls.crt"),
  SERVER_TLS_KEY_FILE: join(folder, "tls.key"),
  SERVER_TLS_PORT: String(tlsPort),
  SERVER_PORT: String(port),
  SERVER_ADDRESS: "127.0.0.1",
  LOG_LEVEL: "error",
});
