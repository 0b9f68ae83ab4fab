/** Any input gets an answer below 500, causes no crash, and leaves no memory in use. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Webhook } from "../../functions/http/webhook.ts";
import { createNoDownscale } from "../../functions/downscale/no-downscale.ts";
import { createPodDeletion } from "../../functions/eviction/pod-deletion.ts";
import { createPhasedDefaults } from "../../functions/phased/phased-defaults.ts";
import { createPhasedValidation } from "../../functions/phased/phased-validation.ts";
import { createRaisePartition } from "../../functions/phased/raise-partition.ts";
import { createZpdbValidation } from "../../functions/budgets/zpdb-validation.ts";
import { systemClock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../infra/errors.ts";
import { createLog } from "../../infra/log.ts";
import { createMetrics } from "../../infra/metrics/metrics.ts";
import { visitEach } from "../../infra/slots.ts";
import { ANNOTATIONS, LABELS } from "../../reconciler/model/annotations.ts";
import { judged, NOT_NOW } from "../../reconciler/budget/verdict.ts";
import { reviewText, serve } from "./http.ts";
import { startPrepareDownscale } from "./stage.ts";
import { either, runs, some } from "../runs.ts";
import { make } from "../builders/objects.ts";
import { usedBytes } from "../used-bytes.ts";

/** A cluster without objects that refuses all writes. */
const cluster = new Proxy({} as Cluster, {
  get: () => async () => {
    throw new RolloutError("NotFound", "there is nothing");
  },
});
const podHttp = { send: async () => ({ status: 500, body: "" }) };
const tools = { cluster, clock: systemClock };
const WEBHOOKS: readonly Webhook[] = [
  createNoDownscale(tools),
  startPrepareDownscale({ ...tools, podHttp }),
  createZpdbValidation(),
  createPhasedDefaults(),
  createPhasedValidation(tools),
  createRaisePartition(),
  createPodDeletion({
    reserver: { reserve: async () => judged(NOT_NOW) },
    metrics: createMetrics().budgets,
    emitEvents: () => {},
  }),
];

const workload = (kind: string, replicas: number): object => ({
  apiVersion: "apps/v1",
  kind,
  metadata: {
    name: "web",
    namespace: "shop",
    labels: { "grafana.com/no-downscale": "true", "grafana.com/prepare-downscale": "true", "rollout-group": "g" },
    annotations: { "grafana.com/prepare-downscale-http-path": "p", "grafana.com/prepare-downscale-http-port": "1" },
  },
  spec: { replicas, serviceName: "web", template: { spec: { containers: [{ name: "c", image: "i" }] } } },
});
const common = {
  uid: "u",
  operation: "UPDATE",
  namespace: "shop",
  name: "web",
  dryRun: false,
  kind: { group: "apps", version: "v1", kind: "StatefulSet" },
  resource: { group: "apps", version: "v1", resource: "statefulsets" },
  userInfo: { username: "alice" },
};
const budget = make("ZoneAwarePodDisruptionBudget", "b", {
  namespace: "shop",
  spec: {
    maxUnavailable: 1,
    selector: { matchLabels: { a: "b" } },
    podNamePartitionRegex: "[a-z]+-zone-[a-z]-([0-9]+)",
    podNameRegexGroup: 1,
    crossZoneEvictionDelay: "5m",
  },
});
const SCALE = { apiVersion: "autoscaling/v1", kind: "Scale", spec: { replicas: 3 } };
const REAL: readonly object[] = [
  { ...common, oldObject: workload("StatefulSet", 3), object: workload("StatefulSet", 1) },
  { ...common, oldObject: SCALE, object: { ...SCALE, spec: { replicas: 1 } }, subResource: "scale" },
  { ...common, object: budget },
  {
    ...common,
    kind: { group: "zonewise.dev", version: "v1", kind: "RolloutGate" },
    resource: { group: "zonewise.dev", version: "v1", resource: "rolloutgates" },
    object: {
      metadata: { name: "errors", namespace: "shop" },
      spec: {
        group: "g",
        when: ["BetweenZones"],
        checks: [
          {
            name: "errors",
            query: { expr: 'sum(rate(x{pod=~"$(candidate_pods)"}[$(range)]))', url: "http://prometheus" },
            successWhen: "WithinBaseline",
            baseline: { expr: 'sum(x{pod=~"$(other_pods)"})', maxRatio: "2" },
          },
        ],
      },
    },
  },
  {
    ...common,
    operation: "DELETE",
    name: "web-0",
    kind: { group: "", version: "v1", kind: "Pod" },
    resource: { group: "", version: "v1", resource: "pods" },
    userInfo: { username: "alice", groups: ["system:authenticated"] },
    oldObject: {
      metadata: {
        name: "web-0",
        namespace: "shop",
        uid: "p",
        labels: { "rollout-group": "g" },
        annotations: { "zonewise/delete-by-hand": "no" },
        ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "web", uid: "s", controller: true }],
      },
      status: { phase: "Running" },
    },
  },
];

type Path = readonly (string | number)[];

/** The paths of every value in it. */
function pathsOf(value: unknown, at: Path = []): Path[] {
  const inside = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return [at, ...inside.flatMap(([key, below]) => pathsOf(below, [...at, key]))];
}

function replaceAt(root: unknown, [first, ...rest]: Path, value: unknown): unknown {
  if (first === undefined) return value;
  const copy: Record<string, unknown> = { ...(root as Record<string, unknown>) };
  copy[String(first)] = replaceAt(copy[String(first)], rest, value);
  return copy;
}

/** Numbers that JSON allows, at the limits of JavaScript and Go. */
const NUMBERS = ["1e999", "-0", "9223372036854775808", "1.0", "0.1e-400", "123456789".repeat(30)];
const strange = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom(
    null,
    "",
    "__proto__",
    "constructor",
    [],
    {},
    -1,
    2 ** 31,
    2 ** 53,
    1e300,
    "\u0000",
    "\ud800",
    "9".repeat(2000),
  ),
  fc.constantFrom(
    "(a+)+$",
    "(((a{30}){30}){30})",
    "((((((((((",
    "[".repeat(500),
    ".{0,999}".repeat(120),
    "(?i)(\\pL)".repeat(110),
  ),
  fc.constantFrom(...NUMBERS).map((written) => ({ $number: written })),
);
const paths = REAL.map((request) => pathsOf({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request }));

const mutated = fc
  .record({
    which: fc.nat(REAL.length - 1),
    changes: fc.array(fc.record({ at: fc.nat(), value: strange }), { minLength: 1, maxLength: 3 }),
  })
  .map(({ which, changes }) => {
    const start: unknown = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request: REAL[which] };
    const from = paths[which] ?? [];
    const review = changes.reduce((root, { at, value }) => replaceAt(root, from[at % from.length] ?? [], value), start);
    return (JSON.stringify(review) ?? "").replaceAll(/\{"\$number":"([^"]+)"\}/g, "$1");
  });

const broken = fc
  .record({ text: mutated, at: fc.nat(), bytes: fc.uint8Array({ minLength: 1, maxLength: 8 }) })
  .map(({ text, at, bytes }) => {
    const raw = Buffer.from(text);
    const cut = at % (raw.length + 1);
    return Buffer.concat([raw.subarray(0, cut), bytes, raw.subarray(cut)]);
  });

const COUNT = Math.ceil(runs(10_000) / WEBHOOKS.length);
const AT_ONCE = 8;

const LONG = "a-1".repeat(350_000);
const eachField = (value: string): object => ({
  podNamePartitionRegex: `(${value})`,
  crossZoneEvictionDelay: value,
  maxUnavailable: value,
});

/** Each of our annotations, with many digits. */
function annotated(replicas: number): object {
  const keys = [...Object.values(ANNOTATIONS), LABELS.minTimeBetweenZonesDownscale];
  const annotations = Object.fromEntries(keys.map((key) => [key, `${"9".repeat(1_000_000 / keys.length)}h`]));
  const { metadata, ...rest } = workload("StatefulSet", replicas) as { metadata: object };
  return { ...rest, metadata: { ...metadata, annotations } };
}

const deep = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
const HUGE: readonly [string, () => string | Buffer][] = [
  ["5 MB", () => Buffer.alloc(5_000_000, "a")],
  ["an object 300,000 deep", () => reviewText("HERE").replace('"HERE"', `{"uid":"u","object":${deep(300_000)}}`)],
  [
    "a budget 300,000 deep",
    () =>
      reviewText("HERE").replace(
        '"HERE"',
        `{"uid":"u","object":{"kind":"ZoneAwarePodDisruptionBudget","spec":${deep(300_000)}}}`,
      ),
  ],
  ["a list 900,000 deep", () => "[".repeat(900_000)],
  [
    "200,000 labels",
    () => reviewText({ ...common, oldObject: { ...workload("StatefulSet", 3), metadata: { labels: many(200_000) } } }),
  ],
  ["annotations of 2 MB", () => reviewText({ ...common, oldObject: annotated(3), object: annotated(1) })],
  [
    "names of 2 MB",
    () =>
      reviewText({
        ...common,
        namespace: LONG,
        name: LONG,
        oldObject: SCALE,
        object: { ...SCALE, spec: { replicas: 1 } },
        subResource: "scale",
      }),
  ],
  [
    "a budget whose fields are of 300 kB each",
    () =>
      reviewText({
        ...common,
        object: { ...budget, spec: { ...budget.spec, ...eachField(`${"9".repeat(300_000)}h`) } },
      }),
  ],
  [
    "a budget of 100,000 labels",
    () =>
      reviewText({
        ...common,
        object: { ...budget, spec: { ...budget.spec, selector: { matchLabels: many(100_000) } } },
      }),
  ],
  [
    "the maximum number of replicas",
    () =>
      reviewText({ ...common, oldObject: workload("StatefulSet", 2 ** 31 - 1), object: workload("StatefulSet", 0) }),
  ],
];

function many(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]));
}

/** Of a whole run: few reviews show nothing, and a full collection takes long. */
const memory = either(usedBytes, () => 0);

for (const webhook of WEBHOOKS)
  describe(`${webhook.name} and bad input`, () => {
    const quiet = { log: createLog({ level: "error", write: () => {}, now: () => new Date() }) };

    it(`answers ${COUNT} mutated reviews below 500 and keeps nothing of them`, async (t) => {
      const { post } = await serve(t, webhook, quiet);
      const bodies = fc.sample(fc.oneof({ weight: 4, arbitrary: mutated }, { weight: 1, arbitrary: broken }), {
        numRuns: Math.ceil(COUNT),
        seed: 4,
      });
      const statuses = new Map<number, number>();
      const send = (part: typeof bodies): Promise<void> =>
        visitEach(part, { atOnce: AT_ONCE }, async (body) => {
          const { status } = await post(body, { query: "?timeout=10s" });
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        });
      const middle = Math.ceil(bodies.length / 2);
      await send(bodies.slice(0, middle));
      const half = memory();
      await send(bodies.slice(middle));
      const growth = memory() - half;
      assert.deepEqual([...statuses.keys()].toSorted(), [200, 400]);
      assert.ok((statuses.get(200) ?? 0) > COUNT * 0.3, "hardly any review reached the handler");
      assert.ok(growth < 3_000_000, `${growth} bytes more`);
    });

    for (const [name, body] of some(HUGE))
      it(`answers ${name} below 500`, async (t) => {
        const { post } = await serve(t, webhook, quiet);
        const { status } = await post(body(), { query: "?timeout=10s" });
        assert.ok(status < 500, String(status));
      });
  });
