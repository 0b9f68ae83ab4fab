/** The rules in the definition of NodeUpdatePolicies, as the API server knows them. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Admin } from "../stage/client.ts";
import { ownDefinition } from "../stage/own-definition.ts";

let admin: Admin;
const definition = ownDefinition({
  plural: "nodeupdatepolicies",
  version: "v1",
  group: "zonewise.dev",
  isClusterWide: true,
});
const { group, path } = definition;
before(async () => void (admin = await definition.create()));
after(() => definition.remove());

describe("the rules of the NodeUpdatePolicy", () => {
  for (const [spec, allowed] of [
    [{}, true],
    [{ maxConcurrent: 0 }, true],
    [{ maxConcurrent: "25%" }, true],
    [{ maxConcurrent: "Unlimited" }, true],
    [{ maxConcurrent: -1 }, false],
    [{ maxConcurrent: "101%" }, false],
    [{ maxConcurrent: "many" }, false],
    [{ window: { cron: "* * 2-4 * * Mon-Fri", timeZone: "Europe/Berlin" } }, true],
    [{ window: { cron: "@daily" } }, true],
    [{ window: { cron: "0 2 * * *" } }, false],
    [{ window: { cron: "* * * * * *", lastStartSeconds: 60, durationSeconds: 60 } }, false],
    [{ maxFailed: 0 }, false],
    [{ drain: { onTimeout: "Force" } }, false],
    [{ health: { minReadySeconds: -1 } }, false],
  ] as const)
    it(`${allowed ? "allow" : "refuse"} ${JSON.stringify(spec)}`, async () => {
      const created = admin.call("POST", `${path}?dryRun=All`, {
        apiVersion: `${group}/v1`,
        kind: "NodeUpdatePolicy",
        metadata: { name: "policy" },
        spec,
      });
      if (allowed) await created;
      else await assert.rejects(created, /422|Invalid|invalid/);
    });
});
