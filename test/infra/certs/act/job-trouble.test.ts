/** The certificate job on the embedded cluster with damaged Secrets and API errors. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { RolloutError } from "../../../../infra/errors.ts";
import type { Stage } from "../../../reconciler/stage.ts";
import { jobOn, setJobStage } from "./job-stage.ts";
import * as on from "../stage.ts";

const { DAY, MUTATING, VALIDATING } = on;

let stage: Stage;
beforeEach(async () => (stage = await setJobStage()));
afterEach(() => stage.close());
const { run, bundles, text } = jobOn(() => stage);

describe("the certificate job under errors", () => {
  it("exits with 1 when the API server goes on finding its patch invalid, and says why", async () => {
    const { cluster } = stage.connect();
    const refuse = (): never => {
      throw new RolloutError("Invalid", "spec.failurePolicy: Unsupported value");
    };
    const refused = on.runJob({ ...cluster, patch: refuse }, on.movingClock(stage.time));
    assert.equal(await refused.result, 1);
    assert.match(refused.lines.join(""), /could not be given the CA bundle.*Unsupported value/);
  });

  it("does not warn of a configuration that somebody else changed first, only of one that it leaves without the bundle", async () => {
    const { faults } = stage.emulator;
    faults.inject({ effect: { kind: "conflict" }, verb: "patch", resource: VALIDATING, times: 2 });
    faults.inject({ effect: { kind: "conflict" }, verb: "create", resource: "secrets", times: 1 });
    const { result, lines } = run();
    assert.equal(await result, 0);
    assert.equal(faults.struck(), 3);
    assert.deepEqual(
      lines.filter((line) => line.includes('"level":"warn"')),
      [],
    );
    assert.deepEqual(bundles(), [text("ca"), text("ca"), text("ca")]);
  });

  it("gets through conflicts, lost answers, throttling and errors of the cluster", async () => {
    const { faults } = stage.emulator;
    faults.inject({ effect: { kind: "error" }, verb: "list", times: 1 });
    faults.inject({ effect: { kind: "dropAfter" }, verb: "create", resource: "secrets", times: 1 });
    faults.inject({ effect: { kind: "conflict" }, verb: "patch", resource: VALIDATING, times: 2 });
    faults.inject({ effect: { kind: "dropAfter" }, verb: "patch", resource: MUTATING, times: 1 });
    assert.equal(await run().result, 0);
    assert.equal(faults.struck(), 5);
    assert.deepEqual(bundles(), [text("ca"), text("ca"), text("ca")]);
  });

  it("gives up with the cluster's message if it may not read the Secret", async () => {
    const { cluster } = stage.connect();
    stage.emulator.faults.inject({ effect: { kind: "error" }, verb: "get", resource: "secrets" });
    assert.match(
      String(await on.runJob(cluster, on.movingClock(stage.time)).result),
      /get secrets default\/rollout-operator-self-signed-certificate/,
    );
  });

  it("ends after the current step if it is stopped", async () => {
    const stop = new AbortController();
    await run().result;
    await stage.time.advance(240 * DAY);
    const first = text("cert");
    stage.emulator.store.subscribe(({ resource }) => resource === "secrets" && stop.abort());
    assert.equal(await run({ stop: stop.signal }).result, 1);
    assert.equal(text("cert"), first);
  });
});
