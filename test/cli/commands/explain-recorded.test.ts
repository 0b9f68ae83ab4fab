/**
 * The reasons of scaling that only a write or a pod's answer shows: induced by real ticks, and explained by what they
 * have recorded.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { RULES } from "../../../reconciler/remedies/rules.ts";
import { add } from "../../builders.ts";
import { define } from "../../demo/definitions.ts";
import { DELAYED, MIRROR } from "../../reconciler/scaling/mirror-stage.ts";
import { deploy, type Stage } from "../../reconciler/stage.ts";
import { setStatusStage, startSession } from "../../reconciler/group-status/act/status-stage.ts";
import { openTerminal } from "../stage.ts";

const SETS = "statefulsets.apps";

/** Zone a mirrors a ReplicaTemplate that wants `replicas`. */
async function mirror(stage: Stage, replicas: number, annotations: Readonly<Record<string, string>>): Promise<void> {
  const { store } = stage.emulator;
  await define(store, ["replicatemplates"]);
  deploy(stage, "app:1", { zones: ["a"], annotations: { ...MIRROR, ...annotations } });
  deploy(stage, "app:1", { zones: ["b"] });
  await stage.time.advance(2000);
  add(store, "ReplicaTemplate", "template", { spec: { replicas } });
}

const CASES = [
  {
    reason: "PrepareFailed",
    replicas: 2,
    annotations: DELAYED,
    message: /ingester-zone-a-2.*500/,
    helps: /kubectl -n default logs ingester-zone-a-2/,
    break: () => {},
  },
  {
    reason: "ScaleRefused",
    replicas: 5,
    annotations: {},
    message: /scaling ingester-zone-a from 3 to 5 replicas.*forbidden/,
    helps: /kubectl -n default edit statefulset ingester-zone-a/,
    break: ({ emulator }: Stage) =>
      void emulator.faults.inject({
        verb: "patch",
        resource: SETS,
        name: "ingester-zone-a",
        effect: { kind: "forbidden" },
      }),
  },
] as const;

for (const { reason, replicas, annotations, message, helps, ...one } of CASES)
  it(`explain and status tell of ${reason}: zone, why, rule and remedy`, async (t) => {
    const stage = await setStatusStage();
    await mirror(stage, replicas, annotations);
    one.break(stage);
    const session = startSession(stage);
    t.after(async () => {
      await session.end();
      await stage.close();
    });
    for (let i = 0; i < 2; i++) {
      await session.tick({ podHttp: { send: async () => ({ status: 500, body: "" }) } });
      await stage.time.advance(2000);
    }
    const { run } = await openTerminal(t, stage);
    const { code, out } = await run("explain ingester");
    assert.equal(code, 1, out);
    assert.match(out, new RegExp(`scale: Blocked {2}${reason}`));
    for (const text of [message, helps]) assert.match(out, text);
    assert.ok(out.includes(RULES[reason].rule), out);
    assert.match((await run("status --watch=false")).out, new RegExp(reason));
  });
