/** Runs Helm 4, which test/plane builds of Go modules, on the project's chart. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { parseAllDocuments, stringify } from "yaml";
import type { Manifest } from "../stage/manifests.ts";
import type { KubectlResult } from "../stage/kubectl.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;
export const CHART = `${ROOT}infra/helm/zonewise`;
const BUILD = '. test/plane/settings.sh && "$here/build" "$0" && echo "$BIN/$0"';

interface Helm {
  readonly name: string;
  readonly path: string;
  /** Why its tests are left out; false if they are not. */
  readonly missing: string | false;
  /** Resolves with the result, of a failure too. The values go to its stdin, where `--values -` reads them. */
  readonly run: (args: readonly string[], values?: object) => Promise<KubectlResult>;
  /** `helm template` for a namespace; `flags` are Helm's own. */
  readonly template: (namespace: string, values: object, flags?: readonly string[]) => Promise<KubectlResult>;
}

async function openHelm(name: string): Promise<Helm> {
  const built = await promisify(execFile)("bash", ["-c", BUILD, name], { cwd: ROOT }).then(
    ({ stdout }) => ({ path: stdout.trim(), missing: false as const }),
    ({ stderr }: { stderr?: string }) => ({ path: "", missing: `it cannot be built: ${stderr?.trim()}` }),
  );
  const { path, missing } = built;
  if (missing) console.log(`the tests with ${name} are left out: ${missing}`);
  const run: Helm["run"] = (args, values = {}) =>
    new Promise((resolve) => {
      const child = execFile(path, args, { maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === "number" ? error.code : error ? -1 : 0, text: stdout + stderr }),
      );
      child.stdin?.on("error", () => {}); // it may end without reading
      child.stdin?.end(stringify(values));
    });
  return {
    name,
    path,
    missing,
    run,
    template(namespace, values, flags = []) {
      const version = flags.includes("--kube-version") ? [] : ["--kube-version", "1.36.0"];
      return run(
        ["template", "zonewise", CHART, "--namespace", namespace, "--values", "-", ...version, ...flags],
        values,
      );
    },
  };
}

/** By the folder of test/plane that builds it. */
export const HELM: Helm = await openHelm("helm-4");

export const parseManifests = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
