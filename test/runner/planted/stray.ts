import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

describe("a suite that waits before it has tests", async () => {
  await sleep(1);
  // Each ends in a turn of the event loop after the error's.
  it("throws beside itself", async () => {
    await new Promise((resolve) => {
      setTimeout(() => {
        setTimeout(resolve, 1);
        throw new Error("thrown beside the test");
      }, 1);
    });
  });
  it("rejects beside itself", async () => {
    const turn = sleep(1);
    void turn.then(() => Promise.reject(new Error("rejected beside the test")));
    await turn;
    await sleep(1);
  });
  it("passes beside them", () => sleep(1));
});
