/** What a release carries, packed and published by its own scripts; cosign and gh are stand-ins that only take their files. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it } from "node:test";
import { parse } from "yaml";
import { buildAll } from "../../infra/build.ts";
import { readVersion } from "../../infra/chart.ts";
import { ROOT } from "./manifests.ts";

const root = mkdtempSync(join(tmpdir(), "release-"));
after(() => rmSync(root, { recursive: true }));
for (const path of [
  "package.json",
  "package-lock.json",
  ".krew.yaml",
  "LICENSE",
  "infra",
  "cli",
  "functions",
  "reconciler",
])
  cpSync(join(ROOT, path), join(root, path), { recursive: true });
symlinkSync(join(ROOT, "node_modules"), join(root, "node_modules"));
await buildAll(ROOT, join(root, "dist"));
const [bin, out] = [join(root, "bin"), join(root, "out")];
for (const folder of [bin, out]) mkdirSync(folder);
const standIn = (name: string, lines: string): void =>
  writeFileSync(join(bin, name), `#!/usr/bin/env bash\n${lines}\n`, { mode: 0o755 });
standIn("cosign", 'while [ "$1" != --bundle ]; do shift; done; cp "$3" "$2"');
standIn("gh", 'printf "%s\\n" "$@" >gh.txt; for last; do :; done; [ -e "$last" ]');
standIn("git", "echo 1750000000");
const version = readVersion(ROOT);
/** What `infra/release/chart` has packed before. */
writeFileSync(join(out, `zonewise-${version}.tgz`), "chart");

function run(script: string, ...args: readonly string[]): void {
  const env = { ...process.env, PATH: `${bin}:${process.env["PATH"]}`, BIN: bin, OUT: out };
  const named = { GITHUB_SERVER_URL: "https://git.example", GITHUB_REPOSITORY: "a/zonewise" };
  const { status, stderr } = spawnSync(join(root, "infra/release", script), args, {
    env: { ...env, ...named },
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
}

it("the files of a release are packed, named in the signed checksums, and all published", () => {
  run("files");
  run("publish", `v${version}`);
  const published = readFileSync(join(out, "gh.txt"), "utf8").trim().split("\n");
  const files = published.slice(published.indexOf("notes.md") + 1);
  assert.deepEqual(
    files.filter((name) => !existsSync(join(out, name))),
    [],
  );
  const summed = readFileSync(join(out, "SHA256SUMS"), "utf8").match(/\S+$/gm) ?? [];
  assert.deepEqual([...summed, "SHA256SUMS", "SHA256SUMS.sigstore.json"].toSorted(), files.toSorted());
  assert.equal(
    readFileSync(join(out, "SHA256SUMS.sigstore.json"), "utf8"),
    readFileSync(join(out, "SHA256SUMS"), "utf8"),
  );
});

it("krew finds the archive of kubectl-zonewise by its checksum, and the command in it", () => {
  const text = readFileSync(join(out, "krew.yaml"), "utf8");
  const { spec } = parse(text) as { spec: { platforms: { uri: string; sha256: string; bin: string }[] } };
  const [{ uri, sha256, bin: command } = assert.fail()] = spec.platforms;
  assert.equal(uri, `https://git.example/a/zonewise/releases/download/v${version}/kubectl-zonewise.tar.gz`);
  assert.ok(readFileSync(join(out, "SHA256SUMS"), "utf8").includes(`${sha256}  kubectl-zonewise.tar.gz`));
  assert.equal(spawnSync("tar", ["-xzf", join(out, "kubectl-zonewise.tar.gz"), "-C", out]).status, 0);
  const { status, stdout } = spawnSync(process.execPath, [join(out, command), "--version"], { encoding: "utf8" });
  assert.equal(status, 0);
  assert.ok(stdout.includes(version), stdout);
});

it("the package of npm is the command line, without dependencies", () => {
  run("npm", "pack");
  assert.equal(spawnSync("tar", ["-xzf", join(out, `npm/zonewise-${version}.tgz`), "-C", join(out, "npm")]).status, 0);
  const packed = join(out, "npm/package");
  const { bin: commands, dependencies } = JSON.parse(readFileSync(join(packed, "package.json"), "utf8")) as {
    readonly bin: Readonly<Record<string, string>>;
    readonly dependencies?: object;
  };
  assert.equal(dependencies, undefined);
  const { status, stdout } = spawnSync(process.execPath, [join(packed, commands["zonewise"] ?? ""), "--version"], {
    encoding: "utf8",
  });
  assert.equal(status, 0);
  assert.ok(stdout.includes(version), stdout);
});
