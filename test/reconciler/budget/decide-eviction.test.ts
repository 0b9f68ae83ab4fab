/** Evictions and how they are answered, one case each. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { PARTITIONS } from "../../builders/budgets.ts";
import { type Case, decide } from "./scene.ts";

/** The answer with short names. */
type EvictionCase = readonly [name: string, eviction: Case, answer: string];

const unready = (where: string): string => `429 1 pod not ready in ${where}`;
const MET = "200 zpdb met across 3 zones";

function judgeEach(what: string, cases: readonly EvictionCase[]): void {
  describe(what, () => {
    for (const [name, one, expected] of cases) {
      it(`${name}: ${expected}`, async () => {
        const answer = await decide(one);
        assert.equal(`${VERDICTS[answer.reason].code} ${answer.message.replaceAll("ingester-", "")}`, expected);
        assert.deepEqual(
          answer.objects.map(({ kind }) => kind),
          ["Pod", "ZoneAwarePodDisruptionBudget"],
        );
      });
    }
  });
}

/** Its main container works. */
const LIMPING = { broken: "CrashLoopBackOff", working: true };
/** A pod that was ready until 01:00:00. */
const NOT_LONG = Date.parse("2026-01-01T01:04:59Z");
const met = (partition: string): string => `200 zpdb met for partition ${partition} across 3 zones`;

const CASES: readonly EvictionCase[] = [
  // The original answers the first two with 403, which makes drainers give up.
  ["maxUnavailable 0 is a no for now", { spec: { maxUnavailable: 0 } }, "429 max unavailable = 0"],
  ["the rollout's own limit replaces 0", { spec: { maxUnavailable: 0 }, rollout: 1 }, MET],
  ["in partition mode 1 replaces 0", { spec: { maxUnavailable: 0, ...PARTITIONS }, rollout: 3 }, met("0")],
  [
    "in partition mode 1 replaces 0, regardless of the rollout's limit",
    { spec: { maxUnavailable: 0, ...PARTITIONS }, rollout: 3, zones: { b: "n!nn" } },
    unready("partition 0"),
  ],
  ["percentage 0", { spec: { maxUnavailablePercentage: 0 } }, "429 max unavailable = 0"],
  [
    "percentage of a zone that has no pods yet",
    { spec: { maxUnavailablePercentage: 50 }, zones: { a: "nnn counts 0" } },
    "429 max unavailable = 0",
  ],
  ["percentage of the pod's own zone", { spec: { maxUnavailablePercentage: 67 }, zones: { a: "nn!n" } }, MET],
  [
    "a partition whose peer was scaled away",
    { pod: "zone-b-2", spec: PARTITIONS, zones: { a: "nn" } },
    "429 1 pod unknown in partition 2",
  ],
  [
    "a partition of whose peer is left what never served",
    { pod: "zone-b-2", spec: PARTITIONS, zones: { a: "nnn! of 2" } },
    "429 1 pod unknown in partition 2",
  ],
  [
    "a peer that failed and one that was scaled away, max 2",
    { pod: "zone-c-2", spec: { maxUnavailable: 2, ...PARTITIONS }, zones: { a: "n", b: "nnnf" } },
    "429 1 pod not ready, 1 pod unknown in partition 2",
  ],
  ["the pod's own zone has one reserved", { pod: "zone-a-2", reserved: ["zone-a-0"] }, unready("zone-a")],
  ["its own reservation does not block it", { reserved: ["zone-a-0"] }, MET],
  ["all pods ready", {}, MET],
  ["a failure in the zone, max 1", { zones: { a: "nnfn" } }, unready("zone-a")],
  ["a failure in the zone, max 2", { spec: { maxUnavailable: 2 }, zones: { a: "nnfn" } }, MET],
  ["a failure in another zone, max 1", { zones: { c: "nnfn" } }, unready("zone-c")],
  ["a failure in another zone, max 2", { spec: { maxUnavailable: 2 }, zones: { c: "nn!n" } }, unready("zone-c")],
  ["the status counts a pod that does not exist", { zones: { b: "nnn counts 4" } }, "429 1 pod unknown in zone-b"],
  ["missing pods and terminating pods", { zones: { b: ".n-." } }, "429 1 pod not ready, 2 pods unknown in zone-b"],
  ["the rollout's limit is ignored when one is configured", { spec: { maxUnavailable: 1 }, rollout: 1 }, MET],
  [
    "a reservation in another zone",
    { pod: "zone-b-0", reserved: ["zone-a-0"], rollout: 2 },
    "429 1 pod not ready in zone-a (ready, but allowed to go: zone-a-0)",
  ],
  [
    "a reservation of a pod that is gone from the ready ones is not named",
    { pod: "zone-b-0", reserved: ["zone-a-0"], rollout: 2, zones: { a: "n!nn" } },
    unready("zone-a"),
  ],
  [
    "a pod beyond the replicas of its zone stands in for none that is missing",
    { zones: { b: ".nnn of 3" } },
    "429 1 pod to be removed, 1 pod unknown in zone-b",
  ],
  [
    "nor does one below the first ordinal",
    { zones: { b: { start: 1 } } },
    "429 1 pod to be removed, 1 pod unknown in zone-b",
  ],
  ["partition: all pods ready", { spec: PARTITIONS }, met("0")],
  ["partition: the own zone does not count", { spec: PARTITIONS, zones: { a: "nnfn" } }, met("0")],
  ["partition: another partition does not count", { spec: PARTITIONS, zones: { c: "nnnf" } }, met("0")],
  ["partition: a peer that failed", { spec: PARTITIONS, zones: { b: "nfnn" } }, unready("partition 0")],
  [
    "partition: a peer that is reserved",
    { spec: PARTITIONS, reserved: ["zone-b-0", "zone-c-1"] },
    unready("partition 0"),
  ],
  [
    "partition: a missing pod counts in every partition",
    { spec: PARTITIONS, zones: { b: "nnn counts 4" } },
    "429 1 pod unknown in partition 0",
  ],
  [
    "partition by the second group",
    {
      spec: { podNamePartitionRegex: "ingester(-foo)?-zone-[a-z]-([0-9]+)", podNameRegexGroup: 2 },
      zones: { b: "nnn counts 4" },
    },
    "429 1 pod unknown in partition 0",
  ],
  ["one peer failed, max 2", { spec: { maxUnavailable: 2, ...PARTITIONS }, zones: { b: "nfnn" } }, met("0")],
  [
    "two peers failed, max 2",
    { spec: { maxUnavailable: 2, ...PARTITIONS }, zones: { b: "nfnn", c: "n!nn" } },
    "429 2 pods not ready in partition 0",
  ],
  [
    "a name without a partition",
    { spec: { podNamePartitionRegex: "(x)" } },
    "400 failed to extract partition from pod Name regular expression",
  ],
  [
    "the rollout replaces an unavailable pod: the unavailable pods of its own zone do not block it",
    { rollout: 1, zones: { a: "nxnxn" } },
    MET,
  ],
  ["they do block an eviction of the same pod", { zones: { a: "nxnxn" } }, unready("zone-a")],
  ["nor do those of other zones: it serves nothing", { rollout: 1, zones: { a: "nxnn", b: "n!nn" } }, MET],
  ["a pod that was never ready serves nothing, either", { rollout: 1, zones: { a: "n!nn", b: "n!nn" } }, MET],
  ["in partitions as well", { rollout: 1, spec: PARTITIONS, zones: { a: "n!nn", b: "n!nn" } }, met("0")],
  [
    "unavailable pods of another zone block the rollout for a pod of which one container works",
    { rollout: 1, zones: { a: "n~nn", b: "n!nn" } },
    unready("zone-b"),
  ],
  [
    "and for a pod that was ready until lately",
    { rollout: 1, now: NOT_LONG, zones: { a: "n?nn", b: "n!nn" } },
    unready("zone-b"),
  ],
  ["not once it has had its time to recover", { rollout: 1, zones: { a: "n?nn", b: "n!nn" } }, MET],
  [
    "a pod that works in part goes though others of its zone wait for the same cure",
    { rollout: 3, zones: { a: "o~o~o~" } },
    MET,
  ],
  [
    "it waits for such a pod of another group under the budget",
    {
      rollout: 1,
      zones: {
        a: "o~oo",
        d: { name: "store-zone-a", group: "store", at: "prev", pods: { 0: LIMPING } },
      },
    },
    unready("store-zone-a"),
  ],
  [
    "but not while another one of them is on its way",
    { pod: "zone-a-1", rollout: 3, zones: { a: "o~o~o~" }, reserved: ["zone-a-0"] },
    unready("zone-a"),
  ],
  [
    "or has its replacement, which is not ready",
    { pod: "zone-a-1", rollout: 3, zones: { a: "n~o~o~" } },
    unready("zone-a"),
  ],
  [
    "nor is one that is ready spared less for it",
    { pod: "zone-a-1", rollout: 3, zones: { a: "o~oo" } },
    unready("zone-a"),
  ],
  ["a pod beyond its zone's replicas that never served counts for nobody", { zones: { b: "nnnn! of 3" } }, MET],
  ["one that serves or has served does", { zones: { b: "nnnn? of 3" } }, unready("zone-b")],
  [
    "all blocking zones are named, the pod's own last",
    { zones: { a: "nn!n", b: "nnn counts 4", c: "n!nn!" } },
    "429 1 pod unknown in zone-b; 2 pods not ready in zone-c; 1 pod not ready in zone-a",
  ],
];

judgeEach("the eviction of a pod", CASES);

const moment = (whom: string): string =>
  `429 zone-a-0 was allowed to go a moment ago, for ${whom}; try again once it is gone`;
const AGAIN = { pod: "zone-a-0", reserved: ["zone-a-0"] } as const;

// A pod that was allowed to go a moment ago (§5.8).
judgeEach("a pod that is reserved already", [
  ["an eviction of a UID that another eviction has reserved: both are the same disruption", AGAIN, MET],
  ["an eviction without a UID may reach the successor", { ...AGAIN, unpinned: true }, moment("an eviction")],
  [
    "an eviction with a UID after one without: the first may reach the successor",
    { ...AGAIN, reservedFor: "unpinned eviction" },
    moment("an eviction"),
  ],
  [
    "for 15 seconds: until then the API server may retry",
    { ...AGAIN, unpinned: true, reservedMs: 14_999 },
    moment("an eviction"),
  ],
  ["then it is judged like any other", { ...AGAIN, unpinned: true, reservedMs: 15_000 }, MET],
  ["the first eviction without a UID is judged like any other", { pod: "zone-a-0", unpinned: true }, MET],
  ["the rollout does not touch a pod that is being evicted", { ...AGAIN, rollout: 1 }, moment("an eviction")],
  [
    "an eviction does not touch a pod that the rollout replaces",
    { ...AGAIN, reservedFor: "rollout" },
    moment("the rollout"),
  ],
  [
    "an eviction without a UID not even later: the rollout may delete the pod at any time, and the eviction then reach its successor",
    { ...AGAIN, unpinned: true, reservedFor: "rollout", reservedMs: 119_000 },
    moment("the rollout"),
  ],
  ["an eviction with a UID may, later", { ...AGAIN, reservedFor: "rollout", reservedMs: 15_000 }, MET],
  ["the rollout takes over another rollout's reservation", { ...AGAIN, reservedFor: "rollout", rollout: 1 }, MET],
]);
