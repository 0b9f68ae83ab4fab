import assert from "node:assert/strict";
import { test } from "node:test";
import { startEmulator } from "../../emulator/index.ts";
import { compare, describe } from "./compare.ts";
import { readKubeconfig, readRecording } from "./recording.ts";
import { record } from "./suite.ts";

test(
  "the emulator responds as this cluster does, and this cluster as the recorded one",
  { timeout: 600_000 },
  async (t) => {
    const real = await record(readKubeconfig(process.env["KUBECONFIG"] ?? ""));
    const emulator = await startEmulator();
    t.after(() => emulator.stop());
    const emulated = await record(emulator.kubeconfig());

    const differences = compare(real, emulated).map(describe);
    for (const difference of differences) t.diagnostic(difference);
    assert.deepEqual(differences, [], "the emulator differs from this cluster");
    assert.deepEqual(
      compare(readRecording(), real).map(describe),
      [],
      "expected.json is of another Kubernetes version: record it again with `node recording.ts`",
    );
  },
);
