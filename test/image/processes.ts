/** The processes that the manifests start, each with node's arguments as the image and the manifest give them. */
import { collect, read } from "../infra/manifests.ts";
import { NODE_ARGS } from "../bench/process.ts";

interface Container {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
}

export interface ImageProcess {
  /** The name of a pod of the process. */
  readonly name: string;
  /** Arguments of node, relative to the folder with `dist`. */
  readonly args: readonly string[];
  /** The explicit command of the manifest; empty for most. */
  readonly env: Readonly<Record<string, string>>;
}

const MANIFESTS = [
  "infra/manifests/reconciler/cronjob.yaml",
  "infra/manifests/certificates/cronjob.yaml",
  "infra/manifests/functions/deployment.yaml",
  "infra/manifests/status-page/deployment.yaml",
  "infra/manifests/node-updates/certificates.yaml",
  "infra/manifests/node-updates/api.yaml",
  "infra/manifests/node-updates/agent.yaml",
  "knative/services.yaml",
  "knative/events/services.yaml",
];

/** In the order of an installation: the reconciler and the certificate job make what the functions need. */
export function readProcesses(): ImageProcess[] {
  return MANIFESTS.flatMap(read).flatMap((manifest) =>
    collect(manifest, (object) => object["containers"] as Container[] | undefined)
      .flat()
      .map(({ args, env }) => ({
        name: manifest.metadata?.name ?? "",
        args: [...NODE_ARGS, ...args],
        env: Object.fromEntries(
          env.flatMap(({ name, value }) => (name.startsWith("FUNCTION_") && value ? [[name, value]] : [])),
        ),
      })),
  );
}
