/** Disruption budgets: verdicts, reservations, and the order of reads that makes them safe. */
import type { Mutation } from "../mutation.ts";

const RESERVE = ["test/reconciler/budget/act/reserve.test.ts", "test/reconciler/run/reserve-trouble.test.ts"];
const STORE = {
  file: "reconciler/budget/act/budget-store.ts",
  tests: ["test/reconciler/budget/act/reservation-store.test.ts", "test/reconciler/run/reserve-trouble.test.ts"],
};
const TURN = {
  file: "reconciler/budget/act/decide-together.ts",
  tests: [...RESERVE, "test/reconciler/run/reserve-bounds.test.ts"],
};
const RESERVATION = { file: "reconciler/budget/reservation.ts", tests: RESERVE };
const INTERLEAVINGS = [
  "test/reconciler/interleavings/slow-process.test.ts",
  "test/reconciler/interleavings/interleavings.test.ts",
];

const OPEN_STORE = "const store = await openReservationStore(cluster, listed.object, call);";
const GATHER = "const seen = await gatherUnderBudget(budget, tools, call);";

/** Downscales as disruptions like others. */
const DOWNSCALE = ["test/reconciler/budget/act/downscale.test.ts", "test/reconciler/budget/decide-downscale.test.ts"];
const VERDICT = { file: "reconciler/budget/decide-downscale.ts", tests: DOWNSCALE };
const COUNT = { file: "reconciler/budget/decide-eviction.ts", tests: DOWNSCALE };
const WRITE = { file: "reconciler/scaling/act/scale-zone.ts", tests: DOWNSCALE };
const ADMIT = { file: "functions/downscale/prepare-zone.ts", tests: DOWNSCALE };

const DECIDE = { tests: ["test/reconciler/budget/decide-eviction.test.ts", "test/reconciler/sick/sick-pods.test.ts"] };

export const BUDGET_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "the reconciler reserves a downscale before it writes the replicas",
    ...WRITE,
    find: "replicas < zone.replicas ? await scaler.mayDownscale",
    replacement: "replicas < 0 ? await scaler.mayDownscale",
  },
  {
    breaks: "a zone does not shrink while a budget denies it",
    ...WRITE,
    find: 'if (grant?.action === "hold") return grant;',
    replacement:
      'if (grant?.action === "hold") { if (forced) return grant; await changeReplicas(step, scaler); return undefined; }',
  },
  {
    breaks: "a downscale stays reserved while its write may take effect",
    ...WRITE,
    find: "if (grant && wroteNothing(error)) await",
    replacement: "if (grant) await",
  },
  {
    breaks: "a downscale that was refused is released",
    ...WRITE,
    find: "if (grant && wroteNothing(error)) await",
    replacement: "if (grant && !(error instanceof RolloutError)) await",
  },
  {
    breaks: "prepare-downscale admits nothing that a budget denies",
    ...ADMIT,
    find: "const reserved = await reserve(prepareRequest, tools);",
    replacement:
      'const reserved = { handles: [], ...(await reserve(prepareRequest, tools)), outcome: "allowed" } as DisruptionResult;',
  },
  {
    breaks: "prepare-downscale releases what it reserved for a downscale that it denies",
    ...ADMIT,
    find: "if (!answer.allowed) await releaseAll(reserved.handles, tools);",
    replacement: "",
  },
  {
    breaks: "the release of a downscale leaves that of an earlier request for the same pods",
    ...RESERVATION,
    find: "if (!Object.hasOwn(reservations, key)) return key;",
    replacement: "if (number > 0 || !Object.hasOwn(reservations, key)) return key;",
    tests: DOWNSCALE,
  },
  {
    breaks: "a zone does not shrink while its budgets cannot be asked",
    file: "reconciler/budget/act/may-disrupt.ts",
    find: "return holdDownscale({ ...verdict, message:",
    replacement: "if (zone.replicas >= 0) return undefined;\n        return holdDownscale({ ...verdict, message:",
    tests: DOWNSCALE,
  },
  {
    breaks: "a surplus pod that never served stands in for no peer of its partition",
    ...COUNT,
    find: "isTested(one) && !isIdleSurplus(one, zone)",
    replacement: "isTested(one)",
    tests: ["test/reconciler/budget/decide-eviction.test.ts"],
  },
  {
    breaks: "a downscale waits for unavailable pods of other zones",
    ...VERDICT,
    find: "return sumOf(count) > 0 ? [describe",
    replacement: "return sumOf(count) > 1 ? [describe",
  },
  {
    breaks: "a downscale waits for its pods' peers in other zones",
    ...VERDICT,
    find: "if (sumOf(sum) >= allowed) return describe",
    replacement: "if (sumOf(sum) > allowed) return describe",
  },
  {
    breaks: "a downscale waits if one of its pods serves",
    ...VERDICT,
    find: "leaving.some((pod) => !servesNothing(pod, now))",
    replacement: 'leaving.some(({ health }) => health.state === "ready")',
  },
  {
    breaks: "a downscale waits for pods of other zones that may come up again, or that are to stay",
    ...VERDICT,
    find: "pods: other.pods.filter((pod) => !isGivenUp(pod, other, shrink))",
    replacement: 'pods: other.pods.filter((pod) => pod.health.state === "ready" && !isGivenUp(pod, other, shrink))',
  },
  {
    breaks: "a pod is given up only once it has not been ready for as long as it may take to recover",
    file: "reconciler/model/readiness.ts",
    tests: ["test/reconciler/scaling/steady.test.ts", ...DOWNSCALE],
    find: "shrink.now - since >= (fault",
    replacement: "shrink.now - since >= 0 * (fault",
  },
  {
    breaks: "a pod is given up only if its zone is to lose it",
    file: "reconciler/model/readiness.ts",
    tests: ["test/reconciler/scaling/steady.test.ts", ...DOWNSCALE],
    find: "? size : other.replicas;",
    replacement: "? size : size;",
  },
  {
    breaks: "pods beyond the replicas of their zone count as going",
    ...COUNT,
    find: "isSurplus(one, zone) || ordinalOf(one) >= from",
    replacement: "ordinalOf(one) >= from",
  },
  {
    breaks: "pods of a reserved downscale count as going",
    ...COUNT,
    find: "isSurplus(one, zone) || ordinalOf(one) >= from",
    replacement: "isSurplus(one, zone)",
  },
  {
    breaks: "a downscale counts until it is stored whole",
    ...RESERVATION,
    tests: DOWNSCALE,
    find: "zone.firstOrdinal + zone.replicas > from;",
    replacement: "zone.firstOrdinal + zone.replicas > from + 1;",
  },
  {
    breaks: "a downscale counts as long as it may be stored",
    file: "reconciler/model/scaling.ts",
    find: "export const STORE_TIMEOUT_MS = 90_000;",
    replacement: "export const STORE_TIMEOUT_MS = 60_000;",
    tests: DOWNSCALE,
  },
  {
    breaks: "a downscale is of one StatefulSet, by UID",
    ...RESERVATION,
    tests: DOWNSCALE,
    find: 'one.kind === "downscale" && one.uid === uid',
    replacement: 'one.kind === "downscale" && uid !== ""',
  },
  {
    breaks: "a zone under an invalid budget does not shrink",
    file: "reconciler/budget/zpdb.ts",
    find: "return invalid && ",
    replacement: "return invalid && budgets.length < 0 && ",
    tests: DOWNSCALE,
  },
  {
    breaks: "reservations in a Lease count until the budget has the field",
    ...STORE,
    find: "const written = budget.status?.disruptedPods;",
    replacement: "const written = budget.status && (budget.status.disruptedPods ?? {});",
  },
  {
    breaks: "a reservation in the far future ends once it is written again",
    ...RESERVATION,
    tests: DOWNSCALE,
    find: "< -CLOCK_SKEW_MS ?",
    replacement: "< -Infinity ?",
  },
  {
    breaks: "a pod that works in part does not escape its budget",
    ...DECIDE,
    file: "reconciler/budget/decide-eviction.ts",
    find: "rollout !== undefined && servesNothing(pod, now)",
    replacement: 'rollout !== undefined && pod.health.state !== "ready" && now > 0',
  },
  {
    breaks: "an eviction of a pod that serves nothing asks its budget, unlike the rollout",
    ...DECIDE,
    file: "reconciler/budget/decide-eviction.ts",
    find: "rollout !== undefined && servesNothing(pod, now)",
    replacement: "servesNothing(pod, now) || rollout === null",
  },
  {
    breaks: "of pods that wait for the same cure, one that is reserved counts",
    ...DECIDE,
    file: "reconciler/budget/decide-eviction.ts",
    find: " || reservationOf(one, reservations)) return false;",
    replacement: " || !reservations) return false;",
  },
  {
    breaks: "of pods that wait for the same cure, one that has its replacement counts",
    ...DECIDE,
    file: "reconciler/budget/decide-eviction.ts",
    find: "!isTerminating(one) && one.revision !== zone.status.updateRevision",
    replacement: "!isTerminating(one)",
  },
  {
    breaks: "a reservation is written before the eviction is allowed",
    ...TURN,
    find: "await store.write(reservations, { deadlineMs, signal: deadline.signal });",
    replacement: "if (deadlineMs < 0) await store.write(reservations, { signal: deadline.signal });",
  },
  {
    breaks: "a dry run reserves nothing",
    ...TURN,
    find: `if (verdict.reason !== "Allowed" || dryRun)`,
    replacement: `if (verdict.reason !== "Allowed")`,
  },
  {
    breaks: "a reservation of the rollout, which may be released, is not shared",
    ...TURN,
    find: 'earlier.kind === "eviction" || (rollout !== undefined && earlier.by === by)',
    replacement: "earlier.by === by || !rollout",
  },
  {
    breaks: "the reservation of an unpinned eviction is always written",
    ...TURN,
    find: "isSafe && !unpinned && ",
    replacement: "isSafe && ",
  },
  {
    breaks: "the reservation of an earlier disruption of the pod is never released",
    ...TURN,
    find: "isReleasable: !earlier",
    replacement: "isReleasable: true",
  },
  {
    breaks: "an old reservation is renewed for an eviction that is allowed again",
    ...TURN,
    find: "ageOf(earlier, now) < RENEWED_AFTER_MS",
    replacement: "ageOf(earlier, now) < 3 * RENEWED_AFTER_MS",
  },
  {
    breaks: "nothing is reserved with too little time left",
    ...TURN,
    find: "if (remaining(request, clock) < LEAST_FOR_WRITE_MS)",
    replacement: "if (remaining(request, clock) < -LEAST_FOR_WRITE_MS)",
  },
  {
    breaks: "a budget is read before the pods",
    ...TURN,
    tests: INTERLEAVINGS,
    find: `${OPEN_STORE}\n  ${GATHER}`,
    replacement: `${GATHER}
  const again = (await readBudgets(namespace, tools, call)).find(({ ref }) => ref.uid === listed.ref.uid);
  ${OPEN_STORE.replace("listed.object", "again?.object ?? listed.object")}`,
  },
  {
    breaks: "the Lease of a budget is read before the pods",
    ...TURN,
    tests: INTERLEAVINGS,
    find: `${OPEN_STORE}\n  ${GATHER}`,
    replacement: `${GATHER}\n  ${OPEN_STORE}`,
  },
  {
    breaks: "the reconciler removes no reservation whose time is not over",
    file: "reconciler/budget/act/keep-budgets.ts",
    find: "livingReservations(readReservations(before.disruptedPods), undefined, now)",
    replacement: "livingReservations(readReservations(before.disruptedPods), undefined, now + 30_000)",
    tests: ["test/reconciler/budget/act/keep-budgets.test.ts"],
  },
  {
    breaks: "reservations are written only to the version of the budget that was read",
    ...STORE,
    tests: RESERVE,
    find: "    ...budget,\n    apiVersion: `${group}/${version}`,",
    replacement:
      "    ...budget,\n    metadata: (await cluster.get(disruptionBudgets, { namespace, name }, call)).metadata,\n    apiVersion: `${group}/${version}`,",
  },
  {
    breaks: "a CRD that drops the status is detected by reading back",
    ...STORE,
    find: "return Object.entries(next).every(([key, reservation]) => isSame(kept[key], reservation));",
    replacement: "return true;",
  },
  {
    breaks: "the Lease of a budget is written only to the version that was read",
    ...STORE,
    tests: INTERLEAVINGS,
    find: "changeLease(leaseRefOf(budget), found, {",
    replacement:
      'changeLease(leaseRefOf(budget), found && { ...found, metadata: { ...found.metadata, resourceVersion: "" } }, {',
  },
  {
    breaks: "a reservation counts for 2 minutes",
    ...RESERVATION,
    find: "const LASTS_MS = 2 * 60_000;",
    replacement: "const LASTS_MS = 60_000;",
  },
  {
    breaks: "a reservation counts until 2 minutes are over",
    ...RESERVATION,
    find: "const LASTS_MS = 2 * 60_000;",
    replacement: "const LASTS_MS = 4 * 60_000;",
  },
  {
    breaks: "a reservation is for one pod, by UID",
    ...RESERVATION,
    find: "return pods.has(uid);",
    replacement: "return pods.size > 0 || pods.has(uid);",
  },
  {
    breaks: "a process releases only its own reservation",
    file: "reconciler/budget/act/reserve.ts",
    find: "if (isSame(found, handle)) await",
    replacement: "if (found) await",
    tests: RESERVE,
  },
  {
    breaks: "no attempt begins after the answer is due",
    file: "infra/kubernetes/retry-on-conflict.ts",
    find: "      if (leftMs() <= 0) throw error;\n    }",
    replacement: "    }",
    tests: ["test/infra/kubernetes/retry-on-conflict.test.ts"],
  },
  {
    breaks: "a grant is not released if the effect of the deletion is unknown",
    file: "reconciler/rollout/act/take-rollout-step.ts",
    find: "if (wroteNothing(error)) unused.add(grant);",
    replacement: "unused.add(grant); if (wroteNothing(error)) void grant;",
    tests: ["test/reconciler/run/tick-budget.test.ts", "test/reconciler/rollout/act/delete-pods.test.ts"],
  },
  {
    breaks: "a reserved pod counts as not ready",
    file: "reconciler/budget/decide-eviction.ts",
    find: "if (!isReady(pod) || reservationOf(pod, reservations)) return false;",
    replacement: "if (!isReady(pod)) return false;",
    tests: ["test/reconciler/budget/decide-eviction.test.ts"],
  },
  {
    breaks: "a pod of another zone counts as ready only after the delay between zones",
    file: "reconciler/budget/decide-eviction.ts",
    find: "now > pod.readySince + budget.crossZoneEvictionDelayMs",
    replacement: "now >= pod.readySince + budget.crossZoneEvictionDelayMs",
    tests: [
      "test/reconciler/budget/decide-eviction.test.ts",
      "test/reconciler/budget/readiness.test.ts",
      "test/reconciler/budget/act/reserve.test.ts",
    ],
  },
  {
    breaks: "missing pods count as unavailable",
    file: "reconciler/budget/decide-eviction.ts",
    find: "unknown: countMissing(zone, withLeftBehind(zone, pod))",
    replacement: "unknown: 0",
    tests: ["test/reconciler/budget/decide-eviction.test.ts"],
  },
  {
    breaks: "a pod whose Ready condition tells no time is never ready for long enough",
    file: "reconciler/model/pod.ts",
    find: "if (turned === undefined) return undefined;",
    replacement: "if (turned === undefined) return -Infinity;",
    tests: ["test/reconciler/budget/readiness.test.ts"],
  },
  {
    breaks: "a pod is not ready for longer than the API server knows it, whatever its node's clock says",
    file: "reconciler/model/pod.ts",
    find: "[createdAt, ...started].map(",
    replacement: "started.map(",
    tests: ["test/reconciler/budget/readiness.test.ts"],
  },
  {
    breaks: "a restarted container begins the delay again",
    file: "reconciler/model/pod.ts",
    find: "[createdAt, ...started].map(",
    replacement: "[createdAt].map(",
    tests: ["test/reconciler/budget/readiness.test.ts"],
  },
  {
    breaks: "an invalid budget protects the pods that it selects",
    file: "reconciler/budget/zpdb.ts",
    find: "budgets.filter((budget) => selectsLabels(budget, pod.labels));",
    replacement:
      'budgets.filter((budget) => selectsLabels(budget, pod.labels) && budgets.some(({ content }) => !("problem" in content)));',
    tests: RESERVE,
  },
  {
    breaks: "a budget whose selector cannot be read may select any pod of its namespace",
    file: "reconciler/budget/zpdb.ts",
    find: "matchLabels === undefined || matchesLabels(matchLabels, labels);",
    replacement: "matchLabels !== undefined && matchesLabels(matchLabels, labels);",
    tests: ["test/reconciler/budget/find-budget.test.ts"],
  },
  {
    breaks: "the selector of a budget has no expressions",
    file: "reconciler/budget/zpdb.ts",
    find: "!Array.isArray(matchExpressions) || matchExpressions.length > 0",
    replacement: "matchExpressions === undefined",
    tests: ["test/reconciler/budget/zpdb.test.ts"],
  },
  {
    breaks: "a pod under two budgets is not evicted",
    file: "reconciler/budget/zpdb.ts",
    find: "if (found.length > 1) {",
    replacement: "if (found.length > 2) {",
    tests: RESERVE,
  },
  {
    breaks: "budgets of one name in two namespaces share no queue and no pods",
    file: "reconciler/budget/act/reserve.ts",
    tests: RESERVE,
    find: "`${namespace}/${name.replace(",
    replacement: "`${namespace.length > 0}/${name.replace(",
  },
  {
    breaks: "the first pod that a downscale takes is counted from ordinals.start",
    file: "reconciler/budget/act/reserve.ts",
    tests: DOWNSCALE,
    find: "from: zone.firstOrdinal + to,",
    replacement: "from: to,",
  },
  {
    breaks: "a downscale leaves as many replicas as its first ordinal is beyond ordinals.start",
    ...VERDICT,
    find: "size: from - zone.firstOrdinal,",
    replacement: "size: from,",
  },
  {
    breaks: "pods of two groups under one budget wait for no common cure",
    file: COUNT.file,
    tests: [...DECIDE.tests, "test/reconciler/run/tick-budget.test.ts"],
    find: "|| zone.uid !== pod.owner ||",
    replacement: "||",
  },
];
