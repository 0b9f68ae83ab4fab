import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { systemClock } from "../../infra/clock.ts";
import type { Lease } from "../../infra/kubernetes/resources.ts";
import { startEmulator } from "../emulator/index.ts";
import { composeReconciler } from "./reconcile.ts";

it("releases its Lease when it is stopped", { timeout: 300_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "zonewise-"));
  const emulator = await startEmulator();
  t.after(async () => {
    await emulator.stop();
    await rm(folder, { recursive: true });
  });
  await emulator.writeKubeconfig(join(folder, "kubeconfig"));
  const stop = new AbortController();
  const holders: unknown[] = [];
  emulator.store.subscribe(({ resource, object }) => {
    if (resource === "leases.coordination.k8s.io") holders.push((object as Lease).spec?.holderIdentity);
  });
  // It ticks only while it holds the Lease.
  const reconciler = await composeReconciler({
    kubeconfig: join(folder, "kubeconfig"),
    namespace: "default",
    clock: systemClock,
    onLog: (_level, message) => {
      if (message === "tick") stop.abort();
    },
  });
  await reconciler.runUntil(stop.signal);
  assert.match(String(holders.at(0)), /^zonewise_/);
  assert.equal(holders.at(-1), "");
});
