/** Runs kubectl as the administrator of KUBECONFIG. */
import { execFile } from "node:child_process";

export const KUBECTL = process.env["KUBECTL"] ?? "kubectl";

export interface KubectlResult {
  readonly code: number;
  /** All that it wrote, stdout first. */
  readonly text: string;
}

/** Resolves with the result, of a failure too; `input` is written to its stdin as JSON. */
export function runKubectl(args: readonly string[], input?: object): Promise<KubectlResult> {
  return new Promise((resolve) => {
    const child = execFile(KUBECTL, args, { maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === "number" ? error.code : error ? -1 : 0, text: stdout + stderr }),
    );
    child.stdin?.on("error", () => {}); // it may end without reading
    child.stdin?.end(input === undefined ? "" : JSON.stringify(input));
  });
}
