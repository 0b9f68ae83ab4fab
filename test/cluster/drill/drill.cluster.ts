/** `npm run drill` on a real control plane, against our processes, as its user runs it. */
import assert from "node:assert/strict";
import { before } from "node:test";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { parse } from "yaml";
import { type Rule, createAccount } from "../stage/access.ts";
import { type Admin, connectAdmin } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";
import { serveWebhooks } from "../stage/eviction-stage.ts";
import { enforcePolicies } from "../stage/manifests.ts";
import { type Stage, scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const ROOT = join(import.meta.dirname, "../../..");

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

interface Running {
  readonly ended: Promise<Ended>;
  readonly kill: () => void;
  readonly err: () => string;
}

type Start = (...args: readonly string[]) => Running;

function readDrillRules(): readonly Rule[] {
  const page = readFileSync(join(ROOT, "docs/operate/drill.md"), "utf8");
  const [, text = ""] = /^```yaml\n([^]*?)^```$/m.exec(page) ?? [];
  return (parse(text) as { readonly rules: readonly Rule[] }).rules;
}

/** A user with that role in the namespace. */
async function becomeUser(stage: Stage): Promise<Start> {
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
async function listMade({ call }: Pick<Admin, "call">, namespace: string): Promise<string[]> {
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
const untilNothingIsLeft = async (stage: Stage): Promise<void> =>
  await until("nothing of a drill is left", async () => (await listMade(stage, stage.namespace)).length === 0);

before(async () => {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  await define(admin, "rolloutgroups", "zoneawarepoddisruptionbudgets");
  admin.close();
});

/** Webhooks, policies and a reconciler. */
async function install(stage: Stage): Promise<void> {
  await serveWebhooks(stage, 2, { hooks: ["pod-eviction", "no-downscale"] });
  await enforcePolicies(stage, { prefix: "no-downscale." });
  stage.start({ RECONCILE_INTERVAL: "1s" });
}

scenario("in the namespace of an installation all holds; what a killed one has left goes", async (stage) => {
  await install(stage);
  const start = await becomeUser(stage);
  const place = ["-n", stage.namespace] as const;
  const [first, killed] = [start(...place), start(...place)];
  await until("the other one is under way", async () => killed.err().includes("drains:"));
  killed.kill();
  const ended = await first.ended;
  stage.diagnostic(ended.err + ended.out);
  assert.equal(ended.code, 0, ended.out + ended.err);
  const left = await listMade(stage, stage.namespace);
  assert.ok(left.length > 0, "the killed one has left something");
  const cleaned = await start(...place, "--clean").ended;
  assert.deepEqual([cleaned.code, cleaned.out], [0, "nothing is left\n"], cleaned.err);
  await untilNothingIsLeft(stage);
});
