/** 12.5, in both modes: with the time in an annotation and with the zone tracker. */
import assert from "node:assert/strict";
import { describe, it, test, type TestContext } from "node:test";
import { type DownscaleRecord, recordInAnnotation, recordInTracker } from "../../functions/downscale-record.ts";
import type { AdmissionRequest, Answer, Webhook } from "../../functions/handler.ts";
import { createPrepareDownscale } from "../../functions/prepare-downscale.ts";
import { systemClock } from "../../infra/clock.ts";
import type { StatefulSet } from "../../infra/resources.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { ask, createZone, type Pods, playPods, reviewOf, scaleReviewOf, type Script, setStage, type Stage } from "./stage.ts";

const TRACKER = "tracker";
const A = "ingester-zone-a";
const B = "ingester-zone-b";
const MIN_TIME = "grafana.com/min-time-between-zones-downscale";
const LAST = "grafana.com/last-downscale";
const HOUR = 3_600_000;

const MODES: readonly [string, (stage: Stage) => DownscaleRecord][] = [
  ["annotation mode", ({ cluster }) => recordInAnnotation({ cluster, clock: systemClock })],
  ["tracker mode", ({ cluster }) => recordInTracker({ cluster, clock: systemClock }, TRACKER)],
];

interface Play extends Stage, Pods {
  readonly webhook: Webhook;
  readonly record: DownscaleRecord;
}

async function play(t: TestContext, recordOf: (stage: Stage) => DownscaleRecord, script?: Script): Promise<Play> {
  const stage = await setStage(t);
  const pods = await playPods(t, script);
  const record = recordOf(stage);
  const tools = { cluster: stage.cluster, podHttp: pods.podHttp, clock: systemClock, clusterDomain: "cluster.local.", record };
  return { ...stage, ...pods, record, webhook: createPrepareDownscale(tools) };
}

/** The times of the tracker, as written; a zone without an entry was never scaled down. */
function track({ emulator }: Stage, times: Readonly<Record<string, number | string>>): void {
  const data = Object.fromEntries(
    Object.entries(times).map(([zone, at]) => [
      zone,
      typeof at === "string" ? at : JSON.stringify({ lastDownscaled: formatTimestamp(at) }),
    ]),
  );
  emulator.store.create("configmaps", {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: TRACKER, namespace: "default" },
    data,
  });
}

function tracked({ emulator }: Stage): Record<string, string> {
  return (emulator.store.get("configmaps", "default", TRACKER) as unknown as { data?: Record<string, string> } | undefined)?.data ?? {};
}

/** When the zone was last scaled down, wherever that is: in the patch of the answer, on the object, or in the tracker. */
function recorded(stage: Stage, zone: string, answer?: Answer): string | undefined {
  const [patch] = (answer?.patch ?? []) as { op: string; path: string; value: string }[];
  if (patch) {
    assert.equal(patch.op, "add");
    assert.equal(patch.path, "/metadata/annotations/grafana.com~1last-downscale");
    return patch.value;
  }
  const entry = tracked(stage)[zone];
  if (entry !== undefined) return (JSON.parse(entry) as { lastDownscaled: string }).lastDownscaled;
  return stage.emulator.store.get("statefulsets.apps", "default", zone)?.metadata.annotations?.[LAST];
}

function isRecent(timestamp: string | undefined): void {
  const age = Date.now() - Date.parse(timestamp ?? "");
  assert.ok(age > -1000 && age < 30_000, `${timestamp} is not now`);
}

const because = (zone: string, why: string, to = 1): string =>
  `downscale of statefulsets/${zone} in default from 3 to ${to} replicas is not allowed because ${why}`;

for (const [mode, recordOf] of MODES) {
  const isTracker = mode === "tracker mode";
  /** So that a zone counts as never scaled down, in either mode. */
  const settle = (stage: Stage): void => {
    if (isTracker) track(stage, {});
  };
  /** Writes down in this mode that the zone was scaled down so long ago. */
  const wasDownscaled = (ageMs: number): { annotations: Record<string, string> } => ({
    annotations: isTracker ? {} : { [LAST]: formatTimestamp(Date.now() - ageMs) },
  });

  describe(`prepare-downscale in ${mode}`, () => {
    it("P01, P02, P08: what is no downscale, or a dry run, passes untouched", async (t) => {
      const stage = await play(t, recordOf);
      const zone = createZone(stage, A);
      for (const request of [reviewOf(zone, 5), reviewOf(zone, 3), reviewOf(zone, 1, { dryRun: true }), scaleReviewOf(zone, 3)])
        assert.equal((await ask(stage.webhook, request)).allowed, true);
      assert.deepEqual([stage.seen, stage.calls], [[], []]);
    });

    for (const status of [200, 204])
      it(`P03, P04: pods that answer ${status} are prepared, the last first, and the time is written down`, async (t) => {
        const stage = await play(t, recordOf, () => status);
        settle(stage);
        const zone = createZone(stage, A);
        const answer = await ask(stage.webhook, reviewOf(zone, 1));
        const what = `downscale of statefulsets/${A} in default from 3 to 1 replicas`;
        assert.equal(answer.message, `${what} is allowed -- all pods successfully prepared for shutdown.`);
        assert.equal(answer.allowed, true);
        assert.deepEqual(stage.seen.toSorted(), [`POST ${A}-1`, `POST ${A}-2`]);
        isRecent(recorded(stage, A, answer));
        const [head] = stage.heads;
        assert.match(head?.url ?? "", /^http:\/\/ingester-zone-a-\d\.ingester\.default\.svc\.cluster\.local\.:\d+\/prepare$/);
        assert.partialDeepStrictEqual(head?.headers, { "content-type": "application/json", "content-length": "0", "x-cluster": "default" });
      });

    it("a Scale is prepared as its StatefulSet is, and the time is written down apart", async (t) => {
      const stage = await play(t, recordOf);
      settle(stage);
      const zone = createZone(stage, A);
      const answer = await ask(stage.webhook, scaleReviewOf(zone, 1));
      assert.deepEqual([answer.allowed, answer.patch], [true, undefined]);
      assert.deepEqual(stage.seen.toSorted(), [`POST ${A}-1`, `POST ${A}-2`]);
      isRecent(recorded(stage, A));
    });

    it("P05: waits for a zone that was scaled down just now and is labelled to be waited for", async (t) => {
      const stage = await play(t, recordOf);
      const zone = createZone(stage, A);
      createZone(stage, B, { labels: { [MIN_TIME]: "12h" }, ...wasDownscaled(0) });
      if (isTracker) track(stage, { [B]: Date.now() });
      const answer = await ask(stage.webhook, reviewOf(zone, 1));
      assert.equal(answer.allowed, false);
      assert.match(
        answer.message ?? "",
        /1 replicas is not allowed because statefulset ingester-zone-b was downscaled at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC and is labelled to wait 12h0m0s between zone downscales$/,
      );
      assert.deepEqual(stage.seen, []);
    });

    const PATIENT: readonly [string, number, string | undefined][] = [
      ["was scaled down long ago", 13 * HOUR, "12h"],
      ["is not labelled", 0, undefined],
    ];
    for (const [name, age, label] of PATIENT)
      it(`does not wait for a zone that ${name}`, async (t) => {
        const stage = await play(t, recordOf);
        const zone = createZone(stage, A, { labels: { [MIN_TIME]: "12h" }, ...wasDownscaled(0) });
        createZone(stage, B, { labels: label ? { [MIN_TIME]: label } : {}, ...wasDownscaled(age) });
        if (isTracker) track(stage, { [A]: Date.now(), [B]: Date.now() - age });
        assert.equal((await ask(stage.webhook, reviewOf(zone, 1))).allowed, true);
      });

    const unreadable = isTracker
      ? "parsing parsing downscale timestamps from the zone ConfigMap failed."
      : "parsing downscale annotations failed.";
    for (const [what, label, time] of [
      ["a time", "12h", "yesterday"],
      ["a label", "soon", formatTimestamp(Date.now())],
    ] as const)
      it(`does not guess at ${what} of another zone that cannot be read`, async (t) => {
        const stage = await play(t, recordOf);
        const zone = createZone(stage, A);
        createZone(stage, B, { labels: { [MIN_TIME]: label }, annotations: isTracker ? {} : { [LAST]: time } });
        if (isTracker) track(stage, { [B]: JSON.stringify({ LASTDOWNSCALED: time }) });
        assert.equal((await ask(stage.webhook, reviewOf(zone, 1))).message, because(A, unreadable));
      });

    it("P06: pods that answer 500 are all told that it was nothing, and it is denied", async (t) => {
      const stage = await play(t, recordOf, (method) => (method === "POST" ? 500 : 200));
      settle(stage);
      const zone = createZone(stage, A);
      const answer = await ask(stage.webhook, reviewOf(zone, 1));
      assert.equal(answer.message, because(A, "one or more pods failed to prepare for shutdown."));
      assert.deepEqual(stage.seen.filter((request) => request.startsWith("DELETE")).toSorted(), [`DELETE ${A}-1`, `DELETE ${A}-2`]);
      assert.equal(recorded(stage, A, answer), undefined);
    });

    it("P07: what cannot be written down is undone", async (t) => {
      const stage = await play(t, recordOf);
      settle(stage);
      const zone = createZone(stage, A);
      const [verb, resource] = isTracker ? (["update", "configmaps"] as const) : (["patch", "statefulsets.apps"] as const);
      stage.emulator.faults.inject({ verb, resource, effect: { kind: "error" } });
      const answer = await ask(stage.webhook, scaleReviewOf(zone, 1));
      assert.equal(answer.message, because(A, stage.record.words.unsaved));
      assert.deepEqual(stage.seen.toSorted(), [`DELETE ${A}-1`, `DELETE ${A}-2`, `POST ${A}-1`, `POST ${A}-2`]);
    });

    it("P09, P12, P13: waits for other zones with outdated or unready pods, whatever its own", async (t) => {
      const stage = await play(t, recordOf);
      settle(stage);
      const zone = createZone(stage, A, { ready: 1 });
      const other = createZone(stage, B, { replicas: 1, updated: 0 });
      const ask1 = async (): Promise<string | undefined> => (await ask(stage.webhook, reviewOf(zone, 1))).message;
      assert.equal(await ask1(), because(A, `statefulset ${B} has 1 non-updated replicas and 0 non-ready replicas`));
      const { store } = stage.emulator;
      store.remove("pods", "default", `${B}-0`);
      assert.equal(await ask1(), because(A, `statefulset ${B} has 1 non-updated replicas and 1 non-ready replicas`));
      assert.deepEqual(stage.seen, []);
      store.remove("statefulsets.apps", "default", other.metadata?.name ?? "");
      assert.match((await ask1()) ?? "", /successfully prepared/);
    });

    it("Z07, P21: of two zones at once exactly one goes on; another group is not held up, and the other zone has its turn after", async (t) => {
      const held = Promise.withResolvers<number>();
      const arrived = Promise.withResolvers<void>();
      const stage = await play(t, recordOf, (_method, pod) => {
        if (!pod.startsWith(A)) return 200;
        arrived.resolve();
        return held.promise;
      });
      settle(stage);
      const [a, b] = [createZone(stage, A), createZone(stage, B)];
      const stranger = createZone(stage, "store-zone-a", { group: "store" });
      const first = ask(stage.webhook, reviewOf(a, 2));
      await arrived.promise;
      const second = await ask(stage.webhook, reviewOf(b, 2));
      assert.equal(second.message, because(B, `statefulset ${A} is already in process of updating replicas`, 2));
      assert.equal((await ask(stage.webhook, reviewOf(stranger, 2))).allowed, true);
      held.resolve(200);
      assert.equal((await first).allowed, true);
      assert.equal((await ask(stage.webhook, reviewOf(b, 2, { uid: "later" }))).allowed, true);
    });

    it("P21: two processes that race for two zones with a time between them let one through, also while its time is not stored yet", async (t) => {
      const one = await play(t, recordOf);
      settle(one);
      const other = createPrepareDownscale({ ...one, clock: systemClock, clusterDomain: "cluster.local." });
      const labels = { [MIN_TIME]: "12h" };
      const zones = [createZone(one, A, { labels }), createZone(one, B, { labels })] as const;
      const both = await Promise.all([ask(one.webhook, reviewOf(zones[0], 1)), ask(other, reviewOf(zones[1], 1))]);
      assert.deepEqual(both.map(({ allowed }) => allowed).toSorted(), [false, true]);
      const [winner, loser] = both[0].allowed ? [zones[0], zones[1]] : [zones[1], zones[0]];
      // The patch of the one that was let through has not been applied to anything.
      const later = await ask(other, reviewOf(loser, 1, { uid: "later" }));
      assert.match(later.message ?? "", /was downscaled at .* and is labelled to wait 12h0m0s between zone downscales$/);
      assert.equal((await ask(other, reviewOf(winner, 0, { uid: "again" }))).allowed, true);
      assert.deepEqual(new Set(one.seen.map((request) => request.slice(5, -2))), new Set([winner.metadata?.name]));
    });

    it("a Lease that was never released is waited for no longer than its time", async (t) => {
      const stage = await play(t, recordOf);
      settle(stage);
      const [a, b] = [createZone(stage, A), createZone(stage, B)];
      await ask(stage.webhook, reviewOf(a, 2));
      const { store } = stage.emulator;
      const [lease] = store.list("leases.coordination.k8s.io", "default");
      const left = (agoMs: number): void => {
        const renewTime = new Date(Date.now() - agoMs).toISOString().replace("Z", "000Z");
        const current = store.get("leases.coordination.k8s.io", "default", lease?.metadata.name ?? "");
        const spec = { holderIdentity: "crashed", leaseDurationSeconds: 10, acquireTime: renewTime, renewTime };
        store.update("leases.coordination.k8s.io", { ...current, spec } as never);
      };
      left(14_000);
      assert.equal((await ask(stage.webhook, reviewOf(b, 2))).allowed, false);
      left(16_000);
      assert.equal((await ask(stage.webhook, reviewOf(b, 2))).allowed, true);
    });

    it("hurries so that a pod that does not answer is undone, and the answer given, before the deadline", async (t) => {
      const stage = await play(t, recordOf, (method) => (method === "POST" ? new Promise(() => {}) : 200));
      settle(stage);
      const zone = createZone(stage, A);
      const answer = await ask(stage.webhook, reviewOf(zone, 1), 500);
      assert.equal(answer.message, because(A, "one or more pods failed to prepare for shutdown."));
      assert.deepEqual(stage.seen.slice(2).toSorted(), [`DELETE ${A}-1`, `DELETE ${A}-2`]);
    });

    it("undoes when its caller goes away", async (t) => {
      const gone = new AbortController();
      const stage = await play(t, recordOf, (method) => {
        if (method === "DELETE") return 200;
        gone.abort();
        return new Promise(() => {});
      });
      settle(stage);
      const context = { signal: gone.signal, deadlineAt: systemClock.monotonic() + 9000, log: { warn() {} } as never };
      const answer = await stage.webhook.handle(reviewOf(createZone(stage, A), 1), context);
      assert.equal(answer.allowed, false);
      assert.deepEqual(stage.seen.filter((request) => request.startsWith("DELETE")).toSorted(), [`DELETE ${A}-1`, `DELETE ${A}-2`]);
    });
  });
}

describe("whose pods are prepared at all", () => {
  const HTTP = "grafana.com/prepare-downscale-http";
  const CASES: readonly [string, Parameters<typeof createZone>[2], string | undefined][] = [
    ["not those of a StatefulSet without the label", { labels: { "grafana.com/prepare-downscale": "yes" } }, undefined],
    // Mutating webhooks run first: what the other one denies must not have been prepared.
    ["not those that no-downscale will keep", { labels: { "grafana.com/no-downscale": "true" } }, undefined],
    ["P19: not without a port", { annotations: { [`${HTTP}-port`]: undefined } }, `the ${HTTP}-port annotation is not set or empty.`],
    ["P19: not without a path", { annotations: { [`${HTTP}-path`]: "" } }, `the ${HTTP}-path annotation is not set or empty.`],
    ["P19: not without a service", { serviceName: "" }, "the serviceName is not set or empty."],
    ["not at a port that is none", { annotations: { [`${HTTP}-port`]: "http" } }, "one or more pods failed to prepare for shutdown."],
  ];
  for (const [name, traits, why] of CASES)
    it(name, async (t) => {
      const stage = await play(t, MODES[0]?.[1] as (stage: Stage) => DownscaleRecord);
      const answer = await ask(stage.webhook, reviewOf(createZone(stage, A, traits), 1));
      assert.deepEqual([answer.allowed, answer.message], [why === undefined, why && because(A, why)]);
      assert.deepEqual(stage.seen, []);
    });

  it("P20: not those of Deployments and strangers, which are allowed with a warning", async (t) => {
    const stage = await play(t, recordInAnnotationOf);
    const zone = createZone(stage, A);
    const as = (kind: string, resource: string): AdmissionRequest =>
      reviewOf({ ...zone, kind }, 1, { resource: { group: "apps", version: "v1", resource } });
    const warnings: readonly [AdmissionRequest, string][] = [
      [as("Deployment", "deployments"), "unsupported type apps/v1, Kind=Deployment, allowing the change"],
      [as("DaemonSet", "daemonsets"), "can't decode old object, allowing the change, err: unsupported type apps/v1, Kind=DaemonSet"],
      [
        scaleReviewOf(zone, 1, { resource: { group: "apps", version: "v1", resource: "deployments" } }),
        "unsupported resource deployments, allowing the change",
      ],
    ];
    for (const [request, warning] of warnings)
      assert.partialDeepStrictEqual(await ask(stage.webhook, request), { allowed: true, warnings: [warning] });
    const missing = await ask(stage.webhook, scaleReviewOf(zone, 1, { name: "gone" }));
    assert.match(missing.warnings?.[0] ?? "", /"gone" not found.*, allowing the change$/);
  });
});

const recordInAnnotationOf = MODES[0]?.[1] as (stage: Stage) => DownscaleRecord;

test("a StatefulSet that cannot be read is not scaled down: it may want its pods prepared", async (t) => {
  const stage = await play(t, recordInAnnotationOf);
  const zone = createZone(stage, A);
  stage.emulator.faults.inject({ verb: "get", resource: "statefulsets.apps", effect: { kind: "error" } });
  assert.equal((await ask(stage.webhook, scaleReviewOf(zone, 1))).message, because(A, "finding the statefulset failed."));
  assert.deepEqual(stage.seen, []);
});

describe("the annotation", () => {
  it("goes into the answer for a StatefulSet, also where the object has none yet", async (t) => {
    const stage = await play(t, recordInAnnotationOf);
    const zone = createZone(stage, A);
    const bare = structuredClone(reviewOf(zone, 1).object) as { metadata: { annotations?: object } };
    delete bare.metadata.annotations;
    const [patch] = (await ask(stage.webhook, reviewOf(zone, 1, { object: bare }))).patch as {
      path: string;
      value: Record<string, string>;
    }[];
    assert.equal(patch?.path, "/metadata/annotations");
    isRecent(patch?.value[LAST]);
    assert.equal(stage.calls.filter((call) => call.startsWith("PATCH apps")).length, 0);
  });

  it("is not written again for a Scale that the API server judges again, so that it does not conflict again", async (t) => {
    const stage = await play(t, recordInAnnotationOf);
    const zone = createZone(stage, A);
    const patches = (): number => stage.calls.filter((call) => call.startsWith("PATCH apps/v1/statefulsets")).length;
    assert.equal((await ask(stage.webhook, scaleReviewOf(zone, 1))).allowed, true);
    assert.equal((await ask(stage.webhook, scaleReviewOf(zone, 1, { uid: "again" }))).allowed, true);
    assert.equal(patches(), 1);
  });
});

describe("the zone tracker", () => {
  const recordOf = MODES[1]?.[1] as (stage: Stage) => DownscaleRecord;

  it("Z02, Z03: begins with every zone of the group scaled down now, so that the first one may have to wait", async (t) => {
    const stage = await play(t, recordOf);
    const zone = createZone(stage, A);
    createZone(stage, B, { labels: { [MIN_TIME]: "2h" } });
    const answer = await ask(stage.webhook, reviewOf(zone, 1));
    assert.match(
      answer.message ?? "",
      /statefulset ingester-zone-b was downscaled at .* and is labelled to wait 2h0m0s between zone downscales$/,
    );
    for (const name of [A, B]) isRecent(recorded(stage, name));
  });

  it("Z01, Z05: keeps the other entries, of other groups and unreadable ones too", async (t) => {
    const stage = await play(t, recordOf);
    const before = { [A]: Date.now() - HOUR, "store-zone-a": "not ours", "ingester-zone-c": Date.now() - HOUR };
    track(stage, before);
    const kept = { ...tracked(stage) };
    assert.equal((await ask(stage.webhook, reviewOf(createZone(stage, A), 1))).allowed, true);
    isRecent(recorded(stage, A));
    assert.deepEqual({ ...tracked(stage), [A]: undefined }, { ...kept, [A]: undefined });
  });

  it("is made for a zone without a group too, and not replaced", async (t) => {
    const stage = await play(t, recordOf);
    assert.equal((await ask(stage.webhook, reviewOf(createZone(stage, "lonely", { group: "" }), 1))).allowed, true);
    assert.equal((await ask(stage.webhook, reviewOf(createZone(stage, "lonelier", { group: "" }), 1))).allowed, true);
    assert.deepEqual(Object.keys(tracked(stage)).toSorted(), ["lonelier", "lonely"]);
  });

  it("takes two zones of different groups that are written down at once", async (t) => {
    const stage = await play(t, recordOf);
    track(stage, {});
    const zones = ["a", "b", "c", "d"].map((group) => createZone(stage, `${group}-zone-a`, { group }));
    const answers = await Promise.all(zones.map((zone) => ask(stage.webhook, reviewOf(zone, 1))));
    assert.deepEqual(
      answers.map(({ allowed }) => allowed),
      [true, true, true, true],
    );
    assert.equal(Object.keys(tracked(stage)).length, 4);
  });
});

test("a fault denies a downscale and nothing else", async (t) => {
  const { webhook } = await play(t, recordInAnnotationOf);
  const zone = { apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name: A }, spec: { replicas: 3 } } as unknown as StatefulSet;
  const fault = new Error("at /secret/path.ts");
  assert.equal(
    webhook.onFault(fault, reviewOf(zone, 1)).message,
    because(A, "an error occurred while its pods were prepared for shutdown."),
  );
  assert.equal(webhook.onFault(fault, reviewOf(zone, 5)).allowed, true);
});
