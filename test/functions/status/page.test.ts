import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { renderPage } from "../../../functions/status/page.ts";
import { type PageGroup, keyOf, type PageRecords, sortGroups } from "../../../functions/status/records.ts";
import type { RolloutGroupStatus } from "../../../reconciler/group-status/status.ts";
import { block, group, NOW, pod, records, zone } from "./samples.ts";

/** The page's text, as a reader without style sees it. */
function textOf(traits: Partial<PageRecords>, focus?: string): string {
  const [, body = ""] = renderPage({ records: records(traits), focus }).split("<body>");
  const [shown = ""] = body.split("<script>");
  return shown.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");
}

const store = group("store", {
  phase: "Waiting",
  message: "zone-b waits for zone-a",
  blocked: [block({ nextCheck: "2026-11-22T03:01:00Z" })],
  zones: [
    zone("zone-a", { paused: true, lastDownscale: "2026-11-22T01:00:00Z" }),
    zone("zone-b", { currentRevision: "zone-b-2222222222" }),
  ],
  plan: [
    { action: "ReplacePods", zone: "zone-a", count: 12, atOnce: 2, pods: ["zone-a-0", "zone-a-1"] },
    { action: "FinishZone", zone: "zone-a" },
  ],
  progress: {
    stepsLeft: 13,
    startTime: "2026-11-22T02:00:00Z",
    lastStepTime: "2026-11-22T02:50:00Z",
    estimatedCompletionTime: "2026-11-22T04:00:00Z",
  },
});

const OLD = "The reconciler has not ticked for 5 min: nothing is rolled out or scaled, and groups are shown as they were then.";

const SENTENCES: readonly (readonly [what: string, traits: Partial<PageRecords>, expected: string])[] = [
  [
    "how many groups are in each phase",
    { groups: [store, group("a", { phase: "Ready" }), group("b", { phase: "Ready" })] },
    "1 Waiting, 2 Ready",
  ],
  [
    "why a group waits, since when and until when",
    { groups: [store] },
    "OtherZoneNotReady since 02:55:00 UTC (5 min ago) , until 03:01:00 UTC (in 1 min) zone-b waits for zone-a Pod zone-a-1",
  ],
  ["the state of a zone", { groups: [store] }, "zone-a paused, last downscale 2026-11-22T01:00:00Z 11111 → 22222 1/3 2/3 3 pods"],
  ["one revision of a zone that has but one", { groups: [store] }, "zone-b 22222 1/3"],
  [
    "the progress clock",
    { groups: [store] },
    "13 steps left, began 02:00:00 UTC (1 h ago) , last step 02:50:00 UTC (10 min ago) , estimated end 04:00:00 UTC (in 1 h)",
  ],
  ["the plan", { groups: [store] }, "Plan replace 12 pods of zone-a, 2 at once: zone-a-0, zone-a-1 and 10 more record zone-a as updated"],
  [
    "each pod with its revision and state",
    {
      groups: [store],
      pods: new Map([
        [
          "default/store",
          new Map([
            [
              "zone-a",
              [
                pod("zone-a-0", "zone-a-2222222222"),
                pod("zone-a-1", "zone-a-1111111111", { isReady: false }),
                pod("zone-a-2", "zone-a-1111111111", { isTerminating: true }),
              ],
            ],
          ]),
        ],
      ]),
    },
    "● 0 22222 ready ○ 1 11111 not ready ✕ 2 11111 terminating",
  ],
  [
    "when the last rollout of a group ended",
    {
      groups: [
        group("a", {
          phase: "Ready",
          summary: { zones: "3/3", updated: "9/9", ready: "9/9" },
          progress: { stepsLeft: 0, startTime: "", lastStepTime: "", completionTime: "2026-11-20T03:00:00Z" },
        }),
      ],
    },
    "default/a Ready 3/3 9/9 9/9 2026-11-20 03:00:00 UTC (2 d ago)",
  ],
  [
    "the headroom of a budget, its reservations and by whom",
    {
      budgets: [
        {
          namespace: "default",
          name: "store",
          protection: {
            zones: [
              { name: "zone-a", expected: 3, healthy: 2, disruptionsAllowed: 1 },
              { name: "zone-b", expected: 3, healthy: 3 },
            ],
            conditions: [
              {
                type: "Protecting",
                status: "True",
                reason: "Protecting",
                message: "it selects 2 zones",
                observedGeneration: 1,
                lastTransitionTime: "",
              },
            ],
          },
          reservations: { "zone-a-1": { uid: "u", time: "2026-11-22T02:59:30Z", by: "webhook_x" } },
        },
      ],
    },
    "default/store True it selects 2 zones zone-a: 2 of 3, 1 zone-b: 3 of 3, by partition zone-a-1 by webhook_x 02:59:30 UTC (30 s ago)",
  ],
  [
    "the last decisions",
    {
      decisions: [
        {
          object: "StatefulSet default/zone-a",
          type: "Warning",
          reason: "ZoneNotReady",
          message: "zone-a-1 is not ready",
          count: 3,
          time: "2026-11-22T02:59:59Z",
        },
      ],
    },
    "02:59:59 UTC (1 s ago) StatefulSet default/zone-a ZoneNotReady (warning) zone-a-1 is not ready 3",
  ],
  [
    "the age of the tick and the certificate",
    { reconciler: { lastTick: "2026-11-22T02:59:56Z", holder: "zonewise-1", certificateExpiry: NOW + 86_400_000 * 30 } },
    "Last tick 02:59:56 UTC (4 s ago) Reconciler zonewise-1 Certificate expires 2026-12-22 03:00:00 UTC (in 30 d)",
  ],
  ["that no tick is recorded", {}, "Last tick none is recorded Reconciler none holds the Lease Certificate expires not recorded"],
  ["what could not be read", { problems: ["pods could not be read"] }, "pods could not be read"],
  ["that there is no group", {}, "There is no rollout group."],
  ["that the definition is missing", { groups: undefined }, "The cluster knows no RolloutGroup: install the definitions"],
  [
    "that there is neither a budget nor a decision",
    { budgets: undefined },
    "Disruption budgets There is none. Last decisions None is recorded.",
  ],
];

describe("the status page shows", () => {
  for (const [what, traits, expected] of SENTENCES)
    it(what, () => assert.ok(textOf(traits).includes(expected), `${expected}\n\n${textOf(traits)}`));

  it("readers without JavaScript that it stays as it is", () =>
    assert.match(
      renderPage({ records: records(), focus: undefined }),
      /<noscript><p>Without JavaScript this page stays as it is: reload it\.<\/p><\/noscript>/,
    ));
  for (const [lastTick, isOld] of [
    ["2026-11-22T02:54:59Z", true],
    ["2026-11-22T02:55:00Z", false],
  ] as const)
    it(`${isOld ? "that" : "not that"} all is old if the last tick began at ${lastTick}`, () =>
      assert.equal(textOf({ reconciler: { lastTick } }).includes(OLD), isOld));
  it("a sentence that is also the block's only once", () =>
    assert.equal(textOf({ groups: [store] }).split("zone-b waits for zone-a").length, 2));
  it("one group alone, also if it is done, with a way back", () => {
    const text = textOf({ groups: [store, group("a", { phase: "Ready", zones: [zone("zone-x")] })] }, "default/a");
    assert.match(text, /All groups .*default\/a Ready .*zone-x/);
    assert.doesNotMatch(text, /default\/store/);
  });
  it("that the one group does not exist", () =>
    assert.match(textOf({ groups: [store] }, "default/b"), /There is no rollout group default\/b\./));
});

describe("statuses of other versions", () => {
  const CASES: readonly (readonly [string, unknown])[] = [
    ["nothing", {}],
    ["a phase of a later version", { phase: "Hovering" }],
    ["a zone with a name alone", { zones: [{ name: "zone-a" }] }],
    ["a block with a reason alone", { blocked: [{ reason: "Other" }] }],
    ["a step without fields", { plan: [{}], progress: {} }],
  ];
  for (const [what, status] of CASES)
    it(`with ${what} are shown as far as they go, in front`, () => {
      const odd = group("odd", status as Partial<RolloutGroupStatus>);
      const groups = sortGroups([group("a", { phase: "Ready" }), odd]);
      assert.equal(groups[0], odd);
      assert.match(textOf({ groups }), /default\/odd/);
    });
});

const ORDER: readonly PageGroup[] = [
  group("stalled", { phase: "Stalled", blocked: [block()] }),
  group("degraded", { phase: "Degraded" }),
  group("waiting-for-long", { phase: "Waiting", blocked: [block({ since: "2026-11-21T00:00:00Z" })] }),
  group("waiting", { phase: "Waiting", blocked: [block()] }),
  group("paused", { phase: "Paused", blocked: [block()] }),
  group("rolling-and-held", { phase: "RollingOut", blocked: [block()] }),
  group("rolling", { phase: "RollingOut" }),
  group("ready-but-not-scaled", { phase: "Ready", blocked: [block()] }),
  group("a", { phase: "Ready" }),
  group("b", { phase: "Ready" }),
];

it("what is blocked comes first, what is done last", () => assert.deepEqual(sortGroups(ORDER.toReversed()).map(keyOf), ORDER.map(keyOf)));

it("no text of an object becomes HTML", () => {
  const evil = `"><script>alert(1)</script><img src=x onerror='alert(2)'>`;
  const spoil = (value: unknown): unknown =>
    typeof value === "string"
      ? evil
      : Array.isArray(value)
        ? value.map(spoil)
        : typeof value === "object" && value !== null
          ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, spoil(part)]))
          : value;
  const traits = SENTENCES.map(([, traits]) => ({ ...traits, pods: new Map() }));
  for (const all of [...traits, { groups: [group(evil, { phase: "Ready" })] }]) {
    const html = renderPage({ records: { ...(spoil(records(all)) as PageRecords), pods: new Map() }, focus: undefined });
    assert.equal(html.split("<script>").length, 2, "the page's own");
    assert.doesNotMatch(html, /<img/);
    assert.doesNotMatch(html, /"><script>alert/);
  }
  const pods = new Map([["default/store", new Map([["zone-a", [pod(evil, evil)]]])]]);
  assert.doesNotMatch(renderPage({ records: records({ groups: [store], pods }), focus: evil }), /<img|"><script>alert/);
});
