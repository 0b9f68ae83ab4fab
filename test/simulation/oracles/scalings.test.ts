/** The oracle of what a reconciler has read before it scales a zone, against histories that it must condemn. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { createScalingSafety } from "./scalings.ts";

const SETS = "/apis/apps/v1/namespaces/zonewise/statefulsets";
const TEMPLATE = "/apis/rollout-operator.grafana.com/v1/namespaces/zonewise/replicatemplates/ingester/scale";
const PREPARED = { labels: { "grafana.com/prepare-downscale": "true" } };
const TIMED = { labels: { "grafana.com/min-time-between-zones-downscale": "1m" } };
const TOLD = { "grafana.com/rollout-prepare-delayed-downscale-url": "http://pod/delayed" };
const MIRROR = { "grafana.com/rollout-mirror-replicas-from-resource-name": "ingester" };
const LEAVING = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const FORCED = { annotations: { "grafana.com/rollout-force-replicas": "1" } };

interface World {
  /** Of the zone that is scaled at 100 by a write that was sent at 90. */
  readonly metadata?: object;
  readonly to?: number;
  /** When the reconciler took the Lease, gave it back, and listed the zones of the group. */
  readonly heldSince?: number;
  readonly releasedAt?: number;
  /** Until when it has it. */
  readonly leftAt?: number;
  readonly askedAt?: number;
  /** When it read the zone tracker and the template, which asks for this. */
  readonly trackedAt?: number;
  readonly wanted?: number;
  /** What another zone loses, and since when; and since when one is admitted. */
  readonly lost?: readonly [since: number, loss: string];
  readonly admittedAt?: number;
  /** Since when a budget counts a pod of another zone as missing. */
  readonly missedAt?: number;
  /** Since when another zone's last downscale keeps it from shrinking. */
  readonly earlySince?: number;
  /** Since when its budget is invalid. */
  readonly brokenAt?: number;
  readonly isWhole?: boolean;
  /** When another zone begins to be deleted, and this one is changed by somebody else. */
  readonly deletedAt?: number;
  readonly changedAt?: number;
  /** When the reconciler reserves pods for it, and releases them; how its write is answered. */
  readonly reservedAt?: number;
  readonly freedAt?: number;
  readonly status?: number;
  /** A write to a zone gets no answer. */
  readonly unknownAt?: number;
  /** Another zone is scaled at this time. */
  readonly scaledAt?: number;
  /** When its last pass over all groups began, and when the same write was sent before. */
  readonly passedAt?: number;
  readonly triedAt?: number;
  /** The milliseconds that its write may take. */
  readonly limitMs?: number;
  /** What others make of the replicas that it writes with a time of the downscale, and when that time goes again. */
  readonly stored?: number;
  /** The pods that its status has since then. */
  readonly counted?: number;
  readonly restoredAt?: number;
  /** A fault has befallen a call. */
  readonly isLoud?: boolean;
}

const zone = (name: string, metadata: object, replicas: number, resourceVersion: string): KubeObject =>
  ({ metadata: { name, namespace: "zonewise", uid: name, resourceVersion, ...metadata }, spec: { replicas } }) as never;
const budget = (time: string | undefined): KubeObject =>
  ({
    metadata: { name: "ingester", namespace: "zonewise" },
    status: { disruptedPods: time === undefined ? {} : { "a-1+": { uid: "a", time } } },
  }) as never;

function scale(world: World): readonly string[] {
  const { metadata = {}, to = 1, heldSince = 10, releasedAt = -Infinity, askedAt = 20, isWhole = true } = world;
  const { lost, admittedAt = Infinity, status = 200, wanted, unknownAt = -Infinity } = world;
  const violations: string[] = [];
  let now = 0;
  let stored = budget(undefined);
  const actor = "reconciler-1";
  const before = zone("a", metadata, 2, "1");
  const timed = { ...metadata, annotations: { "grafana.com/last-downscale": "2026-01-01T00:00:00Z" } };
  const after = {
    ...zone("a", world.stored === undefined ? metadata : timed, world.stored ?? to, "5"),
    ...(world.counted !== undefined && { status: { replicas: world.counted } }),
  };
  let isWritten = false;
  let isRestored = false;
  const scalings = createScalingSafety({
    shape: { zones: ["a", "b"] },
    violated: (what) => violations.push(what),
    now: () => now,
    losses: {
      takesServing: (name: string, replicas: number) => name === "a" && replicas < 2,
      isWhole: () => isWhole,
      hasOutdated: () => false,
      find: (query: { losses: readonly string[]; before: number }) =>
        lost && lost[0] < query.before && query.losses.some((loss) => loss === lost[1]) ? `b ${lost[1]}` : undefined,
    } as never,
    reads: {
      listedAt: () => askedAt,
      askedAt: () => askedAt,
      passedAt: () => world.passedAt ?? 5,
      heldSince: () => (heldSince < Infinity && !(now > (world.leftAt ?? 1000)) ? heldSince : undefined),
      releasedAt: () => releasedAt,
      unknownAt: () => unknownAt,
    },
    setOf: () => (isRestored ? zone("a", metadata, 2, "6") : isWritten && world.stored !== undefined ? after : before),
    listBudgets: () => [stored],
    admittedBut: (_, at) => (admittedAt < at ? "a downscale of b is admitted" : undefined),
    missedBut: (_, __, at) => ((world.missedAt ?? Infinity) < at ? "b-1 is missing" : undefined),
    tooEarly: (_, __, at) => ((world.earlySince ?? Infinity) < at ? "b was scaled down just now" : undefined),
    wasInvalid: (at) => (world.brokenAt ?? Infinity) < at,
    isQuiet: () => world.isLoud !== true,
  });
  const event = (resource: string, object: KubeObject, previous?: KubeObject, by: string | undefined = actor) =>
    scalings.onEvent({ type: previous ? "MODIFIED" : "ADDED", resource, object, previous } as never, {
      actor: by,
      call: "",
      sentAt: now === 100 ? 90 : now,
    });
  const call = (method: string, path: string, body: string, code: number): void =>
    scalings.onAnswered({ actor, call: path, sentAt: now === 100 ? 90 : now }, method, path, body, code);
  const patch = (name: string): void =>
    call(
      "PATCH",
      `${SETS}/${name}?timeout=${world.limitMs ?? 1}ms`,
      JSON.stringify({
        metadata: { resourceVersion: "1", ...(world.stored !== undefined && { annotations: timed.annotations }) },
        spec: { replicas: to },
      }),
      status,
    );
  const reserve = (time: string | undefined) => (): void => {
    const previous = stored;
    stored = budget(time);
    event("zoneawarepoddisruptionbudgets.rollout-operator.grafana.com", stored, previous);
  };
  const steps: readonly (readonly [at: number | undefined, run: () => void])[] = [
    [
      0,
      () =>
        wanted !== undefined &&
        event(
          "replicatemplates.rollout-operator.grafana.com",
          { ...zone("ingester", {}, wanted, "2") },
          undefined,
          "human",
        ),
    ],
    [world.trackedAt, () => call("GET", "/api/v1/namespaces/zonewise/configmaps/tracker", "", 404)],
    [wanted === undefined ? undefined : 30, () => call("GET", TEMPLATE, "", 200)],
    [world.deletedAt, () => event("statefulsets.apps", zone("b", LEAVING, 2, "3"), zone("b", {}, 2, "2"), "human")],
    [world.changedAt, () => event("statefulsets.apps", zone("a", metadata, 2, "4"), before, "human")],
    [world.reservedAt, reserve("2026-01-01T00:00:00Z")],
    [world.freedAt, reserve(undefined)],
    [world.triedAt, () => patch("a")],
    [world.scaledAt, () => patch("b")],
    [
      100,
      () => {
        isWritten = status < 300;
        scalings.onSent(
          { actor, call: "", sentAt: 90 },
          "PATCH",
          `${SETS}/a`,
          JSON.stringify({ spec: { replicas: to } }),
        );
        if (isWritten) event("statefulsets.apps", after, before);
      },
    ],
    [100, () => patch("a")],
    [
      world.restoredAt,
      () => {
        isRestored = true;
        event("statefulsets.apps", zone("a", metadata, world.stored ?? to, "6"), after);
      },
    ],
    [20_000, () => event("events", zone("x", {}, 0, "6"))],
  ];
  for (const [at = Infinity, run] of steps.toSorted(([a = Infinity], [b = Infinity]) => a - b)) {
    now = at;
    if (at < Infinity) run();
  }
  return violations;
}

const CASES: readonly (readonly [string, World, RegExp | undefined])[] = [
  ["a downscale under the Lease, by a list of its own", {}, undefined],
  ["one without the Lease", { heldSince: Infinity }, /without the downscale Lease/],
  ["one by leave of a webhook, which takes it", { heldSince: Infinity, metadata: PREPARED }, undefined],
  ["one to forced replicas", { heldSince: Infinity, metadata: FORCED }, undefined],
  ["one by a list from before the Lease", { askedAt: 9 }, /by a list from before it took the Lease/],
  [
    "one whose Lease was given back meanwhile",
    { heldSince: Infinity, releasedAt: 95 },
    /given the downscale Lease back/,
  ],
  ["one while a pod of another zone ends", { lost: [19, "ends"] }, /has read that b ends/],
  ["one while its budget misses a pod of another", { missedAt: 19 }, /has read that b-1 is missing/],
  ["one that others make of another write meanwhile", { missedAt: 19, to: 2, stored: 1 }, undefined],
  ["one before it does", { missedAt: 21 }, undefined],
  ["one too early after another zone's", { earlySince: 19 }, /has read that b was scaled down just now/],
  ["one before another zone was scaled down", { earlySince: 21 }, undefined],
  ["one under an invalid budget", { brokenAt: 19 }, /has read that its budget is invalid/],
  ["one before its budget is", { brokenAt: 21 }, undefined],
  ["one before a pod of another ends", { lost: [21, "ends"] }, undefined],
  ["one while another zone is ill by itself", { lost: [19, "is no longer ready"] }, undefined],
  [
    "one that the webhook refuses for that",
    { lost: [19, "is no longer ready"], metadata: PREPARED },
    /no longer ready/,
  ],
  ["one for which the others may wait", { lost: [19, "is outdated"], metadata: PREPARED, isWhole: false }, undefined],
  ["one while pods of another are outdated", { lost: [19, "is outdated"], metadata: PREPARED }, /is outdated/],
  ["one while another is admitted", { admittedAt: 9 }, /has read that a downscale of b is admitted/],
  ["one before another is admitted", { admittedAt: 11 }, undefined],
  ["one without the times of others", { metadata: TIMED }, /without having read since when others may/],
  ["one with them", { metadata: TIMED, trackedAt: 30 }, undefined],
  ["one that the template does not want", { metadata: { annotations: MIRROR }, wanted: 2 }, /that the template has 2/],
  ["one that it wants", { metadata: { annotations: MIRROR }, wanted: 1 }, undefined],
  [
    "one whose delay cannot be read",
    { metadata: { annotations: { ...MIRROR, ...TOLD, "grafana.com/rollout-delayed-downscale": "soon" } } },
    /whose delay is soon/,
  ],
  [
    "one of which no pod is told",
    { metadata: { annotations: { ...MIRROR, "grafana.com/rollout-delayed-downscale": "soon" } } },
    undefined,
  ],
  [
    "one whose delay can",
    { metadata: { annotations: { ...MIRROR, ...TOLD, "grafana.com/rollout-delayed-downscale": "1h30m" } } },
    undefined,
  ],
  ["an upscale while a zone is being deleted", { to: 3, deletedAt: 19 }, /has read that b is being deleted/],
  ["an upscale before it is", { to: 3, deletedAt: 21 }, undefined],
  ["an upscale by an old version", { changedAt: 19, status: 409, to: 3 }, undefined],
  ["one by an old version", { changedAt: 19, status: 409 }, /by a version that it has read to be outdated/],
  ["one of a zone that changes meanwhile", { changedAt: 21, status: 409 }, undefined],
  ["one after another, without a list", { scaledAt: 50 }, /without another list since it scaled b/],
  ["one after another, with it", { scaledAt: 5 }, undefined],
  ["one that was on its way meanwhile", { scaledAt: 95 }, undefined],
  ["one whose reservation is released meanwhile", { reservedAt: 80, freedAt: 91 }, /released its reservation while/],
  [
    "one that is released although its write is unknown",
    { reservedAt: 70, unknownAt: 80, freedAt: 89 },
    /releases a-1\+, although its write may still take effect/,
  ],
  ["one that is refused again in a tick", { status: 403, triedAt: 40 }, /again in the tick in which it was refused/],
  ["one that is refused again in the next", { status: 403, triedAt: 40, passedAt: 50 }, undefined],
  ["one that ends before its Lease", { limitMs: 9_920 }, undefined],
  ["one that may end after it", { limitMs: 9_921 }, /may end after its downscale Lease has passed to another/],
  ["a Lease that is kept", { status: 403, leftAt: Infinity }, /keeps the downscale Lease after .* was refused/],
  ["one that is given back", { status: 403 }, undefined],
  ["one that is kept after a write that may be stored", { status: 500, leftAt: Infinity }, undefined],
  ["a time that is left though nothing happened", { stored: 2 }, /leaves the time .* that did not happen/],
  ["one that is taken back", { stored: 2, restoredAt: 200 }, undefined],
  [
    "one that was left as it is, and is asked for again",
    { stored: 2, restoredAt: 200, triedAt: 40 },
    /again 50 ms after the zone was left as it is/,
  ],
  ["one that is asked for again later", { stored: 2, restoredAt: 200, triedAt: -30_000 }, undefined],
  ["one that counts the pods of the zone", { counted: 2 }, /writes that a has 2 pods, which its controller counts/],
  ["the time of a downscale to another number", { stored: 1, to: 0 }, undefined],
  ["one that is taken back", { stored: 1, to: 0, restoredAt: 200 }, /forgets that a was scaled down at/],
  ["one that was reserved", { reservedAt: 80, freedAt: 101 }, undefined],
  [
    "a reservation while a pod of another zone ends",
    { reservedAt: 80, status: 403, lost: [19, "ends"], freedAt: 101 },
    /reserves a-1\+, and has read/,
  ],
  [
    "a reservation that is left",
    { reservedAt: 80, status: 403 },
    /is still reserved 19900 ms after its write was refused/,
  ],
  ["one that is released", { reservedAt: 80, status: 403, freedAt: 110 }, undefined],
  ["one whose release may have failed", { reservedAt: 80, status: 403, isLoud: true }, undefined],
];

describe("the oracle of scaling", () => {
  for (const [name, world, expected] of CASES)
    it(`${expected ? "condemns" : "allows"} ${name}`, () =>
      expected ? assert.match(scale(world).join(), expected) : assert.deepEqual(scale(world), []));
});
