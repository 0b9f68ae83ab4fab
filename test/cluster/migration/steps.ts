/** The steps of docs/migration.md: the commands of a section, run as they are printed. */
import { spawn } from "node:child_process";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { KUBECTL } from "../stage/kubectl.ts";

const ROOT = join(import.meta.dirname, "../../..");

/** The commands below a heading, in order. */
export async function readCommands(heading: string): Promise<string[]> {
  const page = await readFile(join(ROOT, "docs/migration.md"), "utf8");
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  return [...section.matchAll(/^ {7}(?<command>(?:kubectl|sleep|CA=).*)$/gm)].map(
    ({ groups }) => groups?.["command"] ?? "",
  );
}

/**
 * Copies the project's manifests into `folder`, with a user's edits and a Service that leads the API server to `port`
 * of this machine.
 */
export async function copyManifests(folder: string, namespace: string, port: number): Promise<void> {
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
  for (const name of await readdir(join(ROOT, "infra/manifests/webhooks")))
    if (name.endsWith(".yaml")) await edit(`webhooks/${name}`, (text) => text.replace("port: 443", `port: ${port}`));
}

/** Runs the commands in one shell, in `folder`; resolves with what they wrote, rejects at the first that fails. */
export async function runCommands(
  commands: readonly string[],
  folder: string,
  names: Readonly<Record<string, string>>,
): Promise<string> {
  const script = Object.entries(names).reduce(
    (text, [name, value]) => text.replaceAll(name, value),
    commands.join("\n"),
  );
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
