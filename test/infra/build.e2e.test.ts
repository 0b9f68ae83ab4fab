/** Bundles behave like their sources, although they leave out packages, and are the same each time. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { buildAll, bundle } from "../../infra/build.ts";
import { describeConnections, type Port } from "./connections.ts";

const root = join(import.meta.dirname, "../..");
const directory = mkdtempSync(join(tmpdir(), "zonewise-"));
after(() => rmSync(directory, { recursive: true }));
writeFileSync(join(directory, "package.json"), `{ "type": "module" }`);

const sources = ["infra/kubernetes/connection", "infra/kubernetes/connect-cluster", "test/infra/typed-client"];
const dist = join(directory, "dist");
await buildAll(root, dist);
await bundle(Object.fromEntries(sources.map((path) => [path, `${path}.ts`])), root, directory);
const built = async (path: string): Promise<unknown> => await import(join(directory, path));
const { loadConnection } = (await built("infra/kubernetes/connection.js")) as Pick<Port, "loadConnection">;
const { connectCluster } = (await built("infra/kubernetes/connect-cluster.js")) as Pick<Port, "connectCluster">;

/** All files below a folder, with their contents. */
const filesOf = (folder: string): Record<string, string> =>
  Object.fromEntries(
    globSync("**/*.{js,json}", { cwd: folder })
      .toSorted()
      .map((path) => [path, readFileSync(join(folder, path), "utf8")]),
  );

describeConnections("bundled", { loadConnection, connectCluster });

describe("a package that the bundle leaves out", () => {
  it("throws if it is used", async () => {
    const { openTypedClient, openDispatcher } = (await built(
      "test/infra/typed-client.js",
    )) as typeof import("./typed-client.ts");
    assert.throws(openTypedClient, /ServerConfiguration of .\/gen\/index.js was left out of this bundle/);
    assert.throws(openDispatcher, /Agent of undici was left out of this bundle/);
  });

  it("is in none of the entries, and all of them start", () => {
    const main = join(dist, "reconciler/main.js");
    assert.doesNotMatch(readFileSync(main, "utf8"), /UND_ERR_|V1PodSpec/);
    const { status, stdout } = spawnSync(process.execPath, [main], { env: {}, encoding: "utf8" });
    assert.equal(status, 2);
    assert.match(stdout, /KUBERNETES_NAMESPACE is not set/);
  });
});

describe("a build", () => {
  it("lists the packages that are in it, and no others", () => {
    const { components } = JSON.parse(readFileSync(join(dist, "sbom.cdx.json"), "utf8")) as {
      components: { name: string }[];
    };
    const names = new Set(components.map(({ name }) => name));
    for (const name of [
      "@google-cloud/functions-framework",
      "@kubernetes/client-node",
      "express",
      "jose",
      "selfsigned",
      "zod",
    ])
      assert.ok(names.has(name), name);
    for (const name of ["undici", "typescript", "esbuild", "@types/node"]) assert.ok(!names.has(name), name);
  });

  it("of the same sources in another place gives the same bytes", async () => {
    const copy = join(directory, "elsewhere/copy");
    for (const part of [
      "cli",
      "functions",
      "reconciler",
      "infra",
      "package.json",
      "package-lock.json",
      "tsconfig.json",
    ])
      cpSync(join(root, part), join(copy, part), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
    const again = join(directory, "again");
    await buildAll(copy, again);
    assert.deepEqual(Object.keys(filesOf(again)), Object.keys(filesOf(dist)));
    for (const [path, text] of Object.entries(filesOf(again)))
      assert.ok(text === filesOf(dist)[path], `${path} differs`);
  });
});
