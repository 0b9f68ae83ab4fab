/**
 * The responses of a real Kubernetes 1.36. `node recording.ts` runs the suite on the cluster of KUBECONFIG
 * and records them again.
 */
import { readFileSync, writeFileSync } from "node:fs";
import type { Kubeconfig } from "./client.ts";
import { FAILED_STEP } from "./stage.ts";
import { record, type Recording } from "./suite.ts";

const FILE = new URL("expected.json", import.meta.url);

export function readRecording(): Recording {
  return JSON.parse(readFileSync(FILE, "utf8")) as Recording;
}

/** Reads a kubeconfig in JSON. */
export function readKubeconfig(path: string): Kubeconfig {
  return JSON.parse(readFileSync(path, "utf8")) as Kubeconfig;
}

if (import.meta.main) {
  const recording = await record(readKubeconfig(process.env["KUBECONFIG"] ?? ""));
  const failed = Object.keys(recording).filter((name) => recording[name]?.some(({ step }) => step === FAILED_STEP));
  if (failed.length > 0) throw new Error(`nothing is recorded, as these scenarios failed: ${failed.join("; ")}`);
  writeFileSync(FILE, `${JSON.stringify(recording, undefined, 2)}\n`);
}
