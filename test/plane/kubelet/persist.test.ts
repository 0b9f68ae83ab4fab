import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { persist } from "./persist.ts";

const refused = (status: number): Error => new Error(`${status}`, { cause: status });

const CASES: readonly [string, readonly (Error | "written")[]][] = [
  ["ends once it is done", ["written"]],
  [
    "is repeated after a broken connection and after a server's own fault",
    [new Error("ECONNREFUSED"), refused(503), "written"],
  ],
  ["ends when the pod is gone", [refused(404)]],
  ["ends when another pod of the name is there", [refused(409)]],
  ["is not repeated after a refusal", [refused(422)]],
];

describe("a write of the simulated kubelets", () => {
  for (const [title, answers] of CASES) {
    it(title, async () => {
      let tries = 0;
      await persist(0, async () => {
        const answer = answers[tries];
        tries += 1;
        if (answer instanceof Error) throw answer;
      });
      assert.equal(tries, answers.length);
    });
  }
});
