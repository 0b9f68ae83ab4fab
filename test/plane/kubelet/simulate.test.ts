import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Admin } from "../../cluster/stage/client.ts";
import type { Pod } from "../../emulator/controllers/objects.ts";
import { isTrue } from "../../emulator/objects.ts";
import { simulate } from "./simulate.ts";
import { pod as podOf, stored } from "../../builders/objects.ts";

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

/** A simulation with one simulated and one real node, the calls that it makes, and a way to wait for the next. */
function open() {
  const calls: Call[] = [];
  const call = async (method: string, path: string, body: unknown): Promise<unknown> =>
    calls.push({ method, path, body });
  const { onNode, onPod } = simulate({ call } as unknown as Admin);
  const status = { conditions: [{ type: "Ready", status: "True" }] };
  onNode("ADDED", { metadata: { name: "simulated" }, status });
  onNode("ADDED", { metadata: { name: "real", labels: { "sim/real": "true" } }, status });
  const next = async (): Promise<Call | undefined> => {
    while (calls.length === 0) await sleep(1);
    return calls.shift();
  };
  return { calls, onPod, next };
}

const ANNOTATIONS = { "sim/ready-after-ms": "20", "sim/exit-after-ms": "1" };
const pod = (spec: object, metadata: object = {}): Pod =>
  stored(podOf("p", { namespace: "a", annotations: ANNOTATIONS, metadata, spec, status: {} }), "1") as unknown as Pod;

const PATH = "/api/v1/namespaces/a/pods/p";
const isReady = (call: Call | undefined): boolean => isTrue(call?.body, "Ready");

describe("the simulated kubelets", () => {
  it("bind a new pod once", async () => {
    const { calls, onPod, next } = open();
    onPod("ADDED", pod({}));
    onPod("MODIFIED", pod({}));
    const bound = await next();
    assert.equal(bound?.path, `${PATH}/binding`);
    assert.deepEqual(bound.body, {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name: "p" },
      target: { apiVersion: "v1", kind: "Node", name: "simulated" },
    });
    await sleep(5);
    assert.deepEqual(calls, []);
  });

  it("send a report only after the one before it has its answer, so that none overtakes another", async () => {
    const reports: unknown[] = [];
    const answers: (() => void)[] = [];
    const call = (_method: string, _path: string, body: unknown): Promise<void> => {
      reports.push(body);
      return new Promise((resolve) => answers.push(resolve));
    };
    const { onNode, onPod } = simulate({ call } as unknown as Admin);
    onNode("ADDED", { metadata: { name: "simulated" }, status: { conditions: [{ type: "Ready", status: "True" }] } });
    onPod("ADDED", pod({ nodeName: "simulated" }, { annotations: { "sim/ready-after-ms": "1" } }));
    await sleep(40);
    assert.equal(reports.length, 1);
    answers[0]?.();
    while (reports.length < 2) await sleep(1);
    assert.ok(isTrue(reports[1], "Ready"));
  });

  it("report a bound pod as not ready, then as ready, and delete exactly that pod when it ends", async () => {
    const { onPod, next } = open();
    onPod("ADDED", pod({ nodeName: "simulated" }));
    assert.deepEqual([isReady(await next()), isReady(await next())], [false, true]);
    onPod("MODIFIED", pod({ nodeName: "simulated" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }));
    const end = await next();
    assert.deepEqual(end, {
      method: "DELETE",
      path: PATH,
      body: { gracePeriodSeconds: 0, preconditions: { uid: "1" } },
    });
  });

  it("bind a pod to the real node and leave the rest to its kubelet", async () => {
    const { calls, onPod, next } = open();
    const nodeSelector = { "sim/real": "true" };
    onPod("ADDED", pod({ nodeSelector }));
    assert.equal((await next())?.path, `${PATH}/binding`);
    onPod("MODIFIED", pod({ nodeSelector, nodeName: "real" }));
    onPod("MODIFIED", pod({ nodeSelector, nodeName: "real" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }));
    await sleep(5);
    assert.deepEqual(calls, []);
  });
});
