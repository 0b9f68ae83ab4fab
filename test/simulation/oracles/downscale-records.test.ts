/** The oracle of what the downscale Lease records, against histories that it must condemn, and those next to them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { createDownscaleRecords } from "./downscale-records.ts";

const MIN_TIME = "grafana.com/min-time-between-zones-downscale";
const timeOf = (ms: number): string => new Date(ms).toISOString();
const zone = (name: string, replicas: number, generation: number, annotations: object = {}): KubeObject =>
  ({ metadata: { name, namespace: "zonewise", uid: name, generation, annotations }, spec: { replicas } }) as never;
const OTHER = { ...zone("b", 3, 1), metadata: { ...zone("b", 3, 1).metadata, labels: { [MIN_TIME]: "60s" } } };
const RECORD = {
  uid: "a",
  generation: 1,
  from: 3,
  to: 2,
  prepared: { start: 2, end: 3 },
  at: timeOf(0),
  since: timeOf(0),
};

/** What happens: the Lease records this, zone "a" is changed, or pod "a-2" is prepared or made undone. */
type Step = readonly [
  at: number,
  ...(["record", by: string, record: object | undefined] | ["zone", KubeObject, by?: string] | ["prepare", boolean]),
];

interface Given {
  readonly misjudgedMs: number;
  readonly failsOpen: boolean;
  /** What the zone tracker tells of the zone. */
  readonly tracked: string;
}

function play(steps: readonly Step[], { misjudgedMs = 1000, failsOpen = false, tracked }: Partial<Given> = {}) {
  let now = 0;
  const violations: string[] = [];
  let set = zone("a", 3, 1);
  let isPrepared = false;
  const records = createDownscaleRecords({
    zones: ["a", "b"],
    violated: (what) => violations.push(what),
    now: () => now,
    setOf: (name) => (name === "a" ? set : name === "b" ? OTHER : undefined),
    listPods: (name) => (name === "a" ? [{ metadata: { name: "a-2", uid: "a-2" } } as never] : []),
    isPrepared: () => isPrepared,
    trackedOf: (name) => (name === "a" ? tracked : undefined),
    misjudgedMs,
    failsOpen,
    hasTrueClocks: false,
  });
  for (const [at, ...step] of steps) {
    now = at;
    if (step[0] === "prepare") isPrepared = step[1];
    else if (step[0] === "zone") {
      const previous = set;
      set = step[1];
      records.onEvent(
        { type: "MODIFIED", resource: "statefulsets.apps", object: set, previous },
        { actor: step[2] ?? "human", call: "" },
      );
    } else {
      const annotations = { "zonewise/pending-downscales": JSON.stringify(step[2] ? { a: step[2] } : {}) };
      const object = { metadata: { name: "zonewise-downscale-x", namespace: "zonewise", annotations } } as never;
      records.onEvent(
        { type: "MODIFIED", resource: "leases.coordination.k8s.io", object },
        { actor: step[1], call: "" },
      );
    }
  }
  return {
    violations,
    admitted: (before: number) => records.admittedBut("b", before),
    early: (by: "webhook" | "reconciler", before = now) => records.tooEarly("b", by, before),
  };
}

const shrunk = zone("a", 2, 2);
const timed = zone("a", 3, 4, { "grafana.com/last-downscale": timeOf(0) });
const further = (at: number): object => ({ ...RECORD, at: timeOf(at) });

const CASES: readonly (readonly [string, readonly Step[], RegExp | undefined])[] = [
  [
    "a preparation that is recorded",
    [
      [0, "record", "webhooks-1", RECORD],
      [5, "prepare", true],
      [9, "record", "webhooks-1", RECORD],
    ],
    undefined,
  ],
  [
    "one whose record goes",
    [
      [0, "record", "webhooks-1", RECORD],
      [5, "prepare", true],
      [9, "record", "webhooks-1", undefined],
    ],
    /a-2 is prepared and stays/,
  ],
  [
    "one by the record of an earlier StatefulSet",
    [
      [0, "record", "webhooks-1", { ...RECORD, uid: "earlier" }],
      [5, "prepare", true],
      [9, "record", "webhooks-1", { ...RECORD, uid: "earlier", refused: true }],
    ],
    undefined,
  ],
  [
    "one that is undone first",
    [
      [0, "record", "webhooks-1", RECORD],
      [5, "prepare", true],
      [8, "prepare", false],
      [9, "record", "webhooks-1", undefined],
    ],
    undefined,
  ],
  [
    "one of a pod that goes",
    [
      [0, "record", "webhooks-1", RECORD],
      [5, "prepare", true],
      [8, "zone", shrunk],
      [9, "zone", timed],
      [9, "record", "reconciler-1", undefined],
    ],
    undefined,
  ],
  [
    "a downscale that is forgotten",
    [
      [0, "record", "webhooks-1", RECORD],
      [5, "zone", shrunk],
      [9, "record", "reconciler-1", undefined],
    ],
    /nothing else tells its time/,
  ],
  [
    "one that is refused afterwards",
    [
      [0, "record", "webhooks-1", RECORD],
      [5, "zone", shrunk],
      [9, "record", "reconciler-1", { ...RECORD, refused: true }],
    ],
    /nothing else tells its time/,
  ],
  [
    "one that a later record tells of",
    [
      [0, "record", "webhooks-1", RECORD],
      [5, "zone", shrunk],
      [9, "record", "webhooks-1", { ...RECORD, refused: true, earlier: timeOf(0) }],
    ],
    undefined,
  ],
  [
    "one whose zone tells its time",
    [
      [0, "record", "webhooks-1", RECORD],
      [5, "zone", shrunk],
      [8, "zone", timed],
      [9, "record", "reconciler-1", undefined],
    ],
    undefined,
  ],
  [
    "one whose time somebody takes away",
    [
      [0, "record", "webhooks-1", RECORD],
      [5, "zone", shrunk],
      [8, "zone", timed],
      [8, "zone", zone("a", 3, 5)],
      [9, "record", "reconciler-1", undefined],
    ],
    undefined,
  ],
  [
    "a further downscale",
    [
      [0, "record", "webhooks-1", RECORD],
      [80_000, "record", "webhooks-1", further(80_000)],
    ],
    undefined,
  ],
  [
    "one after the zone's turn",
    [
      [0, "record", "webhooks-1", further(20_000)],
      [99_000, "record", "webhooks-1", further(99_000)],
    ],
    /whose turn has lasted 99000 ms/,
  ],
  [
    "one after a turn whose beginning is not kept",
    [
      [0, "record", "webhooks-1", RECORD],
      [60_000, "record", "webhooks-1", { ...further(60_000), since: timeOf(60_000) }],
      [99_000, "record", "webhooks-1", { ...further(99_000), since: timeOf(99_000) }],
    ],
    /whose turn has lasted 99000 ms/,
  ],
  [
    "one in the next turn, and one after it",
    [
      [0, "record", "webhooks-1", RECORD],
      [119_000, "record", "webhooks-1", { ...further(119_000), since: timeOf(119_000) }],
      [199_000, "record", "webhooks-1", { ...further(199_000), since: timeOf(119_000) }],
    ],
    undefined,
  ],
  [
    "one in the next turn",
    [
      [0, "record", "webhooks-1", RECORD],
      [119_000, "record", "webhooks-1", further(119_000)],
    ],
    undefined,
  ],
  [
    "a turn that is forgotten",
    [
      [0, "record", "webhooks-1", RECORD],
      [95_000, "record", "reconciler-1", undefined],
    ],
    /forgets that a has had its turn/,
  ],
  [
    "one that is kept",
    [
      [0, "record", "webhooks-1", RECORD],
      [95_000, "record", "reconciler-1", { ...RECORD, refused: true, prepared: undefined }],
    ],
    undefined,
  ],
];

describe("the oracle of recorded downscales", () => {
  for (const [name, steps, expected] of CASES)
    it(`${expected ? "condemns" : "allows"} ${name}`, () => {
      const { violations } = play(steps);
      return expected ? assert.match(violations.join(), expected) : assert.deepEqual(violations, []);
    });

  it("allows a downscale that is forgotten where the webhook fails open", () => {
    const [, steps = []] = CASES.find(([name]) => name === "a downscale that is forgotten") ?? [];
    assert.equal(steps.length, 3);
    assert.deepEqual(play(steps, { failsOpen: true }).violations, []);
  });

  for (const [name, steps, isAdmitted] of [
    ["is admitted once it is recorded", [[10, "record", "webhooks-1", RECORD]], true],
    ["is not for who has read the Lease before", [[11, "record", "webhooks-1", RECORD]], false],
    [
      "is not once it was stored",
      [
        [10, "record", "webhooks-1", RECORD],
        [12, "zone", shrunk],
      ],
      false,
    ],
    [
      "is as well, though somebody writes the same in another order",
      [
        [10, "record", "webhooks-1", RECORD],
        [11, "record", "reconciler-1", Object.fromEntries(Object.entries(RECORD).toReversed())],
      ],
      true,
    ],
    [
      "is not after another change of its zone",
      [
        [10, "record", "webhooks-1", RECORD],
        [12, "zone", zone("a", 3, 2)],
      ],
      false,
    ],
    ["is not if it was denied", [[10, "record", "webhooks-1", { ...RECORD, refused: true }]], false],
    [
      "is not once it may not be stored any more",
      [
        [10, "record", "webhooks-1", RECORD],
        [89_500, "prepare", false],
      ],
      false,
    ],
  ] as const satisfies readonly (readonly [string, readonly Step[], boolean])[])
    it(name, () => assert.equal(play(steps).admitted(11) !== undefined, isAdmitted));

  const LAST = "grafana.com/last-downscale";
  const labelled = { [MIN_TIME]: "60s" };
  const entry = JSON.stringify({ lastDownscaled: timeOf(0) });
  for (const [name, found, expected] of [
    ["holds others by a time that nobody can read", early({ [LAST]: "yesterday" }, 90_000), /nobody can read/],
    ["holds them while it is not over", early({ [LAST]: timeOf(0), ...labelled }, 50_000), /a was scaled down at/],
    ["does not hold them once it is", early({ [LAST]: timeOf(0), ...labelled }, 60_000), undefined],
    ["does not hold a webhook's without a time to wait for", early({ [LAST]: timeOf(0) }, 50_000), undefined],
    ["holds a reconciler's by its own", early({ [LAST]: timeOf(0) }, 50_000, "reconciler"), /a was scaled down at/],
    ["holds them by the tracker", early(labelled, 50_000, "webhook", entry), /a was scaled down at/],
    [
      "holds nobody who has read before it was written",
      early({ [LAST]: "yesterday" }, 90_000, "webhook", "", 1),
      undefined,
    ],
  ] as const)
    it(`a zone's last downscale ${name}`, () =>
      expected ? assert.match(found ?? "", expected) : assert.equal(found, undefined));
});

/** Why another zone waits at that time for one with these annotations since 1. */
function early(
  annotations: object,
  at: number,
  by: "webhook" | "reconciler" = "webhook",
  tracked = "",
  before?: number,
): string | undefined {
  const steps: readonly Step[] = [
    [1, "zone", zone("a", 3, 1, annotations)],
    [at, "prepare", false],
  ];
  return play(steps, tracked === "" ? {} : { tracked }).early(by, before);
}
