/** The certificate job on the embedded cluster with damaged Secrets and API errors. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { RolloutError } from "../../../../infra/errors.ts";
import type { Stage } from "../../../reconciler/stage.ts";
import { jobOn, setJobStage } from "./job-stage.ts";
import * as on from "../stage.ts";
import { upstreamSecret } from "../upstream.ts";

const { DAY, MUTATING, VALIDATING } = on;

let stage: Stage;
beforeEach(async () => (stage = await setJobStage()));
afterEach(() => stage.close());
const { run, bundles, secret, text } = jobOn(() => stage);

describe("the certificate job under errors", () => {
  it("names the invalid key of a damaged Secret, and changes nothing", async () => {
    const { ca, key } = await upstreamSecret(new Date(stage.time.now()));
    on.putSecret(stage.emulator.store, { ca, key });
    const before = stage.emulator.store.version();
    assert.match(String(await run().result), /does not contain a cert key, delete the secret and try again/);
    assert.equal(stage.emulator.store.version(), before);
  });

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

  it("recovers at once from a certificate that expired, or whose CA is lost", async () => {
    await run().result;
    await stage.time.advance(400 * DAY);
    assert.equal(await run().result, 0);
    for (const bundle of bundles()) assert.ok(on.accepts(bundle, text("cert")));
    const { caPem } = await on.issueAt(() => stage.time.now())();
    on.putSecret(stage.emulator.store, { ...secret(), ca: caPem });
    assert.equal(await run().result, 0);
    for (const bundle of bundles()) assert.ok(on.accepts(bundle, text("cert")));
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
