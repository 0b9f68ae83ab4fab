import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { loadOwnAccount } from "../../../infra/kubernetes/own-account.ts";

it("a pod's ServiceAccount is read for each request, as the kubelet replaces its token", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "account-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "token"), "one\n");
  await writeFile(join(folder, "ca.crt"), "pem");
  const connection = loadOwnAccount({ KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "6443" }, folder);
  t.after(() => connection.close());
  assert.equal(connection.server.href, "https://[fd00::1]:6443/");
  const token = async (): Promise<unknown> => (await connection.authorize()).headers?.["authorization"];
  assert.equal(await token(), "Bearer one");
  await writeFile(join(folder, "token"), "two");
  assert.equal(await token(), "Bearer two");
  assert.equal((await connection.authorize()).ca, "pem");
});

it("outside a pod there is no ServiceAccount", () =>
  assert.throws(() => loadOwnAccount({}), { code: "BadConfiguration", message: /does not run in a pod/ }));

it("credentials that cannot be read are Unauthorized", async () => {
  const connection = loadOwnAccount({ KUBERNETES_SERVICE_HOST: "10.0.0.1" }, "/nowhere");
  await assert.rejects(connection.authorize(), { code: "Unauthorized", message: /no credentials.*ENOENT/ });
});
