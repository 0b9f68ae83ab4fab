/** Runs the CLI in this process against the embedded cluster. */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Connection, type ConnectionSource, loadConnection } from "../../infra/kubernetes/connection.ts";
import { runCli } from "../../cli/run.ts";
import { formatTotals, TOTALS } from "../../infra/metrics/totals.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import type { Stage } from "../reconciler/stage.ts";

interface Ended {
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

interface TerminalOptions {
  readonly isTty?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly size?: { readonly columns: number; readonly rows: number };
  /** A Ctrl-C. */
  readonly signal?: AbortSignal;
  /** What the person at the terminal answers. */
  readonly confirm?: (question: string) => Promise<boolean>;
  /** False where a test writes the reconciler's Lease itself; otherwise it has just ticked, whenever a command runs. */
  readonly ticks?: boolean;
  /** Called with each output. */
  readonly onWrite?: (text: string) => void;
}

interface LeaseTraits {
  /** "" for a Lease that nobody holds. */
  readonly holder?: string;
  /** How long ago the holder took and renewed it, and the last tick began; undefined for none. Milliseconds. */
  readonly heldMs?: number;
  readonly renewedMs?: number;
  readonly tickedMs?: number | undefined;
  readonly name?: string;
  readonly namespace?: string;
}

/** The reconciler's Lease as a run leaves it; by default of one that has just ticked and holds it. */
export function writeLease(
  { emulator: { store }, clock }: { readonly emulator: Stage["emulator"]; readonly clock: Pick<Stage["clock"], "now"> },
  traits: LeaseTraits,
): void {
  const { holder = "zonewise-reconciler-1-abcde_1", heldMs = 0, renewedMs = 0, tickedMs } = { tickedMs: 0, ...traits };
  const { name = "zonewise-reconciler", namespace = "default" } = traits;
  const ago = (ms: number): string => new Date(clock.now() - ms).toISOString().replace("Z", "000Z");
  const lastTick = tickedMs === undefined ? {} : { lastTick: formatTimestamp(clock.now() - tickedMs) };
  const annotations = { [TOTALS]: formatTotals({ passes: 1, ...lastTick, series: new Map() }) };
  const spec = {
    holderIdentity: holder,
    acquireTime: ago(heldMs),
    renewTime: ago(renewedMs),
    leaseDurationSeconds: 15,
  };
  const found = store.get("leases.coordination.k8s.io", namespace, name);
  const metadata = { ...found?.metadata, name, namespace, annotations };
  const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec };
  if (found)
    store.update("leases.coordination.k8s.io", { ...found, ...lease, metadata: { ...found.metadata, annotations } });
  else store.create("leases.coordination.k8s.io", lease);
}

/** Milliseconds that a test may let pass while a command waits. */
const AHEAD_MS = 600_000;

export async function openTerminal(
  t: TestContext,
  stage: Stage,
  { isTty = false, env = {}, size, signal = t.signal, ticks = true, onWrite, confirm }: TerminalOptions = {},
): Promise<Terminal> {
  const KUBECONFIG = join(tmpdir(), `zonewise-cli-${randomUUID()}`);
  t.after(() => rm(KUBECONFIG, { force: true }));

  /** Without a socket; other contexts and files are read as they are on a user's machine. */
  async function connect(source: ConnectionSource): Promise<Connection> {
    const { kubeconfig, context } = source;
    if (kubeconfig === KUBECONFIG && context === undefined) return stage.emulator.connection();
    await stage.emulator.writeKubeconfig(KUBECONFIG);
    return await loadConnection(source);
  }

  async function run(line: string): Promise<Ended> {
    let [out, err] = ["", ""];
    if (ticks) writeLease(stage, { tickedMs: -AHEAD_MS, renewedMs: -AHEAD_MS });
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
        ...(confirm && { confirm }),
        env: { KUBECONFIG, ...env },
        clock: stage.clock,
        signal,
        connect,
      },
    );
    return { code, out, err };
  }
  return { run, json: async <T>(line: string) => JSON.parse((await run(`${line} -o json`)).out) as T };
}
