/** Staging an update on simulated hosts. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../../infra/clock.ts";
import { createHostApi } from "../../../../reconciler/nodes/agent/host-api.ts";
import { nextHostStep, hostUpdateStatus, whyFailed } from "../../../../reconciler/nodes/host-updates.ts";
import { refreshTarget, stageUpdate } from "../../../../reconciler/nodes/agent/stage-update.ts";
import { type Host, type HostOptions, startHost } from "../../../host/host-server.ts";

interface Case extends HostOptions {
  readonly name: string;
  readonly before?: (host: Host) => void | Promise<void>;
  readonly wanted?: string;
  readonly waitMs?: number;
  readonly failure?: RegExp;
  readonly actions?: readonly string[];
}

const act =
  (...actions: readonly ("refresh" | "prepare" | "activate")[]) =>
  async (host: Host) => {
    const api = createHostApi(host.socketPath);
    for (const action of actions) {
      await api.act(action);
      while ((await api.readUpdates()) === "busy") await systemClock.sleep(2);
    }
  };
const ALL = ["refresh", "prepare", "activate"];

const CASES: readonly Case[] = [
  { name: "looks for updates, prepares and activates, and nothing else", actions: ALL },
  { name: "waits for a slow download", actionMs: { prepare: 300 }, waitMs: 2000, actions: ALL },
  {
    name: "gives a download that never ends up",
    actionMs: { prepare: 5000 },
    waitMs: 100,
    failure: /busy for 0.1 s/,
  },
  {
    name: "does not take a failed preparation for a success",
    before: (host) => host.fail("prepare"),
    failure: /prepare: Failed, exit status 1, prepare went wrong/,
  },
  { name: "says why an activation failed", before: (host) => host.fail("activate"), failure: /activate: Failed/ },
  {
    name: "says what the host answered",
    before: (host) => host.fail("prepare", 500),
    failure: /prepare: the host answers 500/,
  },
  {
    name: "goes on from what an earlier attempt has staged",
    before: act("refresh", "prepare"),
    actions: ["refresh", "prepare", "activate"],
  },
  {
    name: "has nothing to do if an earlier attempt has activated it",
    before: act("refresh", "prepare", "activate"),
    actions: ALL,
  },
  {
    name: "puts another version that is activated aside",
    before: async (host) => {
      await act("refresh", "prepare", "activate")(host);
      host.offer("1.2.0");
      await act("refresh")(host);
    },
    wanted: "1.2.0",
    actions: [...ALL, "refresh", "deactivate", "prepare", "activate"],
  },
  {
    name: "does not prepare another version than the wanted one",
    wanted: "1.9.0",
    failure: /offers 1\.1\.0, and 1\.9\.0 is wanted/,
    actions: ["refresh"],
  },
  {
    name: "stages nothing if the host offers nothing",
    offers: "1.0.0",
    failure: /offers no update/,
    actions: ["refresh"],
  },
];

describe("staging an update", () => {
  for (const { name, before, wanted = "1.1.0", waitMs = 2000, failure, actions, ...options } of CASES)
    it(name, async (t) => {
      const host = await startHost({ offers: "1.1.0", ...options });
      t.after(() => host.stop());
      await before?.(host);
      const stop = new AbortController().signal;
      const tools = { host: createHostApi(host.socketPath), clock: systemClock, pollMs: 5, actionMs: waitMs, stop };
      const result = await stageUpdate(tools, wanted);
      if (failure) assert.match(result ?? "", failure);
      else assert.deepEqual([result, host.facts().state], [undefined, "Ready"]);
      if (actions) assert.deepEqual(host.actions, actions);
    });

  it("reads statuses of other versions of the host", () => {
    const strange = {
      update_state: "Idle",
      chosen_update: null,
      most_recent_command: { cmd_type: "deactivate", cmd_status: "Unknown", exit_status: -9 },
      more: 1,
    };
    const status = hostUpdateStatus.parse(strange);
    assert.deepEqual(nextHostStep(status, "1.1.0"), { act: "refresh" });
    assert.equal(whyFailed("deactivate", status), "deactivate: Unknown, exit status -9");
    assert.deepEqual(nextHostStep(hostUpdateStatus.parse({ update_state: "Available" }), "1.1.0"), {
      fail: "the host offers no version, and 1.1.0 is wanted",
    });
  });

  it("reports the version that the host has chosen, and the running one without any", async (t) => {
    const host = await startHost({ offers: "1.1.0" });
    t.after(() => host.stop());
    const tools = {
      host: createHostApi(host.socketPath),
      clock: systemClock,
      pollMs: 5,
      actionMs: 1000,
      stop: new AbortController().signal,
    };
    assert.equal(await refreshTarget(tools, "1.0.0"), "1.1.0");
    host.offer("1.0.0");
    assert.equal(await refreshTarget(tools, "1.0.0"), "1.0.0");
    host.fail("refresh");
    assert.equal(await refreshTarget(tools, "1.0.0"), undefined);
  });
});
