/** The judge of a drill, by histories: one that holds, and for each promise one that must fail and one that was not seen. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Entry, PodFact } from "./history.ts";
import { judge, PROMISES, type Row } from "./judge.ts";
import type { StageName } from "./plan.ts";

type Unplaced = Entry extends infer E ? (E extends unknown ? Omit<E, "at"> : never) : never;

const ZONES = ["a", "b", "c"];
const PODS = ZONES.flatMap((zone) => [0, 1, 2].map((ordinal) => `${zone}-${ordinal}`));
const PINNED = 'admission webhook "no-downscale" denied the request: no';

/** What happens in each stage of a drill in which all goes well. */
const WELL: Readonly<Record<StageName, string>> = {
  start: "list",
  refusals:
    "evict a-0: 201, leaves a-0, evict b-0: 429, returns a-0, evict c-1: 201, leaves c-1, evict a-1: 429, returns c-1",
  drains: ["b-0", "b-1", "b-2", "c-0", "c-1", "c-2"].map((pod) => drained(pod)).join(", "),
  rollout: "rolls all",
  kept: "scale: 403, scale: 403",
  downscale: "scale: 200, leaves a-2, gone a-2, leaves b-2, gone b-2, leaves c-2, gone c-2",
};

function drained(pod: string): string {
  return `evict ${pod}: 201, leaves ${pod}, returns ${pod}`;
}

/** Such a drill, with what is changed about it. A second goes by with each entry. */
function play(change: Partial<Record<StageName, string>> = {}): Entry[] {
  const entries: Entry[] = [];
  const uids = new Map<string, number>();
  let [at, id] = [0, 0];
  let rolled = new Set<string>();
  const add = (entry: Unplaced): void => void entries.push({ at: (at += 1000), ...entry });
  const fact = (name: string, state: PodFact["state"], revision = "1"): PodFact => ({
    name,
    zone: name.slice(0, -2),
    ordinal: Number(name.at(-1)),
    uid: `${name}/${uids.get(name) ?? 0}`,
    revision,
    state,
  });
  const see = (name: string, state: PodFact["state"], revision?: string): void =>
    add({ what: "pod", pod: fact(name, state, revision) });
  const list = (gap: boolean, leaving: readonly string[] = []): void =>
    add({ what: "pods", gap, pods: PODS.map((name) => fact(name, leaving.includes(name) ? "leaving" : "up")) });
  const returns = (name: string, revision?: string): void => {
    see(name, "gone", revision);
    uids.set(name, (uids.get(name) ?? 0) + 1);
    see(name, "starting", revision);
    see(name, "up", revision);
  };
  const replace = (name: string): void => {
    see(name, "leaving");
    returns(name, "2");
  };
  const rolls = (name: string): void => {
    rolled.add(name);
    replace(name);
  };
  const ask = (name: string): void => add({ what: "asked", id: ++id, pod: fact(name, "up") });
  /** By its first word; the rest are its subject and, after a colon, the answer. */
  const HAPPENINGS: Readonly<Record<string, (subject: string, status: number, message: string) => void>> = {
    list: () => list(false),
    gap: (subject) => list(true, subject.split(" ")),
    leaves: (name) => see(name, "leaving"),
    fails: (name) => see(name, "starting"),
    recovers: (name) => see(name, "up"),
    gone: (name) => see(name, "gone"),
    returns: (name) => returns(name),
    replaced: replace,
    evict: (name, status, message) => (ask(name), add({ what: "answered", id, status, message })),
    /** An eviction without an answer. */
    ask,
    scale: (_, status, message) => add({ what: "scaled", by: "its scale", status, message: message || PINNED }),
    wait: (seconds) => void (at += Number(seconds) * 1000),
    rolls: (name) => (name === "all" ? PODS.filter((pod) => !rolled.has(pod)) : [name]).forEach(rolls),
  };
  for (const [stage, well] of Object.entries(WELL) as [StageName, string][]) {
    rolled = new Set();
    add({ what: "stage", stage, state: "begins" });
    const lines = (change[stage] ?? well).split(", ");
    for (const line of lines.filter((line) => line !== "overdue")) {
      const [, word = "", subject = "", status, message = ""] =
        /^(\w+)(?: ([^:]*))?(?:: (\d+) ?(.*))?$/.exec(line) ?? assert.fail(line);
      (HAPPENINGS[word] ?? assert.fail(line))(subject, Number(status), message);
    }
    add({ what: "stage", stage, state: lines.includes("overdue") ? "overdue" : "ends" });
  }
  return entries;
}

const verdicts = (rows: readonly Row[]): Record<string, string> =>
  Object.fromEntries(
    rows.filter(({ verdict }) => verdict !== "held").map(({ promise, verdict }) => [promise, verdict]),
  );

const BROKEN = "did not hold";
/** What is not held if changes were missed. */
const UNSEEN = {
  "one zone at a time": "not seen",
  "the limit of a zone": "not seen",
  refusals: "not seen",
  "downscale in turn": "not seen",
};
const NOT_OF_WEBHOOK = 'User "ann" cannot patch resource "statefulsets"';
const STAGES = Object.keys(WELL) as StageName[];

/** The promises that are not held; all others are. */
const CASES: readonly (readonly [
  name: string,
  change: Parameters<typeof play>[0],
  expected: Readonly<Record<string, string>>,
])[] = [
  ["nothing happens but what was promised", {}, {}],
  [
    "an eviction in a second zone is allowed",
    { drains: "evict c-1: 201, leaves c-1, evict a-1: 201, leaves a-1, returns c-1, returns a-1" },
    { "one zone at a time": BROKEN, refusals: BROKEN },
  ],
  [
    "the rollout takes a pod while one that was evicted in another zone is away",
    { rollout: "evict c-0: 201, leaves c-0, leaves a-0, returns c-0, rolls a-0, rolls all" },
    { "one zone at a time": BROKEN },
  ],
  [
    "a pod is deleted at once, and was never seen to leave",
    { rollout: "evict c-0: 201, leaves c-0, gone a-0, returns c-0, rolls a-0, rolls all" },
    { "one zone at a time": BROKEN },
  ],
  [
    "a successor that is not up yet counts as away",
    { drains: "evict c-1: 201, leaves c-1, gone c-1, fails c-1, evict a-1: 201, leaves a-1, returns a-1, returns c-1" },
    { "one zone at a time": BROKEN, refusals: BROKEN },
  ],
  [
    "two pods of a zone are taken",
    { drains: "evict c-1: 201, leaves c-1, evict c-2: 201, leaves c-2, returns c-1, returns c-2" },
    { "the limit of a zone": BROKEN },
  ],
  [
    "a pod has just failed by itself, and a pod of another zone goes",
    { drains: "fails c-1, evict a-1: 201, leaves a-1, returns a-1, recovers c-1" },
    {},
  ],
  [
    "a pod failed long ago, and a pod of another zone goes",
    { drains: "fails c-1, wait 10, evict a-1: 201, leaves a-1, returns a-1, recovers c-1" },
    { "one zone at a time": BROKEN, refusals: BROKEN },
  ],
  [
    "an eviction is refused with a code that drainers give up on",
    { refusals: "evict a-0: 201, leaves a-0, evict b-0: 403 denied, returns a-0" },
    { refusals: BROKEN, answers: BROKEN },
  ],
  [
    "the webhook cannot be called",
    { drains: 'evict a-0: 500 failed calling webhook "pod-eviction"' },
    { answers: BROKEN },
  ],
  ["an eviction has no answer", { drains: "evict b-0: 0 timeout" }, { answers: BROKEN, rollout: "not seen" }],
  ["a pod is gone before it is evicted", { drains: "evict a-0: 404" }, {}],
  [
    "a pod is gone before the webhook looks at it",
    { drains: 'evict a-0: 400 admission webhook "pod-eviction" denied the request: pods "a-0" not found (400)' },
    {},
  ],
  [
    "nothing was refused",
    { refusals: "evict a-0: 201, leaves a-0, returns a-0" },
    { refusals: "not seen", answers: "not seen" },
  ],
  ["a drain does not end", { drains: "overdue" }, { "drains end": "not seen" }],
  ["the rollout comes back to a zone", { rollout: "rolls a-0, rolls b-0, rolls all" }, { rollout: BROKEN }],
  [
    "evictions have replaced pods before the rollout did",
    { rollout: PODS.map((pod) => `evict ${pod}: 201, rolls ${pod}`).join(", ") },
    { rollout: "not seen" },
  ],
  [
    "an eviction in another zone during the rollout is not the rollout's doing",
    { rollout: "rolls a-0, evict b-0: 201, replaced b-0, rolls all" },
    {},
  ],
  [
    "an eviction that was asked for as the stage before ended is not the rollout's doing",
    { drains: `${drained("b-0")}, evict c-2: 201`, rollout: "rolls a-0, replaced c-2, rolls all" },
    {},
  ],
  [
    "an eviction without an answer that was sent long before is not who took the pod",
    { drains: "ask b-0, ask c-1, wait 40" },
    {},
  ],
  [
    "an eviction without an answer that was sent a moment before may have taken the pod",
    { drains: "ask a-0" },
    { rollout: "not seen" },
  ],
  ["the rollout is not over in time", { rollout: "overdue" }, { rollout: "not seen" }],
  ["the zone with the label is scaled down", { kept: "scale: 403, scale: 200" }, { "no downscale": BROKEN }],
  [
    "nobody could say whether the zone with the label may be scaled down",
    { kept: "scale: 500, scale: 0" },
    { "no downscale": "not seen" },
  ],
  [
    "an admission policy refuses the downscale",
    {
      kept: "scale: 403 ValidatingAdmissionPolicy 'no-downscale' with binding 'no-downscale' denied request: no, scale: 400",
    },
    {},
  ],
  [
    "the downscale is refused by what is no rule of the installation",
    { kept: `scale: 403 ${NOT_OF_WEBHOOK}, scale: 422 no` },
    { "no downscale": "not seen" },
  ],
  [
    "the zone without the label may not be scaled down by whoever runs the drill",
    { downscale: `scale: 403 ${NOT_OF_WEBHOOK}, overdue` },
    { "downscale in turn": "not seen" },
  ],
  [
    "the label is gone, and the zone may not be scaled down all the same",
    { downscale: "scale: 403, overdue" },
    { "downscale in turn": BROKEN },
  ],
  [
    "two zones shrink at once",
    { downscale: "scale: 200, leaves a-2, leaves b-2, gone a-2, gone b-2, leaves c-2, gone c-2" },
    { "one zone at a time": BROKEN, "downscale in turn": BROKEN },
  ],
  [
    "no zone follows its leader",
    { downscale: "scale: 200, leaves a-2, gone a-2, overdue" },
    { "downscale in turn": "not seen" },
  ],
  ["changes were missed", { kept: "gap, scale: 403" }, UNSEEN],
  [
    "an eviction was allowed for the pod's UID, and the pod was not seen to go",
    { kept: "evict a-0: 201, scale: 403, scale: 403" },
    UNSEEN,
  ],
  [
    "no pod came up",
    Object.fromEntries(STAGES.map((stage) => [stage, "overdue"])),
    Object.fromEntries(PROMISES.map(({ promise }) => [promise, "not seen"])),
  ],
];

describe("the judge of a drill", () => {
  for (const [name, change, expected] of CASES)
    it(name, () => assert.deepEqual(verdicts(judge(play(change))), expected));

  it("a history that ends early leaves promises not seen, and breaks none", () => {
    const whole = play();
    for (let length = 0; length < whole.length; length++)
      for (const { promise, verdict, broken } of judge(whole.slice(0, length)))
        assert.ok(verdict !== BROKEN && broken.length === 0, `${promise} after ${length} entries`);
  });

  it("a rollout that is not over says by pods who replaced what", () => {
    const row = judge(
      play({ rollout: "rolls a-0, rolls a-1, rolls a-2, evict b-0: 201, rolls b-0, ask b-1, rolls b-1, overdue" }),
    ).find(({ promise }) => promise === "rollout");
    assert.equal(row?.tried, "3 of 9 pods");
    assert.match(
      row?.seen ?? "",
      /^not over after \d+s, 1 evicted, 1 by it or by an eviction without an answer, 4 not replaced$/,
    );
  });

  it("drains that are not over say how many pods they have moved", () => {
    const row = judge(play({ drains: `${drained("b-0")}, evict c-0: 429, overdue` })).find(
      ({ promise }) => promise === "drains end",
    );
    assert.match(row?.seen ?? "", /^not over after \d+s: 1 of 6 pods gone, 1 refusal$/);
  });

  it("refusals that came too late to show anything are told apart from none", () => {
    const late = play({ refusals: "evict a-0: 201, evict b-0: 429" });
    const row = judge(late).find(({ promise }) => promise === "refusals");
    assert.deepEqual([row?.verdict, row?.tried], ["not seen", "0 evictions"]);
    assert.equal(row?.seen, "1 refused, none of them while a pod was away throughout");
  });

  it("what was missed in a gap is not held against anybody", () => {
    const rows = judge(play({ drains: "gap a-0 b-0" }));
    assert.deepEqual(
      rows.flatMap(({ broken }) => broken).filter((text) => text.includes("drains")),
      [],
    );
  });

  it("every promise is broken by one of these histories, or was not seen to be kept", () => {
    const tried = new Set(CASES.slice(0, -1).flatMap(([, , expected]) => Object.keys(expected)));
    assert.deepEqual(
      PROMISES.map(({ promise }) => promise).filter((promise) => !tried.has(promise)),
      [],
    );
  });
});
