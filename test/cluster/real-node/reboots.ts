/** What a reboot of the real node's host does to its kubelet and to the agent: both come back with another boot id. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { readResidentMb } from "../../bench/peak.ts";
import { until } from "../stage/until.ts";
import { runScript } from "./containers.ts";
import { runFolder } from "./find-node.ts";

/** The agent's process, as this machine sees it. */
function findAgent(): number | undefined {
  const isAgent = (pid: string): boolean => {
    try {
      return /^node\0.*dist\/reconciler\/agent\/main\.js/s.test(readFileSync(`/proc/${pid}/cmdline`, "utf8"));
    } catch {
      return false;
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && isAgent(name))
    .map(Number)[0];
}

/** MB (of 1024 kB) that the agent has resident. */
export const readResident = (): number => readResidentMb(findAgent() ?? 0);

/** The kubelet starts again; resolves once it reports the boot id of the host. */
export async function restartKubelet(bootId: string, readReported: () => Promise<string>): Promise<void> {
  const run = runFolder(process.env);
  writeFileSync(join(run, "node/boot-id"), `${bootId}\n`);
  await runScript("restart", ["real-kubelet"]);
  await until("the kubelet reports the boot", async () => (await readReported()) === bootId);
}

/** Ends the agent's pod as a reboot does, and gives the next one the boot id of the host. */
export async function restartAgent(bootId: string, deletePod: () => Promise<unknown>): Promise<void> {
  const before = findAgent();
  await deletePod();
  await until("another agent runs", () => ![undefined, before].includes(findAgent()));
  const id = "/proc/sys/kernel/random/boot_id";
  const script = `mount -t tmpfs boot /mnt && echo ${bootId} > /mnt/id && mount --bind /mnt/id ${id}`;
  const enter = (...command: string[]) =>
    promisify(execFile)("nsenter", ["--target", String(findAgent()), "--mount", ...command]);
  // The process is there before its container is set up.
  await until("the agent has the boot id", async () => {
    const { stdout } = await enter("cat", id);
    if (stdout.trim() === bootId) return true;
    await enter("sh", "-c", script);
    return false;
  });
}
