/** What a real Kubernetes 1.36 answered, kept beside the suite: `node recording.ts` plays it again on the cluster in KUBECONFIG and writes it anew. */
import { readFileSync, writeFileSync } from "node:fs";
import type { Kubeconfig } from "./client.ts";
import { BROKE_OFF } from "./stage.ts";
import { record, type Recording } from "./suite.ts";

const FILE = new URL("expected.json", import.meta.url);

export function readRecording(): Recording {
  return JSON.parse(readFileSync(FILE, "utf8")) as Recording;
}

/** The cluster that KUBECONFIG names, as JSON. */
export function readKubeconfig(path: string): Kubeconfig {
  return JSON.parse(readFileSync(path, "utf8")) as Kubeconfig;
}

if (import.meta.main) {
  const recording = await record(readKubeconfig(process.env["KUBECONFIG"] ?? ""));
  const broken = Object.keys(recording).filter((name) => recording[name]?.some(({ step }) => step === BROKE_OFF));
  if (broken.length > 0) throw new Error(`nothing is written, as these broke off: ${broken.join("; ")}`);
  writeFileSync(FILE, `${JSON.stringify(recording, undefined, 2)}\n`);
}
