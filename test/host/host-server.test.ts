/** The simulated host, by the facts of the host API. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { TestContext } from "node:test";
import { createHostApi, type HostApi } from "../../reconciler/nodes/agent/host-api.ts";
import type { UpdateStatus } from "../../reconciler/nodes/host-updates.ts";
import { type Host, type HostOptions, startHost } from "./host-server.ts";

async function setHost(t: TestContext, options?: HostOptions): Promise<{ host: Host; api: HostApi }> {
  const host = await startHost(options);
  t.after(() => host.stop());
  return { host, api: createHostApi(host.socketPath) };
}

async function settled(api: HostApi): Promise<UpdateStatus> {
  for (;;) {
    const status = await api.readUpdates();
    if (status && status !== "busy") return status;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

describe("a host", () => {
  it("says nothing of updates before the first refresh since its boot", async (t) => {
    const { api } = await setHost(t);
    assert.equal(await api.readUpdates(), undefined);
    assert.equal(await api.readVersion(), "1.0.0");
  });

  it("goes through its states, and comes back from a reboot in the new version with another boot id", async (t) => {
    const { host, api } = await setHost(t, { offers: "1.1.0" });
    const { bootId } = host.facts();
    const states: string[] = [];
    for (const action of ["refresh", "prepare", "activate", "deactivate", "activate"] as const) {
      assert.equal(await api.act(action), "begun");
      states.push((await settled(api)).update_state);
    }
    assert.deepEqual(states, ["Available", "Staged", "Ready", "Staged", "Ready"]);
    assert.equal(await api.act("reboot"), "begun");
    while (host.facts().version !== "1.1.0" || !host.facts().isUp)
      await new Promise((resolve) => setTimeout(resolve, 5));
    assert.notEqual(host.facts().bootId, bootId);
    assert.equal(await api.readUpdates(), undefined);
  });

  it("is locked while an action runs", async (t) => {
    const { api } = await setHost(t, { actionMs: { refresh: 100 } });
    await api.act("refresh");
    assert.equal(await api.readUpdates(), "busy");
    assert.equal(await api.act("refresh"), "busy");
  });

  it("refuses what its state does not allow", async (t) => {
    const { api } = await setHost(t, { offers: "1.1.0" });
    assert.match(((await api.act("prepare")) as { refused: string }).refused, /404/);
    await api.act("refresh");
    await settled(api);
    assert.match(((await api.act("activate")) as { refused: string }).refused, /409/);
  });

  it("comes back in the old version if the boot loader goes back", async (t) => {
    const { host, api } = await setHost(t, { offers: "1.1.0" });
    for (const action of ["refresh", "prepare", "activate"] as const) {
      await api.act(action);
      await settled(api);
    }
    host.rollBack(1);
    await host.reboot();
    assert.equal(await api.readVersion(), "1.0.0");
  });

  it("that is down is an error of the connection, not an answer", async (t) => {
    const { host, api } = await setHost(t);
    await host.stop();
    await assert.rejects(api.readVersion(), { code: "Unreachable" });
  });
});
