/** The job as a process: its exit codes and its output. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startEmulator, type Emulator } from "../../../emulator/index.ts";
import { entryFile } from "../../../entries.ts";
import { COMPILED } from "../../../functions/process.ts";
import * as on from "../stage.ts";

const MAIN = entryFile("infra/certs/act/main.ts");

function run(env: Readonly<Record<string, string>>): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN], { env: { ...COMPILED, ...env } }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), output: stdout + stderr }),
    );
  });
}

describe("the certificate job's process", () => {
  let emulator: Emulator;
  let folder: string;
  before(async () => {
    emulator = await startEmulator({ controllers: false });
    folder = await mkdtemp(join(tmpdir(), "zonewise-"));
    await emulator.writeKubeconfig(join(folder, "kubeconfig"));
  });
  after(async () => {
    await emulator.stop();
    await rm(folder, { recursive: true });
  });
  const onCluster = (env: Readonly<Record<string, string>> = {}) =>
    run({ KUBERNETES_NAMESPACE: "default", KUBECONFIG: join(folder, "kubeconfig"), ...env });

  it("ends with 0 when all is done, for the configured DNS names and in the configured Secret", async () => {
    on.addHook(emulator.store, on.VALIDATING, "hook");
    const { code, output } = await onCluster({ SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME: "a.default.svc,b.default.svc" });
    assert.equal(code, 0, output);
    const { ca = "" } = on.secretOf(emulator.store);
    assert.deepEqual(on.bundlesOf(emulator.store, on.VALIDATING, "hook"), [ca]);
    assert.equal(
      (await onCluster({ SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME: "b.default.svc" })).output,
      "",
      "b is among its names",
    );
  });

  it("ends with 2 for a wrong environment, and names the variable", async () => {
    const { code, output } = await run({
      KUBERNETES_NAMESPACE: "default",
      SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION: "1 year",
    });
    assert.equal(code, 2);
    assert.match(output, /SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION is \\"1 year\\", allowed is a duration/);
  });

  it("does nothing, and calls nothing, if another component provides the certificate", async () => {
    const { code, output } = await run({
      KUBERNETES_NAMESPACE: "default",
      SERVER_TLS_SELF_SIGNED_CERT_ENABLED: "false",
    });
    assert.equal(code, 0);
    assert.match(output, /nothing to do/);
  });
});
