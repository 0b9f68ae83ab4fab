/** What a session reads of RolloutGroups, and how often. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { createKnownGroups } from "../../../../reconciler/group-status/act/known-groups.ts";
import { GROUPS, setStatusStage, until } from "./status-stage.ts";

/** More than are read one by one. */
const NAMES = Array.from({ length: 25 }, (_, i) => `group-${i}`);
const TYPE = { apiVersion: "zonewise.dev/v1", kind: "RolloutGroup" };

it("RolloutGroups that change together are listed again, and are watched once all the same", async (t) => {
  const stage = await setStatusStage();
  t.after(() => stage.close());
  const { store } = stage.emulator;
  for (const name of NAMES) store.create(GROUPS, { ...TYPE, metadata: { namespace: "default", name }, spec: {} });
  const { cluster } = stage.connect();
  const ended = new AbortController();
  t.after(() => ended.abort());
  let watches = 0;
  const counted: typeof cluster = {
    ...cluster,
    watch: async (...call) => {
      watches++;
      await cluster.watch(...call).finally(() => watches--);
    },
  };
  const known = createKnownGroups({ cluster: counted, clock: stage.clock, stop: ended.signal, onChange: () => {} });
  for (const checkpoint of ["first", "second", "third"]) {
    await known.refresh(["default"], new Set());
    for (const name of NAMES) {
      const group = store.get(GROUPS, "default", name) ?? assert.fail();
      store.update(GROUPS, { ...group, spec: { checkpoint } });
    }
    await until(() => [...known.entries.values()].every((entry) => entry.hinted !== undefined));
  }
  await known.refresh(["default"], new Set());
  assert.equal(watches, 1);
});
