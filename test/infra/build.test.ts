/** What is built behaves as its sources do, for all that it leaves out. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { buildAll, bundle } from "../../infra/build.ts";
import { describeConnections, type Port } from "./connections.ts";

const root = join(import.meta.dirname, "../..");
const directory = mkdtempSync(join(tmpdir(), "zonewise-"));
after(() => rmSync(directory, { recursive: true }));
writeFileSync(join(directory, "package.json"), `{ "type": "module" }`);

await bundle(["infra/kubernetes/connection.ts", "infra/kubernetes/connect-cluster.ts", "test/infra/typed-client.ts"], root, directory);
const built = async (path: string): Promise<unknown> => await import(join(directory, path));
const { loadConnection } = (await built("infra/kubernetes/connection.js")) as Pick<Port, "loadConnection">;
const { connectCluster } = (await built("infra/kubernetes/connect-cluster.js")) as Pick<Port, "connectCluster">;

describeConnections("bundled", { loadConnection, connectCluster });

describe("what the bundle leaves out", () => {
  it("says so when it is reached after all", async () => {
    const { openTypedClient, openDispatcher } = (await built("test/infra/typed-client.js")) as typeof import("./typed-client.ts");
    assert.throws(openTypedClient, /ServerConfiguration of .\/gen\/index.js was left out of this bundle/);
    assert.throws(openDispatcher, /Agent of undici was left out of this bundle/);
  });

  it("is in none of the entries, and they start", async () => {
    await buildAll(root, directory);
    const main = join(directory, "reconciler/main.js");
    assert.doesNotMatch(readFileSync(main, "utf8"), /UND_ERR_|V1PodSpec/);
    const { status, stdout } = spawnSync(process.execPath, [main], { env: {}, encoding: "utf8" });
    assert.equal(status, 2);
    assert.match(stdout, /KUBERNETES_NAMESPACE is not set/);
  });
});
