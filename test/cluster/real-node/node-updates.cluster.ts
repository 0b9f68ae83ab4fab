/**
 * Node updates as containers on a real node, installed and removed by the commands of docs/guides/nodes.md: the
 * agent on the socket of a simulated host, with the token and the CA that the kubelet mounts, through the Service of
 * the node API. A reboot of the host ends the agent's pod, and gives the next one and the kubelet another boot id.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { randomBytes } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { readResidentMb } from "../../bench/peak.ts";
import { type Host, startHost } from "../../host/host-server.ts";
import type { Admin } from "../stage/client.ts";
import { runKubectl } from "../stage/kubectl.ts";
import { type Manifest, renderManifests } from "../stage/manifests.ts";
import { type OpenPlace, openPlace } from "../stage/place.ts";
import { until } from "../stage/until.ts";
import { buildImage, runScript } from "./containers.ts";
import { findMissing, readMachine, runFolder } from "./find-node.ts";
import { IMAGE, REAL, measured } from "./installation.ts";

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
const readResident = (): number => readResidentMb(findAgent() ?? 0);

/** The kubelet starts again; resolves once it reports the boot id of the host. */
async function restartKubelet(bootId: string, readReported: () => Promise<string>): Promise<void> {
  const run = runFolder(process.env);
  writeFileSync(join(run, "node/boot-id"), `${bootId}\n`);
  await runScript("restart", ["real-kubelet"]);
  await until("the kubelet reports the boot", async () => (await readReported()) === bootId);
}

/** Ends the agent's pod as a reboot does, and gives the next one the boot id of the host. */
async function restartAgent(bootId: string, deletePod: () => Promise<unknown>): Promise<void> {
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

const missing = findMissing(readMachine(process.env));
if (missing) console.log(`node updates on a real node are left out: ${missing}`);

const FOLDER = "infra/manifests/node-updates";
const HOME = "brupop-bottlerocket-aws";
const NODE = "real";
const LABEL = "bottlerocket.aws/updater-interface-version";
const [FROM, TO] = ["1.0.0", "1.1.0"];
const MAX_MS = 400_000;
/** MB (of 1024 kB, as in docs/reference/figures.md) that an agent may have resident. */
const MAX_RESIDENT = 62;

/**
 * The node API's own pods have no other node: the last of them is under its budget, and the policy lets the node reboot
 * with it.
 */
const POLICY = {
  apiVersion: "zonewise.dev/v1",
  kind: "NodeUpdatePolicy",
  metadata: { name: "default" },
  spec: { health: { minReadySeconds: 2, timeoutSeconds: 180 }, drain: { timeoutSeconds: 1, onTimeout: "Reboot" } },
};

let place: OpenPlace;
let admin: Admin;
let namespace: string;
let host: Host;
let parts: readonly (readonly Manifest[])[];
const figures: string[] = [];

async function kubectl(args: readonly string[], items?: readonly Manifest[]): Promise<string> {
  const { code, text } = await runKubectl(args, items && { apiVersion: "v1", kind: "List", items });
  assert.equal(code, 0, `kubectl ${args.join(" ")}: ${text}`);
  return text;
}

async function untilTrue(what: string, check: () => Promise<boolean>): Promise<void> {
  try {
    await until(what, check, MAX_MS);
  } catch (error) {
    const state = await Promise.all([
      runKubectl(["get", "brs,pods,nup", "-n", HOME, "-o", "yaml"]),
      runKubectl(["logs", "-n", HOME, "-l", "brupop.bottlerocket.aws/component", "--tail=20", "--prefix"]),
    ]);
    throw new Error(state.map(({ text }) => text.slice(0, 20_000)).join("\n"), { cause: error });
  }
}

interface Shadow {
  readonly spec: { readonly state: string };
  readonly status?: { readonly current_state: string; readonly current_version: string; readonly boot_id?: string };
}

const readShadow = (): Promise<Shadow> =>
  admin.call<Shadow>("GET", `/apis/brupop.bottlerocket.aws/v2/namespaces/${HOME}/bottlerocketshadows/brs-${NODE}`);

interface Node {
  readonly metadata: { readonly annotations?: object };
  readonly spec: { readonly unschedulable?: boolean };
  readonly status: { readonly nodeInfo: { readonly bootID: string } };
}

const readNode = (): Promise<Node> => admin.call<Node>("GET", `/api/v1/nodes/${NODE}`);

/** The overlay of test/plane/README.md, and the host's socket where the test has it. */
function forRealNode(text: string): string {
  const add = (path: string, value: unknown, op = "add"): string =>
    JSON.stringify(JSON.stringify([{ op, path, value }]));
  return `${text.replace("newName: zonewise, newTag: latest", `newName: ${IMAGE.replace(":", ", newTag: ")}`)}
patches:
  - {target: {kind: Deployment}, patch: ${add("/spec/template/spec/nodeSelector", REAL)}}
  - {target: {kind: CronJob}, patch: ${add("/spec/jobTemplate/spec/template/spec/nodeSelector", REAL)}}
  - {target: {kind: DaemonSet}, patch: ${add("/spec/template/spec/volumes/0/hostPath/path", host.socketPath, "replace")}}
`;
}

const runNow = (of: string, cronJob: string): Promise<string> =>
  kubectl(["create", "job", "-n", of, `--from=cronjob/${cronJob}`, `now-${randomBytes(3).toString("hex")}`]);

describe("node updates on a real node", { skip: missing ?? false }, () => {
  before(async () => {
    place = await openPlace();
    ({ admin, namespace } = place);
    host = await startHost({
      version: FROM,
      offers: TO,
      rebootMs: 1000,
      async onReboot(phase, { facts }) {
        if (phase === "down") return;
        await restartKubelet(facts().bootId, async () => (await readNode()).status.nodeInfo.bootID);
        const agents = [
          "delete",
          "pod",
          "-n",
          HOME,
          "-l",
          "brupop.bottlerocket.aws/component=agent",
          "--force",
          "--grace-period=0",
        ];
        await restartAgent(facts().bootId, () => kubectl(agents));
      },
    });
    // The plane has no node-lifecycle controller, which would remove it: DaemonSets leave out nodes with it.
    await runKubectl(["taint", "node", NODE, "node.kubernetes.io/not-ready:NoSchedule-"]);
    const setNamespace = (text: string): string => text.replace("namespace: zonewise", `namespace: ${namespace}`);
    const reconciler = await renderManifests(namespace, {
      edit: { "infra/manifests/complete/kustomization.yaml": forRealNode },
    });
    parts = [
      [
        ...(await renderManifests(namespace, { folder: `${FOLDER}/crds` })),
        ...(await renderManifests(namespace, { folder: "infra/manifests/crds" })),
      ],
      reconciler.filter(({ metadata }) => metadata.name === "zonewise-reconciler"),
      await renderManifests(namespace, {
        folder: FOLDER,
        edit: { [`${FOLDER}/reconciler.yaml`]: setNamespace, [`${FOLDER}/kustomization.yaml`]: forRealNode },
      }),
    ];
    figures.push(await measured("image built and given to the node", () => buildImage(IMAGE)));
    const install = async (): Promise<void> => {
      const [definitions = [], ...rest] = parts;
      await kubectl(["apply", "-f", "-"], definitions);
      await kubectl(["wait", "--for=condition=Established", "crd/nodeupdatepolicies.zonewise.dev", "--timeout=300s"]);
      await kubectl(["apply", "-f", "-"], [POLICY]);
      for (const items of rest) await kubectl(["apply", "-f", "-"], items);
      const [job = ""] = /job\S+/.exec(await runNow(HOME, "zonewise-node-api-certificates")) ?? [];
      await kubectl(["wait", "-n", HOME, job, "--for=condition=Complete", "--timeout=300s"]);
      // Pods that were there before the certificate get it only after a minute or more.
      await kubectl(["rollout", "restart", "-n", HOME, "deployment/brupop-apiserver"]);
      await kubectl(["rollout", "status", "-n", HOME, "deployment/brupop-apiserver", "--timeout=240s"]);
    };
    figures.push(await measured("from kubectl apply to a node API that is ready", install));
  });
  after(async () => {
    await runKubectl(["label", "node", NODE, `${LABEL}-`]);
    for (const items of parts.slice(1).toReversed())
      await runKubectl(["delete", "--ignore-not-found", "-f", "-"], { apiVersion: "v1", kind: "List", items });
    await runKubectl(["delete", "-k", `${FOLDER}/crds`, "--ignore-not-found"]);
    await runKubectl(["uncordon", NODE]);
    await place.close();
    await host.stop();
  });

  it("the agent reports its host by the node API, within its memory", async (t) => {
    for (const figure of figures) t.diagnostic(figure);
    t.diagnostic(
      await measured("from the label to a shadow with a status", async () => {
        await kubectl(["label", "node", NODE, `${LABEL}=2.0.0`]);
        await untilTrue("a status", async () => (await readShadow()).status?.current_version === FROM);
      }),
    );
    const [first = "{}"] = (await kubectl(["logs", "-n", HOME, "-l", "brupop.bottlerocket.aws/component=agent"])).split(
      "\n",
    );
    const [pod] = (
      await admin.call<{ items: { status: { containerStatuses: { state: { running: { startedAt: string } } }[] } }[] }>(
        "GET",
        `/api/v1/namespaces/${HOME}/pods?labelSelector=brupop.bottlerocket.aws/component=agent`,
      )
    ).items;
    t.diagnostic(
      `container started at ${pod?.status.containerStatuses[0]?.state.running.startedAt}, first line ${first}`,
    );
    t.diagnostic(`an agent has ${readResident().toFixed(1)} MB resident`);
    assert.ok(readResident() < MAX_RESIDENT);
  });

  it("the node is staged, drained, rebooted once, and given back in the new version", async (t) => {
    await runNow(namespace, "zonewise-reconciler");
    t.diagnostic(
      await measured("from the start to the reboot", () =>
        untilTrue("rebooted", async () => host.actions.includes("reboot")),
      ),
    );
    const isBack = async (): Promise<boolean> => (await readShadow()).status?.boot_id === host.facts().bootId;
    t.diagnostic(await measured("from the reboot to a report of the new boot", () => untilTrue("back", isBack)));
    assert.deepEqual(
      host.actions.filter((action) => action !== "refresh"),
      ["prepare", "activate", "reboot"],
    );
    await untilTrue("uncordoned", async () => (await readNode()).spec.unschedulable === undefined);
    assert.doesNotMatch(JSON.stringify((await readNode()).metadata.annotations), /zonewise/);
    assert.equal((await readShadow()).status?.current_version, TO);
    t.diagnostic(`an agent has ${readResident().toFixed(1)} MB resident after an update`);
  });

  it("its node is Ready in the new boot and its work is back: the update has ended well", async (t) => {
    // The pod of the run was evicted with the others.
    await runNow(namespace, "zonewise-reconciler");
    const readPolicy = () =>
      admin.call<{ status: { active: unknown[]; frozen?: { message: string }; nodes: { upToDate: number } } }>(
        "GET",
        "/apis/zonewise.dev/v1/nodeupdatepolicies/default",
      );
    const isOver = async (): Promise<boolean> => {
      const { active, frozen } = (await readPolicy()).status;
      return frozen !== undefined || active.length === 0;
    };
    t.diagnostic(await measured("from the return to a free slot", () => untilTrue("the slot free", isOver)));
    const { frozen, nodes } = (await readPolicy()).status;
    assert.deepEqual([frozen, nodes.upToDate, (await readShadow()).status?.current_state], [undefined, 1, "Idle"]);
    // Events are written beside the ticks.
    await untilTrue("the Events of the kubelet and of the reconciler", async () => {
      const { text } = await runKubectl(["get", "events", "-A", "-o", "jsonpath={.items[*].reason}"]);
      return /\bRebooted\b/.test(text) && /\bNodeUpdated\b/.test(text);
    });
  });

  it("nothing is left after the commands of the documentation", async (t) => {
    t.diagnostic(
      await measured("removal", async () => {
        await kubectl(["label", "nodes", "--all", `${LABEL}-`]);
        await untilTrue("no shadow", async () => (await kubectl(["get", "brs", "-n", HOME, "-o", "name"])) === "");
        await kubectl(["delete", "-f", "-"], parts[2]);
        await kubectl(["delete", "-k", `${FOLDER}/crds`]);
      }),
    );
    const kinds = "namespaces,clusterroles,clusterrolebindings,customresourcedefinitions";
    assert.doesNotMatch(await kubectl(["get", kinds, "-o", "name"]), /brupop|node-?updates|nodeupdatepolic|node-api/);
  });
});
