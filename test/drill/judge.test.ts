/** The judge of a drill, by histories: one that holds, and for each promise one that must fail and one that was not seen. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Entry, PodFact } from "./history.ts";
import { judge, PROMISES, type Row } from "./judge.ts";
import type { StageName } from "./plan.ts";

type Unplaced = Entry extends infer E ? (E extends unknown ? Omit<E, "at"> : never) : never;

/** Writes a history a line at a time; a second goes by with each. */
function write() {
  const entries: Entry[] = [];
  const uids = new Map<string, number>();
  let at = 0;
  let id = 0;
  const add = (entry: Unplaced): void => void entries.push({ at: (at += 1000), ...entry });
  const fact = (name: string, state: PodFact["state"], revision: string): PodFact => ({
    name,
    zone: name.slice(0, -2),
    ordinal: Number(name.at(-1)),
    uid: `${name}/${uids.get(name) ?? 0}`,
    revision,
    state,
  });
  const pod = (name: string, state: PodFact["state"], revision = "1"): void =>
    add({ what: "pod", pod: fact(name, state, revision) });
  const made = {
    entries,
    wait: (ms: number) => void (at += ms),
    stage: (stage: StageName, state: "begins" | "ends" | "overdue") => add({ what: "stage", stage, state }),
    /** All pods, of a list. */
    list: (gap: boolean, states: Readonly<Record<string, PodFact["state"]>> = {}) =>
      add({ what: "pods", gap, pods: PODS.map((name) => fact(name, states[name] ?? "up", "1")) }),
    leaves: (name: string) => pod(name, "leaving"),
    fails: (name: string) => pod(name, "starting"),
    recovers: (name: string) => pod(name, "up"),
    gone: (name: string) => pod(name, "gone"),
    returns: (name: string, revision = "1") => {
      pod(name, "gone", revision);
      uids.set(name, (uids.get(name) ?? 0) + 1);
      pod(name, "starting", revision);
      pod(name, "up", revision);
    },
    evict: (name: string, status: number, message = "") => {
      add({ what: "asked", id: ++id, pod: fact(name, "up", "1") });
      add({ what: "answered", id, status, message });
    },
    /** An eviction without an answer. */
    ask: (name: string) => add({ what: "asked", id: ++id, pod: fact(name, "up", "1") }),
    scale: (status: number, message = 'admission webhook "no-downscale" denied the request: no') =>
      add({ what: "scaled", by: "its scale", status, message }),
  };
  return made;
}
type Writing = ReturnType<typeof write>;

const ZONES = ["a", "b", "c"];
const PODS = ZONES.flatMap((zone) => [0, 1, 2].map((ordinal) => `${zone}-${ordinal}`));

function rollOut({ leaves, returns }: Writing, names: readonly string[]): void {
  for (const name of names) {
    leaves(name);
    returns(name, "2");
  }
}

/** A drill in which all went well, with what is changed about it. */
function play(change: Partial<Record<StageName, (history: Writing) => void>> = {}): Entry[] {
  const history = write();
  const { stage, list, leaves, returns, evict, gone, scale } = history;
  const WELL: Record<StageName, () => void> = {
    start: () => list(false),
    refusals: () => {
      evict("a-0", 201);
      leaves("a-0");
      evict("b-0", 429);
      returns("a-0");
      evict("c-1", 201);
      leaves("c-1");
      evict("a-1", 429);
      returns("c-1");
    },
    drains: () => {
      for (const name of ["b-0", "b-1", "b-2", "c-0", "c-1", "c-2"]) {
        evict(name, 201);
        leaves(name);
        returns(name);
      }
    },
    rollout: () => rollOut(history, PODS),
    kept: () => (scale(403), scale(403)),
    downscale: () => {
      scale(200);
      for (const zone of ZONES) {
        leaves(`${zone}-2`);
        gone(`${zone}-2`);
      }
    },
  };
  for (const name of Object.keys(WELL) as StageName[]) {
    stage(name, "begins");
    (change[name] ?? WELL[name])(history);
    if (history.entries.at(-1)?.what !== "stage") stage(name, "ends");
  }
  return history.entries;
}

const verdicts = (rows: readonly Row[]): Record<string, string> =>
  Object.fromEntries(
    rows.filter(({ verdict }) => verdict !== "held").map(({ promise, verdict }) => [promise, verdict]),
  );

interface Case {
  readonly name: string;
  readonly change: Parameters<typeof play>[0];
  /** The promises that are not held; all others are. */
  readonly expected: Readonly<Record<string, string>>;
}

const BROKEN = "did not hold";

/** What is not held if changes were missed. */
const UNSEEN = {
  "one zone at a time": "not seen",
  "the limit of a zone": "not seen",
  refusals: "not seen",
  "downscale in turn": "not seen",
};

const CASES: readonly Case[] = [
  { name: "nothing happens but what was promised", change: {}, expected: {} },
  {
    name: "an eviction in a second zone is allowed",
    change: {
      drains: ({ evict, leaves, returns }) => {
        evict("c-1", 201);
        leaves("c-1");
        evict("a-1", 201);
        leaves("a-1");
        returns("c-1");
        returns("a-1");
      },
    },
    expected: { "one zone at a time": BROKEN, refusals: BROKEN },
  },
  {
    name: "the rollout takes a pod while one that was evicted in another zone is away",
    change: {
      rollout: (history) => {
        const { evict, leaves, returns } = history;
        evict("c-0", 201);
        leaves("c-0");
        leaves("a-0");
        returns("c-0");
        returns("a-0", "2");
        rollOut(history, PODS.slice(1));
      },
    },
    expected: { "one zone at a time": BROKEN },
  },
  {
    name: "a pod is deleted at once, and was never seen to leave",
    change: {
      rollout: (history) => {
        const { evict, leaves, gone, returns } = history;
        evict("c-0", 201);
        leaves("c-0");
        gone("a-0");
        returns("c-0");
        returns("a-0", "2");
        rollOut(history, PODS.slice(1));
      },
    },
    expected: { "one zone at a time": BROKEN },
  },
  {
    name: "a successor that is not up yet counts as away",
    change: {
      drains: ({ evict, leaves, gone, fails, returns }) => {
        evict("c-1", 201);
        leaves("c-1");
        gone("c-1");
        fails("c-1");
        evict("a-1", 201);
        leaves("a-1");
        returns("a-1");
        returns("c-1");
      },
    },
    expected: { "one zone at a time": BROKEN, refusals: BROKEN },
  },
  {
    name: "two pods of a zone are taken",
    change: {
      drains: ({ evict, leaves, returns }) => {
        evict("c-1", 201);
        leaves("c-1");
        evict("c-2", 201);
        leaves("c-2");
        returns("c-1");
        returns("c-2");
      },
    },
    expected: { "the limit of a zone": BROKEN },
  },
  {
    name: "a pod has just failed by itself, and a pod of another zone goes",
    change: {
      drains: ({ fails, evict, leaves, returns, recovers }) => {
        fails("c-1");
        evict("a-1", 201);
        leaves("a-1");
        returns("a-1");
        recovers("c-1");
      },
    },
    expected: {},
  },
  {
    name: "a pod failed long ago, and a pod of another zone goes",
    change: {
      drains: ({ fails, wait, evict, leaves, returns, recovers }) => {
        fails("c-1");
        wait(10_000);
        evict("a-1", 201);
        leaves("a-1");
        returns("a-1");
        recovers("c-1");
      },
    },
    expected: { "one zone at a time": BROKEN, refusals: BROKEN },
  },
  {
    name: "an eviction is refused with a code that drainers give up on",
    change: {
      refusals: ({ evict, leaves, returns }) => {
        evict("a-0", 201);
        leaves("a-0");
        evict("b-0", 403, "denied");
        returns("a-0");
      },
    },
    expected: { refusals: BROKEN, answers: BROKEN },
  },
  {
    name: "the webhook cannot be called",
    change: { drains: ({ evict }) => evict("a-0", 500, 'failed calling webhook "pod-eviction"') },
    expected: { answers: BROKEN },
  },
  {
    name: "an eviction has no answer",
    change: { drains: ({ evict }) => evict("b-0", 0, "timeout") },
    expected: { answers: BROKEN, rollout: "not seen" },
  },
  { name: "a pod is gone before it is evicted", change: { drains: ({ evict }) => evict("a-0", 404) }, expected: {} },
  {
    name: "a pod is gone before the webhook looks at it",
    change: {
      drains: ({ evict }) =>
        evict("a-0", 400, 'admission webhook "pod-eviction" denied the request: pods "a-0" not found (400)'),
    },
    expected: {},
  },
  {
    name: "nothing was refused",
    change: {
      refusals: ({ evict, leaves, returns }) => (evict("a-0", 201), leaves("a-0"), returns("a-0")),
    },
    expected: { refusals: "not seen", answers: "not seen" },
  },
  {
    name: "a drain does not end",
    change: { drains: ({ stage }) => stage("drains", "overdue") },
    expected: { "drains end": "not seen" },
  },
  {
    name: "the rollout comes back to a zone",
    change: {
      rollout: (history) => rollOut(history, ["a-0", "b-0", ...PODS.slice(1, 3), ...PODS.slice(4)]),
    },
    expected: { rollout: BROKEN },
  },
  {
    name: "evictions have replaced pods before the rollout did",
    change: {
      rollout: (history) => {
        for (const name of PODS) {
          history.evict(name, 201);
          rollOut(history, [name]);
        }
      },
    },
    expected: { rollout: "not seen" },
  },
  {
    name: "an eviction in another zone during the rollout is not the rollout's doing",
    change: {
      rollout: (history) => {
        rollOut(history, ["a-0"]);
        history.evict("b-0", 201);
        rollOut(history, ["b-0", ...PODS.slice(1)]);
      },
    },
    expected: {},
  },
  {
    name: "an eviction that was asked for as the stage before ended is not the rollout's doing",
    change: {
      drains: ({ evict, leaves, returns }) => {
        evict("b-0", 201);
        leaves("b-0");
        returns("b-0");
        evict("c-2", 201);
      },
      rollout: (history) => {
        rollOut(history, ["a-0"]);
        rollOut(history, ["c-2", ...PODS.slice(1)]);
      },
    },
    expected: {},
  },
  {
    name: "an eviction without an answer that was sent long before is not who took the pod",
    change: {
      drains: ({ ask, wait }) => {
        for (const name of ["b-0", "c-1"]) ask(name);
        wait(40_000);
      },
    },
    expected: {},
  },
  {
    name: "an eviction without an answer that was sent a moment before may have taken the pod",
    change: { drains: ({ ask }) => ask("a-0") },
    expected: { rollout: "not seen" },
  },
  {
    name: "the rollout is not over in time",
    change: { rollout: ({ stage }) => stage("rollout", "overdue") },
    expected: { rollout: "not seen" },
  },
  {
    name: "the zone with the label is scaled down",
    change: { kept: ({ scale }) => (scale(403), scale(200)) },
    expected: { "no downscale": BROKEN },
  },
  {
    name: "nobody could say whether the zone with the label may be scaled down",
    change: { kept: ({ scale }) => (scale(500), scale(0)) },
    expected: { "no downscale": "not seen" },
  },
  {
    name: "an admission policy refuses the downscale",
    change: {
      kept: ({ scale }) => {
        scale(403, "ValidatingAdmissionPolicy 'no-downscale' with binding 'no-downscale' denied request: no");
        scale(400);
      },
    },
    expected: {},
  },
  {
    name: "the downscale is refused by what is no rule of the installation",
    change: { kept: ({ scale }) => (scale(403, 'User "ann" cannot patch resource "statefulsets"'), scale(422, "no")) },
    expected: { "no downscale": "not seen" },
  },
  {
    name: "the zone without the label may not be scaled down by whoever runs the drill",
    change: {
      downscale: ({ scale, stage }) => {
        scale(403, 'User "ann" cannot patch resource "statefulsets"');
        stage("downscale", "overdue");
      },
    },
    expected: { "downscale in turn": "not seen" },
  },
  {
    name: "the label is gone, and the zone may not be scaled down all the same",
    change: { downscale: ({ scale, stage }) => (scale(403), stage("downscale", "overdue")) },
    expected: { "downscale in turn": BROKEN },
  },
  {
    name: "two zones shrink at once",
    change: {
      downscale: ({ scale, leaves, gone }) => {
        scale(200);
        leaves("a-2");
        leaves("b-2");
        gone("a-2");
        gone("b-2");
        leaves("c-2");
        gone("c-2");
      },
    },
    expected: { "one zone at a time": BROKEN, "downscale in turn": BROKEN },
  },
  {
    name: "no zone follows its leader",
    change: {
      downscale: ({ scale, leaves, gone, stage }) => {
        scale(200);
        leaves("a-2");
        gone("a-2");
        stage("downscale", "overdue");
      },
    },
    expected: { "downscale in turn": "not seen" },
  },
  {
    name: "changes were missed",
    change: { kept: ({ list, scale }) => (list(true), scale(403)) },
    expected: UNSEEN,
  },
  {
    name: "an eviction was allowed for the pod's UID, and the pod was not seen to go",
    change: { kept: ({ evict, scale }) => (evict("a-0", 201), scale(403), scale(403)) },
    expected: UNSEEN,
  },
  {
    name: "no pod came up",
    change: Object.fromEntries(
      ["start", "refusals", "drains", "rollout", "kept", "downscale"].map((stage) => [
        stage,
        (history: Writing) => history.stage(stage as StageName, "overdue"),
      ]),
    ),
    expected: Object.fromEntries(PROMISES.map(({ promise }) => [promise, "not seen"])),
  },
];

describe("the judge of a drill", () => {
  for (const { name, change, expected } of CASES)
    it(name, () => assert.deepEqual(verdicts(judge(play(change))), expected));

  it("a history that ends early leaves promises not seen, and breaks none", () => {
    const whole = play();
    for (let length = 0; length < whole.length; length++)
      for (const { promise, verdict, broken } of judge(whole.slice(0, length)))
        assert.ok(verdict !== BROKEN && broken.length === 0, `${promise} after ${length} entries`);
  });

  it("a rollout that is not over says by pods who replaced what", () => {
    const row = judge(
      play({
        rollout: (history) => {
          rollOut(history, ["a-0", "a-1", "a-2"]);
          history.evict("b-0", 201);
          rollOut(history, ["b-0"]);
          history.ask("b-1");
          rollOut(history, ["b-1"]);
          history.stage("rollout", "overdue");
        },
      }),
    ).find(({ promise }) => promise === "rollout");
    assert.equal(row?.tried, "3 of 9 pods");
    assert.match(
      row?.seen ?? "",
      /^not over after \d+s, 1 evicted, 1 by it or by an eviction without an answer, 4 not replaced$/,
    );
  });

  it("drains that are not over say how many pods they have moved", () => {
    const row = judge(
      play({
        drains: ({ evict, leaves, returns, stage }) => {
          evict("b-0", 201);
          leaves("b-0");
          returns("b-0");
          evict("c-0", 429);
          stage("drains", "overdue");
        },
      }),
    ).find(({ promise }) => promise === "drains end");
    assert.match(row?.seen ?? "", /^not over after \d+s: 1 of 6 pods gone, 1 refusal$/);
  });

  it("refusals that came too late to show anything are told apart from none", () => {
    const late = play({ refusals: ({ evict }) => (evict("a-0", 201), evict("b-0", 429)) });
    const row = judge(late).find(({ promise }) => promise === "refusals");
    assert.deepEqual([row?.verdict, row?.tried], ["not seen", "0 evictions"]);
    assert.equal(row?.seen, "1 refused, none of them while a pod was away throughout");
  });

  it("what was missed in a gap is not held against anybody", () => {
    const rows = judge(play({ drains: ({ list }) => list(true, { "a-0": "leaving", "b-0": "leaving" }) }));
    assert.deepEqual(
      rows.flatMap(({ broken }) => broken).filter((text) => text.includes("drains")),
      [],
    );
  });

  it("every promise is broken by one of these histories, or was not seen to be kept", () => {
    const tried = new Set(CASES.slice(0, -1).flatMap(({ expected }) => Object.keys(expected)));
    assert.deepEqual(
      PROMISES.map(({ promise }) => promise).filter((promise) => !tried.has(promise)),
      [],
    );
  });
});
