import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

describe("a suite that waits before it has tests", async () => {
  await sleep(1);
  it("throws beside itself", async () => {
    setTimeout(() => {
      throw new Error("thrown beside the test");
    }, 1);
    await sleep(50);
  });
  it("rejects beside itself", async () => {
    void sleep(1).then(() => Promise.reject(new Error("rejected beside the test")));
    await sleep(50);
  });
  it("passes beside them", () => sleep(1));
});
