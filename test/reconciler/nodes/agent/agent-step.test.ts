/** The model of an agent (agent-step.ts) beside the process: the same shadows and the same cordons, in the same order. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { ShadowSpec, ShadowStatus, WantedState } from "../../../../reconciler/nodes/shadow.ts";
import { type AgentNode, agentStep, boot, isAnnounced } from "../../../emulator/controllers/agent-step.ts";
import { dig } from "../../../emulator/objects.ts";
import { NODE, setAgentStage, untilTrue } from "./stage.ts";

interface Scene {
  /** The boot loader goes back. */
  readonly rollsBack?: boolean;
  /** The first activation of the update fails. */
  readonly fails?: boolean;
  /** The states that are wanted, each once the one before is reported; Idle after a failure. */
  readonly wanted: readonly WantedState[];
}

const UPDATE = ["StagedAndPerformedUpdate", "RebootedIntoUpdate", "MonitoringUpdate", "Idle"] as const;
const SCENES: Readonly<Record<string, Scene>> = {
  "an update": { wanted: UPDATE },
  "an update that a policy ends before its reboot": { wanted: ["StagedAndPerformedUpdate", "Idle"] },
  "a host that goes back to the old version": { rollsBack: true, wanted: [...UPDATE.slice(0, 2), "Idle"] },
  "a host that cannot stage the update": { fails: true, wanted: ["StagedAndPerformedUpdate", "Idle"] },
};

/** What others see of a node: the shadow's status without times and the drain, and whether it is cordoned. */
const lineOf = (status: Partial<ShadowStatus> | undefined, cordoned: boolean): string =>
  [
    status?.current_state ?? "none",
    status?.current_version,
    `crashes ${status?.crash_count}`,
    ...(status?.rebooting ? ["announced"] : []),
    ...(cordoned ? ["cordoned"] : []),
  ].join(" ");

const isReached = (wanted: WantedState, state: unknown): boolean => state === wanted || state === "ErrorReset";

function playModel({ rollsBack = false, fails = false, wanted }: Scene): string[] {
  let node: AgentNode = {
    spec: { state: "Idle" },
    status: undefined,
    host: { version: "1.0.0", bootId: "boot-1" },
    target: "1.1.0",
    cordoned: false,
  };
  const lines: string[] = [];
  const settle = (): void => {
    for (let i = 0; i < 20; i++) {
      const next = isAnnounced(node) ? boot(node, "boot-2", rollsBack) : agentStep(node, 0, { fails });
      if (next === node) return;
      // The API uncordons before the agent reports.
      if (node.cordoned && !next.cordoned) lines.push(lineOf(node.status, false));
      node = next;
      lines.push(lineOf(node.status, node.cordoned));
    }
  };
  settle();
  for (const state of wanted) {
    const spec: ShadowSpec = { state, version: "1.1.0", state_transition_timestamp: "2026-01-01T00:00:00Z" };
    node = { ...node, spec };
    settle();
  }
  return withoutRepeats(lines);
}

async function playProcess(t: TestContext, { rollsBack, fails, wanted }: Scene): Promise<string[]> {
  const stage = await setAgentStage(t);
  if (rollsBack) stage.host.rollBack(1);
  if (fails) stage.host.fail("activate");
  const lines: string[] = [];
  const note = (): void => {
    const status = stage.shadow(NODE)?.["status"] as Partial<ShadowStatus> | undefined;
    if (status) lines.push(lineOf(status, dig(stage.node(NODE), "spec", "unschedulable") === true));
  };
  t.after(stage.emulator.store.subscribe(({ resource }) => void (/nodes|shadows/.test(resource) && note())));
  stage.startAgent();
  await untilTrue(() => stage.state() === "Idle");
  for (const state of wanted) {
    const { reboots } = stage.host.facts();
    stage.want(state);
    await untilTrue(() => isReached(state, stage.state()) || stage.host.facts().reboots > reboots);
    if (stage.host.facts().reboots > reboots) {
      await untilTrue(() => stage.host.facts().isUp);
      stage.startAgent();
    }
    await untilTrue(() => (state === "Idle" ? stage.state() === "Idle" : isReached(state, stage.state())));
  }
  return withoutRepeats(lines);
}

const withoutRepeats = (lines: readonly string[]): string[] => lines.filter((line, i) => line !== lines[i - 1]);

describe("the model of an agent does what the process does", { concurrency: true }, () => {
  for (const [title, scene] of Object.entries(SCENES))
    it(title, async (t) => assert.deepEqual(playModel(scene), await playProcess(t, scene)));
});
