/** The oracle of what the webhook of downscales answers, against histories that it must condemn. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { createDownscaleReviews } from "./downscale-reviews.ts";

const BUDGETS = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
const PATH = "/admission/prepare-downscale";
const [OLD, NEW] = ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"];
const SET = {
  metadata: { name: "a", uid: "a", labels: { "grafana.com/prepare-downscale": "true" } },
  spec: { replicas: 2 },
} as never;
const PINNED = { metadata: { name: "a", uid: "a", labels: { "grafana.com/no-downscale": "true" } } } as never;
const budget = (time: string | undefined): KubeObject =>
  ({
    metadata: { name: "ingester", namespace: "zonewise" },
    spec: {},
    status: { disruptedPods: time === undefined ? {} : { "a-1+": { uid: "a", time } } },
  }) as never;

interface World {
  /** What another zone loses, and since when; and since when one is admitted. The review arrives at 100. */
  readonly lostSince?: number;
  readonly loss?: string;
  /** Its own pods have the new template. */
  readonly isUpdated?: boolean;
  /** Since when another zone's last downscale keeps it from shrinking. */
  readonly earlySince?: number;
  readonly admittedAt?: number;
  /** Since when a budget counts a pod of another zone as missing. */
  readonly missedAt?: number;
  /** Since when its budget is invalid. */
  readonly brokenAt?: number;
  /** The times of the reservation in turn, from 110 on. */
  readonly reserved?: readonly (string | undefined)[];
  /** What it is of the answer at 150. */
  readonly allowed?: boolean;
  readonly isGivenUp?: boolean;
  /** When a call of the webhook fails. */
  readonly faultAt?: number;
  readonly hasBudget?: boolean;
  /** Of the request. */
  readonly request?: object;
  /** It does not read the pods of the other zones. */
  readonly isBlind?: boolean;
  /** The pod that is prepared, and whether its zone must not shrink. */
  readonly prepares?: string;
  readonly isPinned?: boolean;
  /** Another review of the zone is answered meanwhile. */
  readonly isTwice?: boolean;
}

function judge(world: World): readonly string[] {
  const { lostSince = Infinity, admittedAt = Infinity, reserved = [NEW], allowed = true, hasBudget = true } = world;
  const violations: string[] = [];
  let now = 0;
  let stored = budget(OLD);
  const reviews = createDownscaleReviews({
    shape: { zones: ["a", "b"], faults: {} } as never,
    violated: (what) => violations.push(what),
    now: () => now,
    losses: {
      takesServing: () => true,
      isUpdated: () => world.isUpdated === true,
      find: ({ before, losses }: { before: number; losses: readonly string[] }) =>
        lostSince < before && losses.includes(world.loss ?? "ends") ? `b-0 ${world.loss ?? "ends"}` : undefined,
    } as never,
    setOf: () => (world.isPinned ? PINNED : SET),
    listBudgets: () => (hasBudget ? [stored] : []),
    admittedBut: (_, before) => (admittedAt < before ? "a downscale of b is admitted" : undefined),
    missedBut: (_, __, at) => ((world.missedAt ?? Infinity) < at ? "b-1 is missing" : undefined),
    tooEarly: (_, __, before) => ((world.earlySince ?? Infinity) < before ? "b was scaled down just now" : undefined),
    wasInvalid: (before) => (world.brokenAt ?? Infinity) < before,
    isQuiet: (since) => (world.faultAt ?? -Infinity) < since,
  });
  const request = {
    uid: "1",
    name: "a",
    namespace: "zonewise",
    oldObject: { spec: { replicas: 2 } },
    object: { spec: { replicas: 1 } },
    ...world.request,
  };
  const sent = JSON.stringify({ request });
  const other = JSON.stringify({ request: { ...request, uid: "2" } });
  const answer = (one: string, isAllowed: boolean): void =>
    reviews.onReview({
      path: PATH,
      sent: one,
      status: 200,
      answer: JSON.stringify({ response: { allowed: isAllowed } }),
    });
  const store = (time: string | undefined): void => {
    const previous = stored;
    stored = budget(time);
    reviews.onEvent(
      { type: "MODIFIED", resource: BUDGETS, object: stored, previous },
      { actor: "webhooks-1", call: "" },
    );
  };
  store(OLD);
  now = 100;
  reviews.onArrival(PATH, sent);
  if (world.isTwice) reviews.onArrival(PATH, other);
  const selector = world.isBlind ? "app%3Dx" : "app%3Dx%2Cname+in+%28a%2Cb%29";
  reviews.onRequest({ actor: "webhooks-1", call: "" }, "GET", `/api/v1/pods?labelSelector=${selector}&limit=500`);
  if (world.prepares)
    reviews.onSent({
      actor: "webhooks-1",
      call: `POST http://${world.prepares}.a.zonewise.svc.cluster.local./prepare`,
    });
  for (const [i, time] of reserved.entries()) {
    now = 110 + i;
    store(time);
  }
  now = 150;
  if (world.isTwice) answer(other, false);
  if (world.isGivenUp) reviews.onUnanswered(PATH, sent);
  answer(sent, allowed);
  now = 20_000;
  reviews.onEvent({ type: "MODIFIED", resource: "pods", object: SET }, undefined);
  return violations;
}

describe("the oracle of the webhook of downscales", () => {
  for (const [name, world, expected] of [
    ["a downscale that is reserved", {}, undefined],
    ["one that is not", { reserved: [undefined] }, /shrink to 1 without a reservation/],
    ["one without a budget", { reserved: [undefined], hasBudget: false }, undefined],
    ["one while another zone loses pods", { lostSince: 99 }, /lets a shrink to 1 although b-0 ends/],
    [
      "a reservation while another zone does",
      { lostSince: 99, allowed: false, reserved: [NEW, OLD] },
      /reserves a-1\+ although b-0 ends/,
    ],
    ["one before another zone loses pods", { lostSince: 100 }, undefined],
    ["one while its budget misses a pod of another", { missedAt: 99 }, /although b-1 is missing/],
    ["one before it does", { missedAt: 100 }, undefined],
    ["one under an invalid budget", { brokenAt: 99 }, /although its budget is invalid/],
    ["one before its budget is", { brokenAt: 100 }, undefined],
    ["one while another is admitted", { admittedAt: 99 }, /although a downscale of b is admitted/],
    ["one before another is admitted", { admittedAt: 100 }, undefined],
    [
      "one while pods of another are outdated",
      { lostSince: 99, loss: "is outdated", isUpdated: true },
      /b-0 is outdated/,
    ],
    ["one that ends its own rollout", { lostSince: 99, loss: "is outdated" }, undefined],
    ["one too early after another", { earlySince: 99 }, /although b was scaled down just now/],
    ["one before another was scaled down", { earlySince: 100 }, undefined],
    ["a preparation", { prepares: "a-1" }, undefined],
    ["one for a dry run", { prepares: "a-1", request: { dryRun: true }, reserved: [] }, /a-1, which nobody has asked/],
    ["one of a zone that must not shrink", { prepares: "a-1", isPinned: true }, /whose zone must not shrink/],
    ["one without a list of pods", { isBlind: true }, /without having read the pods/],
    ["one that is only tried", { lostSince: 99, reserved: [], request: { dryRun: true } }, undefined],
    [
      "one by an old version",
      {
        lostSince: 99,
        reserved: [],
        request: { object: { metadata: { resourceVersion: "1" }, spec: { replicas: 1 } } },
      },
      undefined,
    ],
    ["an upscale", { lostSince: 99, reserved: [], request: { object: { spec: { replicas: 3 } } } }, undefined],
    ["one that is denied, and still reserved", { allowed: false }, /is still reserved 19850 ms after/],
    ["one that is denied and released", { allowed: false, reserved: [NEW, undefined] }, undefined],
    ["one whose earlier reservation counts again", { allowed: false, reserved: [NEW, OLD] }, undefined],
    ["one whose release may have failed", { allowed: false, faultAt: 160 }, undefined],
    ["one whose reservation had a late answer", { allowed: false, faultAt: 111 }, undefined],
    ["one that is denied, and reserved, a while after a fault", { allowed: false, faultAt: 90 }, /is still reserved/],
    ["one whose answer nobody gets", { allowed: false, isGivenUp: true }, undefined],
    ["one of two at once", { allowed: false, isTwice: true }, undefined],
  ] as const satisfies readonly (readonly [string, World, RegExp | undefined])[])
    it(`${expected ? "condemns" : "allows"} ${name}`, () =>
      expected ? assert.match(judge(world).join(), expected) : assert.deepEqual(judge(world), []));
});
