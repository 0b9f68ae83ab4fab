/** What prepare-downscale judges, which pods it calls, and what it records (§4). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AdmissionRequest } from "../../../functions/http/webhook.ts";
import { statefulSetObject, type ZoneTraits } from "../../builders/zones.ts";
import { admit } from "../../reconciler/downscale/adapter.ts";
import { ago, explain, factsOf, HTTP, judged, LAST, type More, NOW, shrink } from "../../reconciler/downscale/scene.ts";
import { reviewOf, startPrepareDownscale } from "../stage.ts";

const A = "ingester-zone-a";
const LABEL = "grafana.com/prepare-downscale";
const POSTS = [`POST ${A}-2`, `POST ${A}-1`];
const apps = (kind: string, resource: string): Partial<AdmissionRequest> => ({
  resource: { group: "apps", version: "v1", resource },
  oldObject: { ...statefulSetObject(judged({})), kind },
  object: { ...statefulSetObject(judged({ replicas: 1 })), kind },
});

describe("a request that is no downscale of a StatefulSet", () => {
  const decode = (which: string, why: string) => `can't decode ${which} object, allowing the change, err: ${why}`;
  const CASES: readonly [string, to: number | null, More, warning?: string][] = [
    ["grows it", 5, {}],
    ["leaves it", 3, {}],
    ["leaves it through its scale", 3, { viaScale: true }],
    ["is a dry run", 1, { review: { dryRun: true } }],
    ["has no replicas", null, {}, "old/new replicas is nil, allowing the change"],
    ["has an object of no kind", 1, { review: { object: "text" } }, decode("new", "it has no apiVersion and kind")],
    [
      "is of a Deployment",
      1,
      { review: apps("Deployment", "deployments") },
      "unsupported type apps/v1, Kind=Deployment, allowing the change",
    ],
    [
      "is of a DaemonSet",
      1,
      { review: apps("DaemonSet", "daemonsets") },
      decode("old", "unsupported type apps/v1, Kind=DaemonSet"),
    ],
    [
      "has the kind of what every object inherits",
      1,
      { review: apps("constructor", "constructors") },
      decode("old", "unsupported type apps/v1, Kind=constructor"),
    ],
    [
      "is of the scale of a Deployment",
      1,
      { viaScale: true, review: { resource: { group: "apps", version: "v1", resource: "deployments" } } },
      "unsupported resource deployments, allowing the change",
    ],
    [
      "is of the scale of one that is gone",
      1,
      { viaScale: true, review: { name: "gone" } },
      "statefulsets gone not found, allowing the change",
    ],
  ];
  for (const [name, to, more, warning] of CASES)
    it(`is allowed, with a warning if it cannot be judged: it ${name}`, async () => {
      const { allowed, warnings, called } = await ask(to, more);
      assert.deepEqual([allowed, warnings, called], [true, warning === undefined ? undefined : [warning], []]);
    });

  for (const replicas of ["3", 2 ** 31, 1.5])
    it(`is allowed with a warning: ${JSON.stringify(replicas)} replicas`, async () => {
      const oldObject = { apiVersion: "apps/v1", kind: "StatefulSet", metadata: {}, spec: { replicas } };
      assert.equal((await ask(1, { review: { oldObject } })).reason, "Unreadable");
    });

  async function ask(to: number | null, { viaScale, review }: More) {
    if (to !== null) return await shrink(to, [{}], { ...(viaScale && { viaScale }), ...(review && { review }) });
    const facts = factsOf([{}]);
    return await admit(facts, reviewOf(facts.statefulSets[0] ?? {}, to, { namespace: "test" }));
  }

  it("is read without the labels of others, of however many", async () => {
    const labels = Object.defineProperty({ [LABEL]: "false" }, "other", {
      enumerable: true,
      get: () => assert.fail("it was read"),
    });
    const oldObject = { apiVersion: "apps/v1", kind: "StatefulSet", metadata: { labels }, spec: { replicas: 3 } };
    const object = { ...oldObject, spec: { replicas: 3 } };
    assert.equal((await shrink(3, [{}], { review: { oldObject, object } })).reason, "NoDownscale");
  });
});

const SEVEN_TO_NINE = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [i, i < 7 ? null : {}]));

describe("the pods that are prepared", () => {
  const CASES: readonly [string, ZoneTraits, string][] = [
    ["not those of a StatefulSet without the label", { labels: { [LABEL]: "yes" } }, "NotLabelled"],
    [
      "not those that no-downscale protects, whatever the other webhook says",
      { labels: { "grafana.com/no-downscale": "true" } },
      "NoDownscaleLabel: it has the label 'grafana.com/no-downscale=true'",
    ],
    [
      "not without a port",
      { annotations: { [`${HTTP}-port`]: "" } },
      `PreparationUnknown: the ${HTTP}-port annotation is not set or empty.`,
    ],
    [
      "not without a path",
      { annotations: { [`${HTTP}-path`]: "" } },
      `PreparationUnknown: the ${HTTP}-path annotation is not set or empty.`,
    ],
    [
      "not those of a zone whose group has no name",
      { group: "" },
      "GroupNameEmpty: its label rollout-group is empty: give it the name of its group, or remove it.",
    ],
    ["not without a service", { serviceName: "" }, "PreparationUnknown: the serviceName is not set or empty."],
    ...["x@127.0.0.1:1/admin?", "evil.example/", "a b", "a.b", "A", "-a", "a".repeat(64)].map(
      (serviceName): [string, ZoneTraits, string] => [
        `not at another host, by way of serviceName ${serviceName}`,
        { serviceName },
        `PreparationUnknown: the serviceName ${JSON.stringify(serviceName)} is not a DNS label.`,
      ],
    ),
    ...["http", "x@elsewhere.example:80"].map((port): [string, ZoneTraits, string] => [
      `not at another host, by way of port ${port}`,
      { annotations: { [`${HTTP}-port`]: port } },
      `PreparationUnknown: the ${HTTP}-port annotation is not a port.`,
    ]),
  ];
  for (const [name, own, why] of CASES)
    it(name, async () => {
      const decision = await shrink(1, [own]);
      assert.deepEqual([explain(decision), decision.called], [why, []]);
    });

  for (const viaScale of [false, true])
    it(`${viaScale ? "through the scale " : ""}are the last ones, in descending order, and the downscale is recorded`, async () => {
      const decision = await shrink(1, [{ start: 7, pods: SEVEN_TO_NINE }], { viaScale, answers: () => 204 });
      assert.deepEqual(decision.called, [`POST ${A}-9`, `POST ${A}-8`]);
      assert.equal(
        decision.message,
        `downscale of statefulsets/${A} in test from 3 to 1 replicas is allowed -- all pods successfully prepared for shutdown.`,
      );
      const { at } = decision.pending[A] ?? assert.fail();
      assert.equal(at, ago(0));
      const value = { path: "/metadata/annotations/grafana.com~1last-downscale", op: "add", value: ago(0) };
      assert.deepEqual(decision.patch, viaScale ? undefined : [value]);
      assert.deepEqual(
        decision.calls.filter((call) => call.startsWith("patch") || call.startsWith("change")),
        [],
      );
    });

  for (const path of ["a/b?c", "/a/b?c", "//a/b?c", "///a/b?c"])
    it(`are called with one slash before the path ${path}`, async () => {
      const { requests } = await shrink(2, [{ annotations: { [`${HTTP}-path`]: path } }]);
      const url = `http://${A}-2.${A}.test.svc.cluster.local.:8080/a/b?c`;
      assert.partialDeepStrictEqual(requests, [
        { url, namespace: "test", headers: { "content-type": "application/json" } },
      ]);
    });

  it("not those of an object that has changed since it was read: the API server refuses it", async () => {
    const { metadata, ...rest } = statefulSetObject(judged({ replicas: 1 }));
    const review = { object: { ...rest, metadata: { ...metadata, resourceVersion: "7" } } };
    const { allowed, called } = await shrink(1, [{}], { review });
    assert.deepEqual([allowed, called], [true, []]);
  });

  for (const version of ["0", "00", "01"])
    for (const viaScale of [false, true])
      it(`those of a ${viaScale ? "Scale" : "StatefulSet"} with resourceVersion ${version}, which the API server stores`, async () => {
        const { metadata, spec, ...type } = statefulSetObject(judged({}));
        const at = (resourceVersion: string, replicas: number): object => ({
          ...(viaScale ? { apiVersion: "autoscaling/v1", kind: "Scale" } : type),
          metadata: { ...metadata, resourceVersion },
          spec: { ...spec, replicas },
        });
        const decision = await shrink(2, [{}], { viaScale, review: { oldObject: at("1", 3), object: at(version, 2) } });
        assert.deepEqual([decision.reason, decision.called], ["Prepared", [`POST ${A}-2`]]);
      });

  it("after an answer of 500 all are told that they stay, and the downscale is denied", async () => {
    const decision = await shrink(1, [{}], { answers: (method) => (method === "POST" ? 500 : 200) });
    assert.equal(
      explain(decision),
      "PodsNotPrepared: one or more pods failed to prepare for shutdown: zone-a-2 at http://zone-a-2.zone-a.test.svc.cluster.local.:8080/prepare: it answered 500.",
    );
    assert.deepEqual(
      decision.events.map(({ regarding: { kind, name }, type, reason, message }) => [
        kind,
        name,
        type,
        reason,
        message,
      ]),
      [["StatefulSet", A, "Warning", "PrepareFailed", decision.message]],
    );
    const deletes = decision.called.filter((call) => call.startsWith("DELETE"));
    assert.deepEqual(deletes.toSorted(), [`DELETE ${A}-1`, `DELETE ${A}-2`]);
    assert.deepEqual([decision.patch, decision.pending], [undefined, {}]);
  });
});

describe("while the API server fails", () => {
  const MESSAGES: readonly [string, More, string][] = [
    [
      "a StatefulSet that cannot be read is not scaled down: its pods may need preparation",
      { viaScale: true, failing: ["get statefulsets"] },
      "ParentUnknown: finding the statefulset failed.",
    ],
    [
      "nor one whose group cannot be read",
      { failing: ["list statefulsets"] },
      "GroupUnknown: finding other statefulsets failed.",
    ],
    [
      "nor while the times of downscales cannot be read",
      { failing: ["get configmaps"] },
      "DownscalesUnknown: loading zones failed.",
    ],
    [
      "nor while the pods of the other zones cannot be read",
      { failing: ["list pods"] },
      "ZonesUnknown: an error occurred while checking whether StatefulSets have non-updated replicas",
    ],
    ...["get leases", "create leases"].map((call): [string, More, string] => [
      `nor while the Lease cannot be taken: ${call}`,
      { failing: [call] },
      "LeaseUnavailable: taking the lease of its rollout group failed.",
    ]),
  ];
  for (const [name, more, why] of MESSAGES)
    it(`${name}, and its message is not repeated`, async () => {
      const decision = await shrink(1, ["nnn", "nnn"], more);
      assert.deepEqual([explain(decision), decision.called], [why, []]);
    });

  it("a downscale whose time cannot be stored is undone", async () => {
    const facts = { isTracked: true, tracker: {}, viaScale: true, failing: ["replace configmaps"] };
    const decision = await shrink(1, [{}], facts);
    assert.equal(explain(decision), "NotRecorded: setting downscale timestamp in the zone ConfigMap failed.");
    assert.deepEqual(decision.called.toSorted(), [`DELETE ${A}-1`, `DELETE ${A}-2`, ...POSTS.toSorted()]);
    assert.deepEqual(decision.pending, {});
  });
});

describe("other ordinals (spec.ordinals.start)", () => {
  type Ordinals = readonly [start: number, replicas: number];
  const CASES: readonly [string, Ordinals, Ordinals, allowed: boolean, labels?: Record<string, string>][] = [
    ["that begin higher take the first pod, which nobody prepares", [0, 3], [1, 3], false],
    ["even if the last pod stays, and its preparation would be for the wrong one", [0, 3], [1, 2], false],
    ["that begin lower take the last pod", [1, 3], [0, 3], false],
    ["that begin lower beside more replicas take no pod", [1, 3], [0, 4], true],
    ["of a StatefulSet without pods take none", [0, 0], [1, 0], true],
    ["of a StatefulSet whose pods are not prepared are its own business", [0, 3], [1, 3], true, { [LABEL]: "false" }],
  ];
  for (const [name, before, after, allowed, labels = {}] of CASES)
    it(`${name}: ${allowed ? "allowed" : "refused"}`, async () => {
      const at = ([start, replicas]: Ordinals): object => statefulSetObject(judged({ start, replicas, labels }));
      const review = { oldObject: at(before), object: at(after) };
      const decision = await shrink(after[1], [{ replicas: before[1] }], { review });
      const message =
        `change of spec.ordinals.start of statefulsets/${A} in test from ${before[0]} to ${after[0]} is not allowed because pods would go ` +
        `that are not prepared for shutdown; scale it to 0 or remove the label ${LABEL} first.`;
      assert.deepEqual(
        [decision.allowed, decision.message, decision.called],
        [allowed, allowed ? undefined : message, []],
      );
    });
});

describe("the record of a downscale", () => {
  it("is in the answer for a StatefulSet that has no annotations yet, too", async () => {
    const { metadata, ...rest } = statefulSetObject(judged({ replicas: 1 }));
    const { annotations: _, ...bare } = metadata ?? {};
    const object = { ...rest, metadata: bare };
    const { patch } = await shrink(1, [{}], { review: { object } });
    assert.deepEqual(patch, [{ op: "add", path: "/metadata/annotations", value: { [LAST]: ago(0) } }]);
  });

  const entry = (hours: number, more: object = {}): string => JSON.stringify({ lastDownscaled: ago(hours), ...more });

  it("in the zone tracker keeps the other entries, of other groups and unreadable ones too", async () => {
    const others = { "store-zone-a": "not ours", "ingester-zone-c": entry(1) };
    const { tracker, patch } = await shrink(1, [{}], { isTracked: true, tracker: { [A]: entry(1), ...others } });
    assert.deepEqual([tracker, patch], [{ ...others, [A]: entry(0, { before: ago(1) }) }, undefined]);
  });

  it("in a new zone tracker begins with every zone of the group scaled down now, so that the first one may have to wait", async () => {
    const labels = { "grafana.com/min-time-between-zones-downscale": "2h" };
    const decision = await shrink(1, [{}, { labels }], { isTracked: true });
    assert.match(
      explain(decision) ?? "",
      /^MinTimeNotElapsed: statefulset zone-b was downscaled at .* and is labelled to wait 2h0m0s between zone downscales$/,
    );
    assert.deepEqual(decision.tracker, { [A]: entry(0), "ingester-zone-b": entry(0) });
  });

  for (const isTracked of [false, true])
    it(`of a zone with the name of what every object inherits finds no earlier downscale${isTracked ? " in the zone tracker" : ""}`, async () => {
      const facts = isTracked ? { isTracked, tracker: {} } : {};
      const decision = await shrink(1, [{ name: "constructor" }], facts);
      assert.equal(decision.reason, "Prepared");
      assert.equal(decision.pending["constructor"]?.at, ago(0));
      assert.deepEqual(Object.keys(decision.tracker), isTracked ? ["constructor"] : []);
    });

  for (const [group, owners] of [
    ["ingester", undefined],
    [undefined, [{ apiVersion: "apps/v1", kind: "StatefulSet", name: A, uid: `uid-${A}` }]],
  ] as const)
    it(`is in a Lease ${group ? "of the group, which outlives the StatefulSet" : "of a StatefulSet without a group, which is deleted with it"}`, async () => {
      const facts = factsOf([{}], { isTracked: true });
      const statefulSets = facts.statefulSets.map(({ metadata = {}, ...set }) => {
        const { "rollout-group": _, ...labels } = metadata.labels ?? {};
        return { ...set, metadata: { ...metadata, labels: group ? (metadata.labels ?? {}) : labels } };
      });
      const decision = await shrink(1, [], { ...facts, statefulSets });
      assert.deepEqual([decision.called, decision.leaseOwners], [POSTS, owners]);
      assert.deepEqual(decision.tracker, { [A]: entry(0, group && { before: ago(0) }) });
    });
});

it("an error denies a downscale and nothing else", () => {
  const cluster = {} as Parameters<typeof startPrepareDownscale>[0]["cluster"];
  const webhook = startPrepareDownscale({
    cluster,
    clock: { now: () => NOW, monotonic: () => NOW, sleep: async () => {} },
  });
  const zone = statefulSetObject({});
  const fault = new Error("at /secret/path.ts");
  assert.match(
    webhook.onFault(fault, reviewOf(zone, 1)).message ?? "",
    / is not allowed because an error occurred while its pods were prepared for shutdown\.$/,
  );
  assert.equal(webhook.onFault(fault, reviewOf(zone, 5)).allowed, true);
});
