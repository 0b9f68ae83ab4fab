/** Finds the real node that `test/plane/real-node up` added, and says what is missing where there is none. */
import { existsSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

interface Machine {
  readonly platform: string;
  /** Undefined where the system has no user ids. */
  readonly uid: number | undefined;
  /** Whether a command of this name is in PATH. */
  readonly hasCommand: (name: string) => boolean;
  /** Whether the kubelet of a real node runs beside the control plane of KUBECONFIG. */
  readonly nodeRuns: boolean;
}

const COMMANDS = ["bash", "containerd", "ctr", "runc", "buildah"];

/** One sentence on what keeps the tests from running here; undefined if nothing does. */
export function findMissing({ platform, uid, hasCommand, nodeRuns }: Machine): string | undefined {
  if (platform !== "linux") return `containers need Linux, this is ${platform}`;
  if (uid !== 0) return "containers need root";
  const missing = COMMANDS.filter((name) => !hasCommand(name));
  if (missing.length > 0) return `${missing.join(", ")} missing: \`test/plane/real-node up\` installs what it needs`;
  return nodeRuns
    ? undefined
    : "KUBECONFIG names a cluster without a real node: `test/plane/real-node up` adds one to the plane of test/plane";
}

/** The folder with the plane's state; `real-node up` and `up` keep the kubeconfig in it. */
export const runFolder = (env: NodeJS.ProcessEnv): string => dirname(env["KUBECONFIG"] ?? "");

export function readMachine(env: NodeJS.ProcessEnv): Machine {
  const folders = (env["PATH"] ?? "").split(delimiter);
  return {
    platform: process.platform,
    uid: process.getuid?.(),
    hasCommand: (name) => folders.some((folder) => existsSync(join(folder, name))),
    nodeRuns: isAlive(runFolder(env), "real-kubelet"),
  };
}

/** As test/plane/settings.sh judges it: the process's directory tells it from a stranger with its id. */
function isAlive(run: string, name: string): boolean {
  try {
    const pid = readFileSync(join(run, `${name}.pid`), "utf8").trim();
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(run);
  } catch {
    return false;
  }
}
