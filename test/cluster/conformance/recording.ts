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

const WIDTH = 120;

const lineOf = (value: unknown): string => JSON.stringify(value, undefined, 1).replace(/\n\s*/g, " ");

/** JSON with a step a line where it fits, else with its name in the first of its lines. */
function write(value: unknown, indent = "", before = 0): string {
  if (typeof value !== "object" || value === null || fits(value, indent.length + before)) return lineOf(value);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const parts = Object.entries(value).map(([key, part]): [string, unknown] => [
    Array.isArray(value) ? "" : `${JSON.stringify(key)}: `,
    part,
  ]);
  const inner = `${indent}  `;
  const head = parts.map(([key, part], i) => (i + 1 < parts.length ? `${key}${lineOf(part)}, ` : key)).join("");
  const last = parts.at(-1)?.[1];
  const isHead = parts.length <= (Array.isArray(value) ? 1 : 3) && indent.length + head.length < WIDTH - 10;
  if (isHead && typeof last === "object" && !fits(last, inner.length + head.length))
    return `${open} ${head}${write(last, indent, head.length)} ${close}`;
  return `${open}\n${parts.map(([key, part]) => `${inner}${key}${write(part, inner, key.length)}`).join(",\n")}\n${indent}${close}`;
}

const fits = (value: unknown, column: number): boolean => column + lineOf(value).length < WIDTH;

if (import.meta.main) {
  const recording = await record(readKubeconfig(process.env["KUBECONFIG"] ?? ""));
  const failed = Object.keys(recording).filter((name) => recording[name]?.some(({ step }) => step === FAILED_STEP));
  if (failed.length > 0) throw new Error(`nothing is recorded, as these scenarios failed: ${failed.join("; ")}`);
  writeFileSync(FILE, `${write(recording)}\n`);
}
