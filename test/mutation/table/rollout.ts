/** The rollout's reads and decisions. */
import type { Mutation } from "../mutation.ts";

const ZONE = {
  file: "reconciler/rollout/decide-zone.ts",
  tests: ["broken-pods", "decide-rollout", "properties"].map((name) => `test/reconciler/rollout/${name}.test.ts`),
};
const GROUP = { ...ZONE, file: "reconciler/rollout/decide-rollout.ts" };
const LOST = {
  file: "reconciler/model/lost.ts",
  tests: [...ZONE.tests, "test/reconciler/budget/decide-eviction.test.ts"],
};
const READINESS = { ...ZONE, file: "reconciler/model/readiness.ts" };

const WINDOW = {
  file: "reconciler/model/rollout-window.ts",
  tests: ["test/reconciler/model/rollout-window.test.ts", "test/reconciler/rollout/windows.test.ts"],
};

const PROTOBUF = { file: "infra/kubernetes/protobuf.ts", tests: ["test/infra/kubernetes/pod-protobuf.test.ts"] };

export const ROLLOUT_MUTATIONS: readonly Mutation[] = [
  ...(
    [
      [
        "a pod whose node's clock was set back does not count as never ready",
        "startedAt === undefined || turned < startedAt ?",
        "startedAt === undefined ?",
      ],
      [
        "no pod has been not ready for longer than it exists",
        'time && Math.max(time, parseTimestamp(created ?? "") ?? time)',
        "time",
      ],
    ] as const
  ).map(([breaks, find, replacement]): Mutation => ({
    breaks,
    find,
    replacement,
    file: "reconciler/model/pod.ts",
    tests: ["test/reconciler/model/model.test.ts"],
  })),
  ...(
    [
      [
        "no pod that serves goes while an orphaned zone lacks one",
        "reconciler/rollout/decide-zone.ts",
        "  orphansWell,\n",
        "",
        ["rollout/orphans", "run/orphans"],
      ],
      [
        "no zone shrinks while an orphaned zone lacks a pod",
        "reconciler/scaling/steady.ts",
        "if (orphaned) return orphaned;",
        "",
        ["rollout/orphans"],
      ],
      [
        "no downscale is admitted while an orphaned zone lacks a pod",
        "reconciler/downscale/decide-admission.ts",
        "if (unwell) return",
        "if (unwell && zones.length > 99) return",
        ["rollout/orphans"],
      ],
      [
        "no node starts while an orphaned zone lacks a pod",
        "reconciler/nodes/rollout-hold.ts",
        "if (own && !isHealthy(zone))",
        "if (own && !isHealthy(zone) && here.length > 99)",
        ["nodes/health"],
      ],
      [
        "pods of an orphaned zone on a node keep it while another zone rolls out",
        "reconciler/nodes/rollout-hold.ts",
        "(pod.madeBy === name && pod.namespace === namespace)",
        "pod.uid === name",
        ["nodes/health", "nodes/act/read-pods"],
      ],
      [
        "a group is read for a node that has only pods that a StatefulSet has left behind",
        "reconciler/nodes/rollout-hold.ts",
        "pods.some((pod) => pod.madeBy !== undefined && isNamed(pod)) ||",
        "",
        ["nodes/act/read-pods"],
      ],
      [
        "pods that a StatefulSet which was created again is not to have count as a zone",
        "reconciler/model/orphans.ts",
        "return zone !== undefined && !isSurplus(pod, zone)",
        "return zone !== undefined",
        ["model/orphans", "run/orphans"],
      ],
      [
        "a StatefulSet that was created again counts the pods of its own ordinals, not what is left of the former one",
        "reconciler/model/orphans.ts",
        "ordinals.every((ordinal) => ordinal >= behind)",
        "ordinals.length > 99",
        ["model/orphans"],
      ],
      [
        "a StatefulSet outside of a budget needs no peer in a partition",
        "reconciler/budget/decide-eviction.ts",
        'zone.orphaned === undefined || zone.orphaned === "gone"',
        'zone.orphaned !== "replaced"',
        ["budget/orphans"],
      ],
      [
        "an eviction of a pod of the former UID is judged once its StatefulSet was created again",
        "reconciler/budget/decide-eviction.ts",
        "zones.find(({ name }) => name === pod.madeBy)",
        "(pod.owner === undefined ? zones.find(({ name }) => name === pod.madeBy) : undefined)",
        ["budget/orphans", "run/orphans"],
      ],
      [
        "an orphaned zone counts in the budgets that select its pods",
        "reconciler/budget/act/gather-budget.ts",
        'orphans.filter(({ orphaned }) => orphaned !== "outside")',
        "[]",
        ["run/orphans"],
      ],
      [
        "a zone outside of a budget counts in it, if its pods are selected",
        "reconciler/budget/act/gather-budget.ts",
        "[...sets.items, ...outside]",
        "sets.items",
        ["run/orphans"],
      ],
      [
        "pods that were gone before their StatefulSet count as missing of an orphaned zone",
        "reconciler/model/orphans.ts",
        "Math.max(first + smallest - 1, ...ordinals)",
        "Math.max(...ordinals)",
        ["model/orphans"],
      ],
      [
        "the first pods count as missing of an orphaned zone",
        "reconciler/model/orphans.ts",
        "Math.min(...others.map(({ firstOrdinal }) => firstOrdinal), ...ordinals)",
        "Math.min(...ordinals)",
        ["model/orphans"],
      ],
      [
        "a pod that has still to be adopted does not count against its own eviction",
        "reconciler/budget/unavailability.ts",
        "pod && !orphaned && pod.madeBy === name && pod.owner !== uid",
        "pod && pod.owner === name",
        ["budget/orphans"],
      ],
      [
        "a group's list of pods has those that a StatefulSet has left behind",
        "reconciler/snapshot/shared-lists.ts",
        'isLabelled && group !== ""',
        "bound.length > 99",
        ["run/orphans"],
      ],
      [
        "a bare pod is no pod of a StatefulSet that is gone",
        "reconciler/model/pod.ts",
        "labels?.[POD_NAME] === name &&",
        "",
        ["model/orphans"],
      ],
      [
        "orphaned pods are listed again before each further pod of a batch",
        "reconciler/rollout/act/delete-pods.ts",
        "hasOrphans && !view.servesNothing ?",
        "hasOrphans && view.servesNothing ?",
        ["run/orphans"],
      ],
    ] as const
  ).map(([breaks, file, find, replacement, tests]): Mutation => ({
    breaks,
    file,
    find,
    replacement,
    tests: tests.map((name) => `test/reconciler/${name}.test.ts`),
  })),
  {
    breaks: "StatefulSets with an empty rollout-group are no group",
    file: "reconciler/model/refused-group.ts",
    tests: ["test/reconciler/run/too-many-zones.test.ts"],
    find: "firstOf([groupNamed, tooManyZones])",
    replacement: "firstOf([tooManyZones])",
  },
  {
    breaks: "no downscale of a zone with an empty rollout-group is admitted",
    file: "functions/downscale/prepare-downscale.ts",
    tests: ["test/functions/prepare-scope.test.ts"],
    find: "if (hasEmptyGroup(labels))",
    replacement: "if (hasEmptyGroup(undefined))",
  },
  ...(
    [
      ["batches that accelerate begin with one pod", "Math.log2(healthy + 1)", "Math.log2(healthy + 2)"],
      ["a pod that did not come up ends the row of healthy ones", "({ readyAt = Infinity })", "({ readyAt = 0 })"],
      ["a pod that has restarted came up with trouble", "restarts > 0 || broken", "restarts > 9 || broken"],
      [
        "pods that became ready before one in trouble count no longer",
        "&& pod.readyAt > since",
        "&& pod.readyAt !== since",
      ],
      ["growing batches stay below rollout-max-unavailable", "Math.min(most, 2 **", "Math.max(1, 2 **"],
    ] as const
  ).map(([breaks, find, replacement]): Mutation => ({
    breaks,
    find,
    replacement,
    file: "reconciler/rollout/batch-limit.ts",
    tests: ["test/reconciler/rollout/accelerate.test.ts"],
  })),
  {
    breaks: "no pod that serves is taken while the window of its zone is closed",
    file: ZONE.file,
    tests: WINDOW.tests,
    find: "const closed = unready.length > 0 ? undefined : waitForWindow(zone, now, count(candidates));",
    replacement: "const closed = undefined as Hold | undefined;",
  },
  {
    breaks: "pods that are not ready wait for no window",
    file: ZONE.file,
    tests: WINDOW.tests,
    find: "const closed = unready.length > 0 ? undefined : waitForWindow",
    replacement: "const closed = waitForWindow",
  },
  {
    breaks: "a window of which nobody knows the time is closed",
    file: ZONE.file,
    tests: WINDOW.tests,
    find: "now === undefined ? TIME_UNKNOWN : whyWindowClosed(zone, now)",
    replacement: "now === undefined ? undefined : whyWindowClosed(zone, now)",
  },
  {
    breaks: "a template that was taken back waits for no window",
    file: ZONE.file,
    tests: WINDOW.tests,
    find: "return isGoingBack(zone) ? undefined : findClosedWindow(zone.window, now);",
    replacement: "return findClosedWindow(zone.window, now);",
  },
  {
    breaks: "pods that are older than their StatefulSet are no way back",
    file: ZONE.file,
    tests: WINDOW.tests,
    find: " && createdAt >= since;",
    replacement: ";",
  },
  {
    breaks: "a template that was taken back waits for no zone whose window is closed",
    file: GROUP.file,
    tests: WINDOW.tests,
    find: "(decide(zones.filter(isGoingBack)) ?? decision)",
    replacement: "decision",
  },
  {
    breaks: "a batch ends when the window closes, or is set",
    file: "reconciler/rollout/continue-batch.ts",
    tests: WINDOW.tests,
    find: "  windowOpen,\n",
    replacement: "",
  },
  {
    breaks: "a window that cannot be read is closed",
    ...WINDOW,
    find: `if (problem !== undefined) return { reason: "WindowInvalid", message: problem };`,
    replacement: "if (problem !== undefined) return undefined;",
  },
  {
    breaks: "a window is closed in a freeze",
    ...WINDOW,
    find: "freezes.find(({ from, to }) => from <= at && at < to);",
    replacement: "freezes.find(({ from, to }) => from < at && at < to);",
  },
  {
    breaks: "a window closes at the end of its duration",
    file: "reconciler/model/window.ts",
    tests: WINDOW.tests,
    find: "fired + (durationSeconds - lastStartSeconds) * 1000",
    replacement: "fired + (durationSeconds - lastStartSeconds) * 1001",
  },
  {
    breaks: "a protobuf list whose values exceed their message is refused",
    ...PROTOBUF,
    find: "if (reader.pos !== reader.length) throw",
    replacement: "if (reader.pos < reader.length) throw",
  },
  {
    breaks: "a list in protobuf whose body was cut off is not a shorter list",
    ...PROTOBUF,
    find: "      if (isInside) throw tooLong();\n",
    replacement: "",
  },
  {
    breaks: "a protobuf answer without its list is not an empty list",
    ...PROTOBUF,
    find: "      if (!hasObject) throw new Error(`the ${kind} is missing`);\n",
    replacement: "",
  },
  {
    breaks: "a terminating pod is also terminating in protobuf",
    file: "infra/kubernetes/pod-protobuf.ts",
    find: `  9: time("deletionTimestamp"),\n`,
    replacement: "",
    tests: PROTOBUF.tests,
  },
  {
    breaks: "no list carries a resourceVersion, so that it shows the newest state",
    file: "infra/kubernetes/connect-cluster.ts",
    find: "const page = { ...selectors(query), ",
    replacement: 'const page = { ...selectors(query), resourceVersion: "0", ',
    tests: ["test/infra/kubernetes/connect-cluster.test.ts"],
  },
  {
    breaks: "only pods that the StatefulSet controls are its pods",
    file: "reconciler/model/zone.ts",
    find: "pods.filter((pod) => pod.owner === zone.uid).toSorted",
    replacement: "pods.toSorted",
    tests: ["test/reconciler/model/model.test.ts"],
  },
  {
    breaks: "nothing is deleted while another zone is unhealthy, paused ones too",
    ...ZONE,
    find: "other.uid !== zone.uid && !isSteady(other)",
    replacement: "other.uid !== zone.uid && !other.paused && !isSteady(other)",
  },
  {
    breaks: "nothing is deleted while another zone has surplus pods",
    ...READINESS,
    find: "isHealthy(zone) && withoutIdleSurplus(zone).pods.length <= zone.replicas",
    replacement: "isHealthy(zone)",
  },
  {
    breaks: "a batch reads the pods of another zone that has surplus pods",
    file: "reconciler/rollout/continue-batch.ts",
    find: "other.status.replicas > other.replicas",
    replacement: "other.status.replicas > other.replicas + 1000",
    tests: ["test/reconciler/rollout/continue-batch.test.ts"],
  },
  {
    breaks: "nothing is deleted while two zones are unhealthy",
    ...GROUP,
    find: "if (unhealthy.length < 2) return undefined;",
    replacement: "if (unhealthy.length < 3) return undefined;",
  },
  {
    breaks: "a status that is older than the spec says nothing",
    ...GROUP,
    find: "zones.filter((zone) => !zone.observed)",
    replacement: "zones.filter((zone) => !zone.observed && zone.paused)",
  },
  {
    breaks: "a zone that is being deleted holds its group",
    ...GROUP,
    find: "zones.filter((zone) => zone.terminating)",
    replacement: "zones.filter((zone) => zone.terminating && zone.paused)",
  },
  {
    breaks: "a zone with another update strategy than OnDelete holds its group",
    ...GROUP,
    find: `zone.updateStrategy !== "OnDelete"`,
    replacement: `zone.updateStrategy === ""`,
  },
  {
    breaks: "a paused zone loses no pod",
    ...GROUP,
    find: ".filter((zone) => !zone.paused);",
    replacement: ";",
  },
  {
    breaks: "half-working pods are replaced only up to the maximum minus missing pods",
    ...ZONE,
    find: "(unavailable(zone).count - outdated(zone)",
    replacement: "(unavailable(zone).pods.length - outdated(zone)",
  },
  {
    breaks: "pods are updated only up to the maximum minus pods that are no longer outdated and unavailable",
    ...ZONE,
    find: "  const room = countRoom(zone, limit);",
    replacement: "  const room = limit;",
  },
  {
    breaks: "ready pods go only once no outdated one is left that is not ready",
    ...ZONE,
    find: "unready.length > 0 ? unready : ready",
    replacement: "ready.length > 0 ? ready : unready",
  },
  {
    breaks: "a pod of which a container works is not lost",
    ...LOST,
    find: "return !pod.ready && !pod.working && pod.broken !== undefined;",
    replacement: "return !pod.ready && pod.broken !== undefined;",
  },
  {
    breaks: "a pod that was ready until lately recovers",
    ...LOST,
    find: "now - pod.notReadySince >= RECOVERY_MS",
    replacement: "now - pod.notReadySince >= 0",
  },
  {
    breaks: "a pod that has been ready may come back",
    ...LOST,
    find: "!pod.ready && !pod.working && pod.neverReady",
    replacement: "!pod.ready && !pod.working",
  },
  {
    breaks: "pods of two unhealthy zones that may still start do not get the same new template at once",
    ...ZONE,
    find: "(!isTried && neverServed(pod))",
    replacement: "neverServed(pod)",
  },
  {
    breaks: "pods that were ready, and have not been for long, are replaced within the limit",
    ...ZONE,
    find: "stalled.slice(0, countRoom(zone, zone.maxUnavailable))",
    replacement: "stalled",
  },
  {
    breaks: "pods that were ready wait until a template has come up where it was tried",
    ...ZONE,
    find: "tried.length > 0 ? [] : outdated",
    replacement: "isTried ? [] : outdated",
  },
  {
    breaks: "a surplus pod that has served counts",
    ...READINESS,
    find: "return neverServed(pod) && isSurplus(pod, zone);",
    replacement: "return !pod.ready && isSurplus(pod, zone);",
  },
  {
    breaks: "a batch of pods that serve ends once another zone is unhealthy",
    file: "reconciler/rollout/continue-batch.ts",
    find: "if (servesNothing) return undefined;",
    replacement: "if (!servesNothing) return undefined;",
    tests: ["test/reconciler/rollout/continue-batch.test.ts"],
  },
  {
    breaks: "a terminating pod is not deleted again",
    ...ZONE,
    file: READINESS.file,
    find: "zone.status.updateRevision && !pod.terminating && ",
    replacement: "zone.status.updateRevision && ",
  },
  {
    breaks: "pods that are missing are unavailable",
    ...READINESS,
    find: "const missing = countMissing(zone, zone.pods);",
    replacement: "const missing = 0;",
  },
  {
    breaks: "a surplus pod stands in for no missing one",
    ...READINESS,
    find: "const wanted = first < 0 ? 0 : pods.findLastIndex(isWanted) - first + 1;",
    replacement: "const wanted = first < -1 ? 0 : pods.length;",
  },
  {
    breaks: "pods that the status counts as not ready are unavailable",
    ...READINESS,
    find: "count: Math.max(expected - zone.status.ready, pods.length + missing)",
    replacement: "count: pods.length + missing",
  },
  {
    breaks: "a paused zone whose pod cannot be created holds the others",
    ...ZONE,
    find: "other.uid !== zone.uid && !isSteady(other));",
    replacement:
      "other.uid !== zone.uid && !isSteady(other.paused ? { ...other, replicas: other.status.replicas } : other));",
  },
  {
    breaks: "a group is not settled while a pod of a paused zone cannot be created",
    ...GROUP,
    find: "status.ready < replicas);",
    replacement: "status.ready < status.replicas);",
  },
];
