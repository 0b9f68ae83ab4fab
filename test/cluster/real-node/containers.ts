/** The image and the containers on the real node, through the plane's scripts and containerd's `ctr`. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Stage } from "../stage/stage.ts";
import { runFolder } from "./find-node.ts";

const exec = promisify(execFile);
const RUN = runFolder(process.env);
const PLANE = join(import.meta.dirname, "../../plane");
const ROOT = join(import.meta.dirname, "../../..");
const MAX_BUFFER = 64 << 20;

/** Runs a script of test/plane on the plane of KUBECONFIG. Resolves with its output, rejects with that of a failure. */
export async function runScript(name: "image" | "real-node" | "restart", args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await exec(join(PLANE, name), args, {
    env: { ...process.env, RUN },
    maxBuffer: MAX_BUFFER,
  });
  return stdout + stderr;
}

async function ctr(args: readonly string[]): Promise<string> {
  const all = ["--address", join(RUN, "node/containerd.sock"), "--namespace", "k8s.io", ...args];
  return (await exec("ctr", all, { maxBuffer: MAX_BUFFER })).stdout;
}

/** Builds the Dockerfile and gives the image to the node. Resolves with the build's output. */
export const buildImage = (tag: string): Promise<string> => runScript("image", [ROOT, tag]);

/** The bytes of the image's layers, the base's first: it is one layer here. */
export async function readLayerSizes(tag: string): Promise<number[]> {
  const line = (await ctr(["images", "ls", `name==docker.io/library/${tag}`])).split("\n")[1] ?? "";
  const digest = /sha256:\w+/.exec(line)?.[0] ?? "";
  const { layers } = JSON.parse(await ctr(["content", "get", digest])) as { layers: { size: number }[] };
  return layers.map(({ size }) => size);
}

export interface Container {
  readonly pod: string;
  readonly id: string;
  readonly restarts: number;
}

interface PodWithContainers {
  readonly metadata: { readonly name: string };
  readonly status: {
    readonly containerStatuses?: readonly {
      readonly containerID?: string;
      readonly restartCount: number;
      readonly state: { readonly running?: object };
    }[];
  };
}

/** The running containers of the pods that a selector names. */
export async function listContainers(
  { call, namespace }: Pick<Stage, "call" | "namespace">,
  selector: string,
): Promise<Container[]> {
  const path = `/api/v1/namespaces/${namespace}/pods?labelSelector=${encodeURIComponent(selector)}`;
  const { items } = await call<{ items: PodWithContainers[] }>("GET", path);
  return items.flatMap(({ metadata, status }) =>
    (status.containerStatuses ?? []).flatMap(({ containerID, restartCount, state }) =>
      state.running && containerID
        ? [{ pod: metadata.name, id: containerID.replace("containerd://", ""), restarts: restartCount }]
        : [],
    ),
  );
}

/** True once each of the killed containers' pods runs another container. */
export const areReplaced = (killed: readonly Container[], running: readonly Container[]): boolean =>
  killed.every(({ pod, id }) => running.some((container) => container.pod === pod && container.id !== id));

/** kill -9 of everything in a container. */
export const killContainer = async ({ id }: Container): Promise<void> =>
  void (await ctr(["tasks", "kill", "--signal", "SIGKILL", "--all", id]));
