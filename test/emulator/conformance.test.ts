import assert from "node:assert/strict";
import { test } from "node:test";
import { compare, describe } from "../cluster/conformance/compare.ts";
import { readRecording } from "../cluster/conformance/recording.ts";
import { record } from "../cluster/conformance/suite.ts";
import { startEmulator } from "./index.ts";

test(
  "the emulator answers every step of the conformance suite as a real Kubernetes 1.36 did",
  { timeout: 300_000 },
  async (t) => {
    const emulator = await startEmulator();
    t.after(() => emulator.stop());

    const recording = await record(emulator.kubeconfig());

    assert.deepEqual(compare(readRecording(), recording).map(describe), []);
  },
);
