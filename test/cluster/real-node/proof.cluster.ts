/** NATS JetStream as a user installs it, rolled out, drained and scaled under load: the short form of `npm run proof`. */
import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { judge } from "../../proof/judge.ts";
import { drainAndKill, rollOut } from "../../proof/scenes.ts";
import { describeScene, GROUP, openProof, type Proof, REPLICAS } from "../../proof/stage.ts";
import { assertNoViolations } from "../stage/invariants.ts";
import { findMissing, readMachine } from "./find-node.ts";

const missing = findMissing(readMachine(process.env));
if (missing) console.log(`the proof on a real database is left out: ${missing}`);

describe(
  "NATS JetStream on a real node keeps every acknowledged write, and stays writable",
  { skip: missing ?? false },
  () => {
    let proof: Proof;
    before(async () => void (proof = await openProof(console.log)));
    after(() => proof?.close());

    const play = (name: string, run: () => Promise<unknown>) => async (t: TestContext) => {
      const scene = await proof.play(name, run);
      t.diagnostic(describeScene(scene));
      assert.deepEqual(judge(scene), []);
      assertNoViolations(
        proof.timeline.entries.filter(({ group }) => group === GROUP),
        () => REPLICAS,
      );
    };
    it(
      "in a rollout in whose middle the reconciler and a function are killed",
      play("rollout", () => rollOut(proof)),
    );
    it(
      "in ten evictions by three drains, likewise",
      play("drains", () => drainAndKill(proof, 10)),
    );
  },
);
