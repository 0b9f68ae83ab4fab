/** The installation of examples/nats on the real node: its manifests as they are, with our images and with volumes of this machine. */
import { execFile } from "node:child_process";
import { chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { runFolder } from "../cluster/real-node/find-node.ts";
import { IMAGE, type Installation, REAL } from "../cluster/real-node/installation.ts";
import { type Admin, remove } from "../cluster/stage/client.ts";
import { dial, type Login } from "./load.ts";

const ROOT = join(import.meta.dirname, "../..");
const ZONES = ["nats-zone-a", "nats-zone-b", "nats-zone-c"];
/** Servers a zone, at most. */
const MOST = 3;
/** The user of the containers. */
const USER = 65532;
const PASSWORDS = { app: "app-password", sys: "sys-password" };

export interface Database {
  /** For applications. */
  readonly login: Login;
  /** What `nats server cluster peer-remove` does: servers that are gone no longer count for the majority. */
  readonly forget: (servers: readonly string[]) => Promise<void>;
  /** Deletes its volumes; the namespace is the caller's. */
  readonly remove: () => Promise<void>;
}

/** Builds the image of the version in the example and gives it to the node; applies the example. */
export async function installDatabase(
  admin: Admin,
  namespace: string,
  { kubectl }: Pick<Installation, "kubectl">,
): Promise<Database> {
  const env = { ...process.env, RUN: runFolder(process.env) };
  await promisify(execFile)(join(ROOT, "test/plane/nats/image"), ["nats:2.15.3"], { env, maxBuffer: 64 << 20 });
  const data = join(runFolder(process.env), "node/nats", namespace);
  const volumes = await createVolumes(admin, namespace, data);
  const passwords = Object.entries(PASSWORDS).map(([user, password]) => `--from-literal=${user}=${password}`);
  await kubectl(["create", "secret", "generic", "nats", ...passwords]);
  await applyExample(kubectl);
  const path = `/api/v1/namespaces/${namespace}/services/nats-client`;
  const { spec } = await admin.call<{ spec: { clusterIP: string } }>("GET", path);
  const server = `${spec.clusterIP}:4222`;
  return {
    login: { server, user: "app", pass: PASSWORDS.app },
    async forget(servers) {
      const connection = await dial({ server, user: "sys", pass: PASSWORDS.sys });
      try {
        for (const peer of servers) {
          const request = JSON.stringify({ peer });
          const answer = await connection.request("$JS.API.SERVER.REMOVE", request, { timeout: 10_000 });
          const { error } = answer.json<{ error?: { description: string } }>();
          if (error) throw new Error(`${peer}: ${error.description}`);
        }
      } finally {
        await connection.close();
      }
    },
    async remove() {
      for (const name of volumes) await remove(admin, `/api/v1/persistentvolumes/${name}`);
      await rm(data, { recursive: true, force: true });
    },
  };
}

/** A folder of this machine for each server, kept for its claim. */
async function createVolumes(admin: Admin, namespace: string, data: string): Promise<string[]> {
  const servers = ZONES.flatMap((zone) => Array.from({ length: MOST }, (_, i) => `${zone}-${i}`));
  for (const server of servers) {
    const path = join(data, server);
    await mkdir(path, { recursive: true });
    await chown(path, USER, USER);
    await admin.call("POST", "/api/v1/persistentvolumes", {
      metadata: { name: `${namespace}-${server}` },
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        persistentVolumeReclaimPolicy: "Retain",
        claimRef: { namespace, name: `data-${server}` },
        hostPath: { path },
      },
    });
  }
  return servers.map((server) => `${namespace}-${server}`);
}

/** As a user with a kustomization of their own: the image with Node.js is the one that the machine has. */
async function applyExample(kubectl: Installation["kubectl"]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "nats-"));
  const [newName, newTag] = IMAGE.split(":");
  const patch = JSON.stringify([{ op: "replace", path: "/spec/template/spec/nodeSelector", value: REAL }]);
  const overlay = {
    resources: [relative(folder, join(ROOT, "examples/nats"))],
    images: [{ name: "node", newName, newTag }],
    patches: [{ target: { kind: "StatefulSet" }, patch }],
  };
  try {
    await writeFile(join(folder, "kustomization.yaml"), stringify(overlay));
    await kubectl(["apply", "-k", folder]);
  } finally {
    await rm(folder, { recursive: true });
  }
}
