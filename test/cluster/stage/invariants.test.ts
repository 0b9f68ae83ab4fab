import assert from "node:assert/strict";
import { test } from "node:test";
import {
  byPartition,
  deletions,
  type Entry,
  findTooFew,
  findViolations,
  type PodState,
  returns,
} from "./invariants.ts";

/** `a-0 ready` is the pod a-0 of zone a; `a-0' ready` is its successor. */
function timeline(...lines: readonly string[]): Entry[] {
  return lines.map((line, at) => {
    const [uid = "", state] = line.split(" ");
    const pod = uid.replaceAll("'", "");
    return { group: "cache", zone: pod.slice(0, 1), pod, uid, revision: "", state: state as PodState, at };
  });
}

const HEALTHY = ["a-0 ready", "a-1 ready", "b-0 ready", "b-1 ready"];

const CASES: readonly {
  readonly name: string;
  readonly lines: readonly string[];
  readonly limit?: number;
  readonly violations?: readonly RegExp[];
}[] = [
  {
    name: "one pod after the other",
    lines: ["a-0 terminating", "a-0 gone", "a-0' notReady", "a-0' ready", "b-0 terminating"],
  },
  {
    name: "a second zone while the first pod is gone",
    lines: ["a-0 terminating", "a-0 gone", "b-0 terminating"],
    violations: [/disrupted at once/, /another zone/],
  },
  {
    name: "a second zone while the successor is not ready",
    lines: ["a-0 terminating", "a-0 gone", "a-0' notReady", "b-0 terminating"],
    violations: [/disrupted at once/, /another zone/],
  },
  {
    name: "a second pod of the zone",
    lines: ["a-0 terminating", "a-1 terminating"],
    violations: [/by our doing, 1 may be/, /are unavailable, 1 may be/],
  },
  {
    name: "a second pod of the zone where two may be unavailable",
    lines: ["a-0 terminating", "a-1 terminating"],
    limit: 2,
  },
  {
    name: "a pod beside one that failed by itself",
    lines: ["a-0 notReady", "a-1 terminating"],
    violations: [/a-0 \(notReady\), a-1 \(terminating\) are unavailable/],
  },
  {
    name: "a pod while another zone has one that failed by itself",
    lines: ["a-0 notReady", "b-1 terminating"],
    violations: [/a-0 \(notReady\) of another zone/],
  },
  {
    name: "a pod that failed by itself may be replaced",
    lines: ["a-0 notReady", "a-0 terminating", "a-0 gone", "a-0' notReady", "a-0' ready"],
  },
  {
    name: "a pod without a node is removed without terminating",
    lines: ["a-0 gone", "b-0 terminating"],
    violations: [/disrupted at once/, /another zone/],
  },
];

for (const { name, lines, limit = 1, violations = [] } of CASES) {
  test(`${name}: ${violations.length} violations`, () => {
    const found = findViolations(timeline(...HEALTHY, ...lines), () => limit);
    assert.equal(found.length, violations.length, found.join("\n"));
    for (const [index, pattern] of violations.entries()) assert.match(found[index] ?? "", pattern);
  });
}

test("groups do not mix", () => {
  const other = timeline("b-0 ready", "b-0 terminating").map((entry) => ({ ...entry, group: "store" }));
  assert.deepEqual(
    findViolations([...timeline("a-0 ready", "a-0 terminating"), ...other], () => 1),
    [],
  );
});

test("divided by partition, two zones may be disrupted at once, but not in one partition", () => {
  const found = (...lines: readonly string[]): string[] =>
    findViolations(byPartition(timeline(...HEALTHY, ...lines)), () => 1);
  assert.deepEqual(found("a-0 terminating", "a-1 terminating", "b-1 terminating").length, 2);
  assert.deepEqual(
    found("a-0 terminating", "b-1 terminating", "a-0 gone", "a-0' notReady", "a-0' ready", "b-0 terminating"),
    [],
  );
});

test("deletions and returns are counted once per pod", () => {
  const entries = timeline(
    "a-0 ready",
    "a-0 terminating",
    "a-0 gone",
    "a-0' notReady",
    "a-0' ready",
    "a-1 ready",
    "a-1 gone",
  );
  assert.deepEqual(
    deletions(entries).map(({ uid }) => uid),
    ["a-0", "a-1"],
  );
  assert.deepEqual(
    returns(entries).map(({ uid }) => uid),
    ["a-0'"],
  );
});

for (const [name, lines, found] of [
  ["one pod after the other", ["a-0 terminating", "a-0 gone", "a-2 ready", "a-1 terminating"], []],
  [
    "a pod before another one serves",
    ["a-0 terminating", "a-0 gone", "a-2 notReady", "a-1 terminating"],
    [/a-1 deleted: 2 pods are ready, 3 must be/],
  ],
  ["a pod that is not ready", ["a-0 notReady", "a-0 terminating"], []],
] as const)
  test(`a core budget: ${name}`, () => {
    const violations = findTooFew(timeline(...HEALTHY, ...lines), 3);
    assert.equal(violations.length, found.length, violations.join("\n"));
    found.forEach((pattern, i) => assert.match(violations[i] ?? "", pattern));
  });
