import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { RolloutError } from "../../../infra/errors.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { A, type Case, mirroring, playCases, STATUS } from "./mirror-cases.ts";
import { DELAYED, mirrorStage, type MirrorStage, type MirrorZone, type PodAnswers } from "./mirror-stage.ts";
import { amend } from "../../builders.ts";

const delayed = (replicas: number, more: Record<string, string> = {}): MirrorZone =>
  mirroring(replicas, { ...DELAYED, ...more });
const force = (replicas: number) => ({ "grafana.com/rollout-force-replicas": String(replicas) });

let on: MirrorStage;
beforeEach(async () => (on = await mirrorStage()));
afterEach(() => on.stage.close());

const prepared =
  (minutesAgo: Readonly<Record<number, number>>): PodAnswers =>
  (_method, ordinal) => ({ minutesAgo: minutesAgo[ordinal] ?? 0 });
const postAnswers =
  (answer: ReturnType<PodAnswers>): PodAnswers =>
  (method) =>
    method === "POST" ? answer : {};
const OLD = { minutesAgo: 70 };
const HOLDS_5 = { patches: [`${STATUS} 5`] };

const CASES: Readonly<Record<string, Case>> = {
  "shrinks once all delays are over": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: prepared({ 3: 70, 4: 70 }),
    requests: ["DELETE a-0", "DELETE a-1", "DELETE a-2", "POST a-3", "POST a-4"],
    patches: [`${A} 3`, `${STATUS} 3`],
  },
  "waits for the delay": {
    zones: [delayed(5)],
    reference: [3, 3],
    pods: prepared({ 3: 30, 4: 0 }),
    requests: ["DELETE a-0", "DELETE a-1", "DELETE a-2", "POST a-3", "POST a-4"],
    ...HOLDS_5,
    waits: ["DelayNotReached"],
  },
  "does not shrink if a POST fails, regardless of its body": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: postAnswers({ ...OLD, status: 500 }),
    patches: [],
    waits: ["PrepareFailed"],
  },
  "does not shrink when a pod cannot be reached": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: postAnswers(new RolloutError("Unreachable", "refused")),
    patches: [],
    waits: ["PrepareFailed"],
  },
  "does not shrink if a pod's answer is invalid": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: postAnswers({ body: "prepared" }),
    patches: [],
    waits: ["PrepareFailed"],
  },
  "a POST that is refused with 409 is a failure": {
    zones: [delayed(5)],
    reference: [3, 5],
    pods: postAnswers({ ...OLD, status: 409 }),
    patches: [],
    waits: ["PrepareFailed"],
  },
  "a waiting zone does not hold another": {
    zones: [delayed(5), delayed(5)],
    reference: [3, 5],
    pods: (_method, _ordinal, zone) => ({ minutesAgo: zone === "b" ? 70 : 0 }),
    requests: ["a", "b"]
      .flatMap((zone) => [0, 1, 2].map((i) => `DELETE ${zone}-${i}`))
      .concat(["a", "b"].flatMap((zone) => [3, 4].map((i) => `POST ${zone}-${i}`))),
    patches: ["statefulsets ingester-zone-b 3", `${STATUS} 3`],
    waits: ["DelayNotReached"],
  },
  "grows although a preparation is locked": {
    zones: [delayed(2)],
    reference: [5, 2],
    pods: () => ({ status: 409 }),
    patches: [`${A} 5`, `${STATUS} 5`],
  },
  "force affects only its own zone, and the others wait for the next pass": {
    zones: [delayed(5, force(0)), delayed(5), delayed(5)],
    reference: [3, 5],
    pods: () => OLD,
    requests: [0, 1, 2, 3, 4].map((i) => `POST a-${i}`),
    patches: [`${A} 0`, `${STATUS} 0`],
  },
};

describe("mirroring with a delay", () => {
  playCases(CASES, () => on);

  it("cancels the preparation of pods in the next pass if the reference has changed", async () => {
    await on.reference(3, 5);
    await on.zones(delayed(5));
    const requests: string[][] = [];
    for (const wanted of [3, 5, 4, 5]) {
      await on.reference(wanted);
      requests.push([...(await on.pass(() => ({}))).requests]);
    }
    const stay = (count: number): string[] => Array.from({ length: count }, (_, i) => `DELETE a-${i}`);
    assert.deepEqual(requests, [[...stay(3), "POST a-3", "POST a-4"], stay(5), [...stay(4), "POST a-4"], stay(5)]);
  });

  it("does not shrink to the replicas that the reference wanted before the pods answered", async () => {
    await on.reference(3, 5);
    await on.zones(delayed(5));
    let grown = false;
    const { cluster } = on.stage.connect();
    const slow: Cluster = {
      ...cluster,
      get: async (resource, ref, call) => {
        const before = await cluster.get(resource, ref, call);
        if (!grown && ref.subresource === "scale") await on.reference(5);
        grown = true;
        return before;
      },
    };
    assert.deepEqual((await on.pass(() => OLD, slow)).patches, []);
  });

  it("of two zones that may shrink to different sizes, one waits for a pod that the other's size gives up: 4 and 3", async () => {
    await on.reference(3, 5);
    await on.zones(delayed(5), delayed(5), mirroring(3));
    const { store } = on.stage.emulator;
    amend(store, "StatefulSet", "ingester-zone-c", { spec: { replicas: 4 } });
    await on.stage.time.advance(50);
    amend(store, "Pod", "ingester-zone-c-3", { annotations: { "sim/ready": "false" } });
    // Longer than a pod that works may take to become ready.
    await on.stage.time.advance(61 * 60_000);
    const pass = await on.pass((_method, ordinal, zone) => ({ minutesAgo: zone === "a" && ordinal === 3 ? 30 : 70 }));
    assert.deepEqual(
      [pass.patches, pass.waits],
      [["statefulsets ingester-zone-b 3", `${STATUS} 3`], ["OtherZoneNotReady"]],
    );
  });
});
