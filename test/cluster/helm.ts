/** Runs Helm, which test/plane builds of Go modules, on the project's chart. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { parseAllDocuments, stringify } from "yaml";
import type { Manifest } from "./manifests.ts";
import type { KubectlResult } from "./kubectl.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
export const CHART = `${ROOT}infra/helm/zonewise`;
const BUILD = '. test/plane/settings.sh && "$here/build" helm && echo "$BIN/helm"';

/** The path of Helm, or why there is none. */
async function findHelm(): Promise<{ readonly path: string } | { readonly missing: string }> {
  try {
    const { stdout } = await promisify(execFile)("bash", ["-c", BUILD], { cwd: ROOT });
    return { path: stdout.trim() };
  } catch (error) {
    return { missing: `Helm cannot be built: ${(error as { stderr?: string }).stderr?.trim()}` };
  }
}

export const HELM = await findHelm();
/** Why tests with Helm are left out; false if they are not. */
export const WITHOUT_HELM = "missing" in HELM && HELM.missing;
if (WITHOUT_HELM) console.log(`the tests with Helm are left out: ${WITHOUT_HELM}`);

/** Resolves with the result, of a failure too. The values go to its stdin, where `--values -` reads them. */
export function runHelm(args: readonly string[], values: object = {}): Promise<KubectlResult> {
  return new Promise((resolve, reject) => {
    if ("missing" in HELM) return reject(new Error(HELM.missing));
    const child = execFile(HELM.path, args, { maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === "number" ? error.code : error ? -1 : 0, text: stdout + stderr }),
    );
    child.stdin?.on("error", () => {}); // it may end without reading
    child.stdin?.end(stringify(values));
  });
}

/** `helm template` for a namespace; `flags` are Helm's own. */
export function template(namespace: string, values: object, flags: readonly string[] = []): Promise<KubectlResult> {
  const version = flags.includes("--kube-version") ? [] : ["--kube-version", "1.36.0"];
  return runHelm(["template", "zonewise", CHART, "--namespace", namespace, "--values", "-", ...version, ...flags], values);
}

export const parseManifests = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
