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
  ["is repeated when the API server has too many requests", [refused(429), "written"]],
];

describe("a write of the simulated kubelets", { concurrency: true }, () => {
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

  it("of a pod that is there is repeated after conflicts with other writers, until the pod is gone", async () => {
    const answers = [true, true, false];
    let tries = 0;
    const write = (): Promise<void> => Promise.reject(((tries += 1), refused(409)));
    await persist(0, write, () => answers[tries - 1] === false);
    assert.equal(tries, 3);
  });
});
