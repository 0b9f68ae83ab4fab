import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ShadowStatus } from "../../../reconciler/nodes/shadow.ts";
import { textOf } from "../picture.ts";
import { describeActivity, type DrawnNode, drawNodes, isUpdated } from "./picture.ts";

type State = ShadowStatus["current_state"];

const STATUS: ShadowStatus = {
  current_version: "1.0.0",
  target_version: "1.1.0",
  current_state: "Idle",
  crash_count: 0,
};
const shadow = (
  wanted: State,
  reported: State,
  status: Partial<ShadowStatus> = {},
): NonNullable<DrawnNode["shadow"]> => ({
  spec: { state: wanted },
  status: { ...STATUS, current_state: reported, ...status },
});
const node = (traits: Partial<DrawnNode>): DrawnNode => ({
  name: "node-1",
  ready: true,
  cordoned: false,
  shadow: shadow("Idle", "Idle"),
  pods: [],
  ...traits,
});

const rebooting = { boot_id: "b", at: "2026-01-01T00:00:00Z" };
const [STAGED, REBOOTED] = ["StagedAndPerformedUpdate", "RebootedIntoUpdate"] as const;

describe("the picture of a node says that it", () => {
  for (const [text, traits] of [
    ["waits, 1.1.0 is there", {}],
    ["up to date", { shadow: shadow("Idle", "Idle", { current_version: "1.1.0" }) }],
    ["its agent has not reported", { shadow: undefined }],
    ["stages 1.1.0", { shadow: shadow(STAGED, "Idle") }],
    ["staged: would a drain succeed?", { shadow: shadow(STAGED, STAGED) }],
    ["is being drained", { shadow: shadow(REBOOTED, STAGED), pods: ["terminating"] }],
    ["is drained", { shadow: shadow(REBOOTED, STAGED) }],
    ["reboots", { shadow: shadow(REBOOTED, STAGED, { rebooting }) }],
    ["is down", { ready: false, shadow: shadow(REBOOTED, STAGED, { rebooting }) }],
    ["is back", { shadow: shadow(REBOOTED, STAGED, { current_version: "1.1.0" }) }],
    ["watched: is its work back?", { shadow: shadow("MonitoringUpdate", "MonitoringUpdate") }],
    ["failed", { shadow: shadow(REBOOTED, "ErrorReset") }],
  ] as const satisfies readonly (readonly [string, Partial<DrawnNode>])[])
    it(text, () => assert.equal(describeActivity(node(traits))[0], text));
});

it("the picture has a row for each node, with its pods, and counts those that are updated and back in service", () => {
  const updated = node({ shadow: shadow("Idle", "Idle", { current_version: "1.1.0" }), pods: ["ready", "unready"] });
  const nodes = [
    updated,
    node({ name: "node-2", cordoned: true, shadow: shadow(REBOOTED, STAGED), pods: ["terminating"] }),
  ];
  const { title, rows, message } = drawNodes({ nodes, wanted: "1.1.0", message: "node-2: starts", elapsedMs: 1500 });
  assert.equal(textOf(title), "node updates   1 of 2 nodes updated   1.5 s");
  assert.deepEqual(
    rows.map((row) => textOf(row).trimEnd()),
    ["node-1  1.1.0   ● ○   up to date", "node-2  1.0.0   ✕     is being drained                cordoned"],
  );
  assert.equal(textOf(message), "node-2: starts");
  assert.equal(isUpdated({ ...updated, cordoned: true }, "1.1.0"), false);
});
