/** Runs the CLI in this process against the embedded cluster. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { runCli } from "../../cli/run.ts";
import type { Stage } from "../reconciler/stage.ts";

export interface Ended {
  readonly code: number;
  readonly out: string;
  /** Messages that are no result. */
  readonly err: string;
}

export interface Terminal {
  /** Runs `zonewise` with these arguments, separated by blanks. */
  readonly run: (line: string) => Promise<Ended>;
  /** The same with `-o json`. */
  readonly json: <T>(line: string) => Promise<T>;
}

export interface TerminalOptions {
  readonly isTty?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly size?: { readonly columns: number; readonly rows: number };
  /** A Ctrl-C. */
  readonly signal?: AbortSignal;
  /** Called with each output. */
  readonly onWrite?: (text: string) => void;
}

export async function openTerminal(
  t: TestContext,
  stage: Stage,
  { isTty = false, env = {}, size, signal = t.signal, onWrite }: TerminalOptions = {},
): Promise<Terminal> {
  const folder = await mkdtemp(join(tmpdir(), "zonewise-cli-"));
  t.after(() => rm(folder, { recursive: true }));
  const KUBECONFIG = join(folder, "kubeconfig");
  await stage.emulator.writeKubeconfig(KUBECONFIG);

  async function run(line: string): Promise<Ended> {
    let [out, err] = ["", ""];
    const code = await runCli(
      line.split(" ").filter((word) => word !== ""),
      {
        write: (text) => {
          out += text;
          onWrite?.(text);
        },
        warn: (text) => void (err += text),
        isTty,
        size: () => size,
        env: { KUBECONFIG, ...env },
        clock: stage.clock,
        signal,
      },
    );
    return { code, out, err };
  }
  return { run, json: async <T>(line: string) => JSON.parse((await run(`${line} -o json`)).out) as T };
}
