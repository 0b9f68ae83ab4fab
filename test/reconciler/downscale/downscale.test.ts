import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { refuseByHealth } from "../../../reconciler/downscale/decide-admission.ts";
import { endpointsOf, leavingOrdinals, readPreparation } from "../../../reconciler/downscale/preparation.ts";
import { readScalable } from "../../../reconciler/downscale/scalable.ts";
import { zone } from "../builders.ts";

const SHRINKING = zone({ name: "ingester-zone-x" });

describe("reading a scalable object", () => {
  const apps = (kind: string, spec: unknown): unknown => ({ apiVersion: "apps/v1", kind, metadata: {}, spec });
  const CASES: readonly [unknown, object][] = [
    [apps("Deployment", { replicas: 3 }), { kind: "Deployment", replicas: 3 }],
    [apps("StatefulSet", null), { replicas: null }],
    [
      { apiVersion: "autoscaling/v1", kind: "Scale" },
      { kind: "Scale", replicas: 0 },
    ],
    [apps("StatefulSet", { replicas: "3" }), { cause: "decode" }],
    [apps("StatefulSet", { replicas: 2 ** 31 }), { cause: "decode" }],
    [apps("StatefulSet", { replicas: 1.5 }), { cause: "decode" }],
    [apps("constructor", {}), { cause: "kind" }],
    [{ apiVersion: "v1", kind: "Pod" }, { cause: "decode" }],
    ["text", { cause: "decode" }],
    [null, { cause: "decode" }],
  ];
  for (const [object, expected] of CASES)
    it(`of ${JSON.stringify(object)}`, () => assert.partialDeepStrictEqual(readScalable(object), expected));

  it("reads the labels of the webhooks alone, of however many", () => {
    const known = { "grafana.com/no-downscale": "true", "grafana.com/prepare-downscale": "false" };
    const labels = Object.defineProperty({ ...known }, "other", {
      enumerable: true,
      get: () => assert.fail("it was read"),
    });
    const found = readScalable({ apiVersion: "apps/v1", kind: "StatefulSet", metadata: { labels }, spec: {} });
    assert.deepEqual("labels" in found && found.labels, known);
  });
});

describe("the pods to remove", () => {
  const object = (annotations: Record<string, string>): StatefulSet => ({
    metadata: { name: "test", namespace: "default", annotations },
    spec: { serviceName: "service-name", selector: {}, template: {} },
  });
  const HTTP = "grafana.com/prepare-downscale-http";
  const endpoints = (path: string, start: number, end: number): string[] => {
    const preparation = readPreparation(object({ [`${HTTP}-port`]: "8080", [`${HTTP}-path`]: path }));
    return "problem" in preparation
      ? assert.fail(preparation.problem)
      : [...endpointsOf(preparation, { start, end }, "cluster.local.")].map(({ url }) => url);
  };
  it("are counted from the first ordinal", () =>
    assert.deepEqual(leavingOrdinals(7, { from: 3, to: 2 }), { start: 9, end: 10 }));
  it("are called by name, in descending order", () =>
    assert.deepEqual(endpoints("prepare-downscale", 3, 5), [
      "http://test-4.service-name.default.svc.cluster.local.:8080/prepare-downscale",
      "http://test-3.service-name.default.svc.cluster.local.:8080/prepare-downscale",
    ]));
  for (const path of ["a/b?c", "/a/b?c", "//a/b?c", "///a/b?c"])
    it(`are called with one slash before the path ${path}`, () =>
      assert.deepEqual(endpoints(path, 0, 1), ["http://test-0.service-name.default.svc.cluster.local.:8080/a/b?c"]));
  it("may be more than memory can hold", () => {
    const preparation = {
      statefulSet: "s",
      namespace: "n",
      serviceName: "v",
      url: new URL("http://pod:1/p"),
    };
    const [first] = Iterator.from(endpointsOf(preparation, { start: 0, end: 2 ** 31 - 1 }, "x")).take(1);
    assert.match(first?.url ?? "", /s-2147483646/);
  });
});

describe("waiting for other zones' health", () => {
  const SHRUNK = { replicas: 2, statusReplicas: 3, pods: { 2: {} } };
  const TWO = "statefulset ingester-zone-a has 2 replicas, and ";
  const CASES: readonly [string, Parameters<typeof zone>[0], string | undefined][] = [
    ["all pods updated and ready", {}, undefined],
    ["no replicas and no pods", { replicas: 0 }, undefined],
    ["no replicas, and a new template", { replicas: 0, at: "prev" }, undefined],
    [
      "no replicas, and its last pod terminates",
      { replicas: 0, statusReplicas: 1, pods: { 0: { terminating: true } } },
      "statefulset ingester-zone-a has 0 replicas, and ingester-zone-a-0 is still terminating",
    ],
    [
      "a status that is older than its spec: it may be about to roll out",
      { generation: 2, observedGeneration: 1 },
      "statefulset ingester-zone-a has 3 replicas, which the StatefulSet controller has not observed yet",
    ],
    [
      "outdated pods",
      { at: "prev" },
      "statefulset ingester-zone-a has 3 non-updated replicas and 0 non-ready replicas",
    ],
    [
      "a pod that is not ready",
      { pods: { 1: { ready: false } } },
      "statefulset ingester-zone-a has 0 non-updated replicas and 1 non-ready replicas",
    ],
    [
      "a pod that is terminating",
      { pods: { 1: { terminating: true } } },
      "statefulset ingester-zone-a has 0 non-updated replicas and 1 non-ready replicas",
    ],
    [
      "a pod that is missing",
      { pods: { 2: null } },
      "statefulset ingester-zone-a has 0 non-updated replicas and 1 non-ready replicas",
    ],
    [
      "a pod beyond its replicas, which the controller has not observed",
      { ...SHRUNK, generation: 2, observedGeneration: 1 },
      "statefulset ingester-zone-a has 2 replicas, which the StatefulSet controller has not observed yet; ingester-zone-a-2 is still running",
    ],
    ["a pod beyond its replicas that still runs", SHRUNK, `${TWO}ingester-zone-a-2 is still running`],
    [
      "a pod beyond its replicas that terminates",
      { ...SHRUNK, pods: { 2: { terminating: true } } },
      `${TWO}ingester-zone-a-2 is still terminating`,
    ],
    [
      "such a pod that its status counts no longer",
      { ...SHRUNK, statusReplicas: 2, pods: { 2: { terminating: true } } },
      `${TWO}ingester-zone-a-2 is still terminating`,
    ],
    [
      "many pods beyond its replicas",
      { ...SHRUNK, statusReplicas: 15, pods: Object.fromEntries(Array.from({ length: 13 }, (_, i) => [i + 2, {}])) },
      `${TWO}${Array.from({ length: 10 }, (_, i) => `ingester-zone-a-${i + 2}`).join(", ")} and 3 more are still running`,
    ],
    [
      "a pod beyond its replicas that never served",
      { statusReplicas: 4, statusReady: 3, pods: { 3: { ready: false } } },
      undefined,
    ],
    [
      "a pod beyond its replicas that has served",
      { statusReplicas: 4, statusReady: 3, pods: { 3: { ready: false, restarts: 0 } } },
      "statefulset ingester-zone-a has 3 replicas, and ingester-zone-a-3 is still running",
    ],
    [
      "a pod that cannot be made again: the status counts one less",
      { statusReplicas: 2, pods: { 2: null } },
      "statefulset ingester-zone-a has 1 non-updated replicas and 1 non-ready replicas",
    ],
  ];
  it("the only zone of a group waits for nobody, not for its own pods either", () => {
    const only = zone({ name: "ingester-zone-x", pods: { 1: { ready: false } } });
    assert.equal(refuseByHealth({ zones: [only] }, { zone: SHRINKING, size: 0, now: 0 }), undefined);
  });

  describe("once the outdated pods of the zone are those that it loses", () => {
    const prev = { revision: "prev" };
    const surplus = { name: "ingester-zone-x", replicas: 5, pods: { 3: prev, 4: prev } };
    const paused = { annotations: { "grafana.com/rollout-paused": "true" } };
    const outdated = "statefulset ingester-zone-a has 3 non-updated replicas and 0 non-ready replicas";
    const UNREADY = "statefulset ingester-zone-a has 3 non-updated replicas and 1 non-ready replicas";
    for (const [name, own, other, expected] of [
      ["outdated pods of others are not waited for", surplus, { at: "prev" }, undefined],
      ["those that are not ready are", surplus, { at: "prev", pods: { 1: { ...prev, ready: false } } }, UNREADY],
      ["but not if another one stays", { ...surplus, pods: { 2: prev, 3: prev, 4: prev } }, { at: "prev" }, outdated],
      ["but not if it has none", { ...surplus, pods: {} }, { at: "prev" }, outdated],
      ["but not while it is paused: nobody waits for it", { ...surplus, ...paused }, { at: "prev" }, outdated],
    ] as const)
      it(name, () => {
        const zones = [zone(other), zone(own)];
        const [, shrinking] = zones;
        assert.ok(shrinking);
        assert.equal(refuseByHealth({ zones }, { zone: shrinking, size: 3, now: 0 })?.message, expected);
      });
  });

  for (const [name, traits, expected] of CASES)
    it(name, () =>
      assert.equal(refuseByHealth({ zones: [zone(traits)] }, { zone: SHRINKING, size: 3, now: 0 })?.message, expected),
    );
});
