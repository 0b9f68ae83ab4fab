/** The steps of docs/migrate/rollout-operator.md: the commands of a section, run as they are printed. */
import { spawn } from "node:child_process";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { KUBECTL } from "../stage/kubectl.ts";

const ROOT = join(import.meta.dirname, "../../..");

/** The commands below a heading, in order; of `word`, only those that have it. Steps and points are indented by 7. */
export async function readCommands(heading: string, word = "", indent = 7): Promise<string[]> {
  const page = await readFile(join(ROOT, "docs/migrate/rollout-operator.md"), "utf8");
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  const line = new RegExp(`^ {${indent}}(?<command>(?:kubectl|sleep|CA=|awk|helm).*)$`, "gm");
  return [...section.matchAll(line)]
    .map(({ groups }) => groups?.["command"] ?? "")
    .filter((command) => command.includes(word));
}

/** What the page tells users of the original's chart to write into a kustomization. */
export async function readPatches(names: Readonly<Record<string, string>>): Promise<string> {
  const page = await readFile(join(ROOT, "docs/migrate/rollout-operator.md"), "utf8");
  const [text] = page.match(/^ {7}patches:\n(?: {9,}.*\n)+/m) ?? [];
  if (text === undefined) throw new Error("the page has no patches");
  return fillIn(text.replaceAll(/^ {7}/gm, ""), names);
}

const fillIn = (text: string, names: Readonly<Record<string, string>>): string =>
  Object.entries(names).reduce((filled, [name, value]) => filled.replaceAll(name, value), text);

/**
 * Copies the project's manifests into `folder`, with a user's edits and a Service that leads the API server to `port`
 * of this machine.
 */
export async function copyManifests(
  folder: string,
  { namespace, port, patches }: { readonly namespace: string; readonly port: number; readonly patches: string },
): Promise<void> {
  await cp(join(ROOT, "infra/manifests"), join(folder, "infra/manifests"), { recursive: true });
  const edit = async (path: string, change: (text: string) => string): Promise<void> => {
    const file = join(folder, "infra/manifests", path);
    await writeFile(file, change(await readFile(file, "utf8")));
  };
  await edit("namespace/kustomization.yaml", (text) =>
    text.replace("\nnamespace: zonewise\n", `\nnamespace: ${namespace}\n`),
  );
  await edit("functions/service.yaml", (text) =>
    text.replace("\nspec:\n", "\nspec:\n  type: ExternalName\n  externalName: localhost\n"),
  );
  await edit("complete/kustomization.yaml", (text) => text + patches);
  for (const name of await readdir(join(ROOT, "infra/manifests/webhooks")))
    if (name.endsWith(".yaml")) await edit(`webhooks/${name}`, (text) => text.replace("port: 443", `port: ${port}`));
}

/** Runs the commands in one shell, in `folder`; resolves with what they wrote, rejects at the first that fails. */
export async function runCommands(
  commands: readonly string[],
  folder: string,
  names: Readonly<Record<string, string>>,
): Promise<string> {
  const script = fillIn(commands.join("\n"), names);
  const env = { ...process.env, PATH: `${dirname(KUBECTL)}:${process.env["PATH"] ?? ""}` };
  const shell = spawn("bash", ["-euo", "pipefail", "-x", "-c", script], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [shell.stdout, shell.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => shell.once("close", resolve));
  if (code !== 0) throw new Error(`exit code ${code}\n${output}`);
  return output;
}
