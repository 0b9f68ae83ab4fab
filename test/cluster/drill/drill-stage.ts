/** `npm run drill` as a user runs it: a process of its own, under the role of docs/operate/drill.md. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { createAccount, type Rule } from "../stage/access.ts";
import type { Admin } from "../stage/client.ts";
import type { Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const ROOT = join(import.meta.dirname, "../../..");

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Running {
  readonly ended: Promise<Ended>;
  readonly kill: () => void;
  readonly err: () => string;
}

export type Start = (...args: readonly string[]) => Running;

function readDrillRules(): readonly Rule[] {
  const page = readFileSync(join(ROOT, "docs/operate/drill.md"), "utf8");
  const [, text = ""] = /^```yaml\n([^]*?)^```$/m.exec(page) ?? [];
  return (parse(text) as { readonly rules: readonly Rule[] }).rules;
}

/** A user with that role in the namespace. */
export async function becomeUser(stage: Stage): Promise<Start> {
  const kubeconfig = await createAccount(stage, "drill", readDrillRules());
  return (...args) => {
    const child = spawn(process.execPath, ["test/drill/main.ts", "--kubeconfig", kubeconfig, ...args], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [out, err] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
    const ended = new Promise<Ended>((resolve) => child.on("close", (code) => resolve({ code, out, err })));
    return { ended, kill: () => void child.kill("SIGKILL"), err: () => err };
  };
}

interface Listed {
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}

/** What drills have made and is there, as `plural/name`. */
export async function listMade({ call }: Pick<Admin, "call">, namespace: string): Promise<string[]> {
  const selector = "labelSelector=zonewise%2Fdrill";
  const paths = [
    [`/api/v1/namespaces/${namespace}/pods`, selector],
    [`/apis/apps/v1/namespaces/${namespace}/statefulsets`, selector],
    [`/apis/apps/v1/namespaces/${namespace}/controllerrevisions`, ""],
    [`/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`, selector],
    [`/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgroups`, ""],
    [`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`, ""],
  ] as const;
  const found = await Promise.all(
    paths.map(async ([path, query]) =>
      (await call<Listed>("GET", `${path}?${query}`)).items.map((one) => one.metadata.name),
    ),
  );
  const isOurs = (name: string): boolean => name.startsWith("zonewise-d");
  return found.flatMap((names, i) => names.filter(isOurs).map((name) => `${paths[i]?.[0].split("/").at(-1)}/${name}`));
}

/** Garbage collection takes a moment. */
export const untilNothingIsLeft = async (stage: Stage): Promise<void> =>
  await until("nothing of a drill is left", async () => (await listMade(stage, stage.namespace)).length === 0);
