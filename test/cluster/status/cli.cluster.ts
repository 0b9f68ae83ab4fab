/** The built CLI under the roles of its users, on a real control plane. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before } from "node:test";
import { parseAllDocuments } from "yaml";
import { bundle } from "../../../infra/build.ts";
import { createAccount, type Rule } from "../stage/access.ts";
import { connectAdmin } from "../stage/client.ts";
import { define } from "../stage/definitions.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const ROOT = join(import.meta.dirname, "../../..");
const ZONES = ["zone-a", "zone-b"].map((name) => ({ group: "cache", name, replicas: 2 }));

before(async () => {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  await define(admin, "phasedrollouts", "rolloutgates", "rolloutgroups", "zoneawarepoddisruptionbudgets");
  admin.close();
});

interface Ended {
  readonly code: number;
  readonly text: string;
}

type Run = (...args: readonly string[]) => Promise<Ended>;

interface Role {
  readonly metadata: { readonly name: string };
  readonly rules: readonly Rule[];
}

/** A ServiceAccount with the rules of the role in the namespace, as a RoleBinding of the ClusterRole gives them. */
async function actAs(stage: Stage, role: string): Promise<Run> {
  const manifests = parseAllDocuments(readFileSync(join(ROOT, "infra/manifests/cli/rbac.yaml"), "utf8"));
  const { rules } =
    manifests.map((one) => one.toJS() as Role).find(({ metadata }) => metadata.name === role) ?? assert.fail(role);
  const kubeconfig = await createAccount(stage, role, rules);
  const main = join(stage.folder, "dist/cli/main.js");
  return (...args) =>
    new Promise((resolve) => {
      const child = spawn(process.execPath, [main, ...args, "-n", stage.namespace, "--kubeconfig", kubeconfig]);
      let text = "";
      child.stdout.on("data", (chunk) => (text += chunk));
      child.stderr.on("data", (chunk) => (text += chunk));
      child.on("close", (code) => resolve({ code: code ?? -1, text }));
    });
}

scenario("a viewer sees the rollout that an operator pauses, resumes and waits for", async (stage) => {
  await bundle({ "cli/main": "cli/main.ts" }, ROOT, join(stage.folder, "dist"));
  await writeFile(join(stage.folder, "package.json"), `{ "type": "module" }`);
  await stage.create(ZONES);
  const reconciler = stage.start({ RECONCILE_INTERVAL: "1s" });
  await reconciler.untilOutput(/"settled":1/);
  const viewer = await actAs(stage, "zonewise-viewer");
  const operator = await actAs(stage, "zonewise-operator");

  const settled = await viewer("status", "cache", "--watch", "--timeout", "2m");
  assert.equal(settled.code, 0, settled.text);
  assert.deepEqual(await viewer("plan", "cache"), { code: 0, text: "Nothing to do: all zones are up to date\n" });

  // Nothing that the role forgets is left out: PhasedRollouts, the installation's settings.
  const overview = await viewer("status", "--watch=false");
  assert.deepEqual([overview.code, /left out|may not/.test(overview.text)], [0, false], overview.text);
  const zone = await viewer("explain", "sts/zone-a");
  assert.deepEqual([zone.code, /left out|may not/.test(zone.text)], [0, false], zone.text);

  const refused = await viewer("pause", "cache");
  assert.equal(refused.code, 4);
  assert.match(refused.text, /may not patch statefulsets.apps in namespace/);

  const paused = await operator("pause", "cache");
  assert.equal(paused.code, 0, paused.text);
  await stage.setImage("app:2", ZONES);
  await reconciler.untilOutput(/ZonePaused/);
  // The StatefulSet controller may take a moment to observe the template.
  await until("the hold is explained", async () =>
    (await viewer("explain", "group/cache")).text.includes("ZonePaused"),
  );
  const explained = await viewer("explain", "group/cache");
  assert.equal(explained.code, 1, explained.text);
  assert.match(explained.text, /ZonePaused/);
  assert.match((await operator("explain", "pod/zone-a-0")).text, /not judged {2}NoBudget/);
  // Of the whole cluster, a role of one namespace shows nothing.
  assert.doesNotMatch((await operator("doctor")).text, /you: .* may not (?!.*in the whole cluster)/);
  // Events are written beside the ticks.
  await until("the hold is among the events", async () => (await stage.events("ZonePaused")).length > 0);

  assert.equal((await operator("resume", "cache")).code, 0);
  const done = await viewer("status", "cache", "--watch", "--timeout", "4m");
  assert.equal(done.code, 0, done.text);
  await stage.done("app:2", ZONES);

  const left = await operator("undo", "cache");
  assert.equal(left.code, 0, left.text);
  assert.match(left.text, /zone-a +finished +app:2 /);
  for (const { name } of ZONES) {
    const undone = await operator("undo", "cache", "--zone", name, "--to-revision", "1", "--yes");
    assert.equal(undone.code, 0, undone.text);
  }
  assert.equal((await viewer("status", "cache", "--watch", "--timeout", "4m")).code, 0);
  await stage.done("app:1", ZONES);
  assert.equal(await reconciler.end(), 0);
});
