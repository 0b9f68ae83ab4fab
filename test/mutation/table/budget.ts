/** Disruption budgets: verdicts, reservations, and the order of reads that makes them safe. */
import type { Mutation } from "../mutation.ts";

const RESERVE = ["test/reconciler/reservations/reserve.test.ts", "test/reconciler/reserve-trouble.test.ts"];
const STORE = {
  file: "reconciler/reservations/reservation-store.ts",
  tests: ["test/reconciler/reservations/reservation-store.test.ts", "test/reconciler/reserve-trouble.test.ts"],
};
const BATCH = { file: "reconciler/reservations/decide-batch.ts", tests: [...RESERVE, "test/reconciler/reserve-bounds.test.ts"] };
const RESERVATION = { file: "reconciler/budget/reservation.ts", tests: RESERVE };
const INTERLEAVINGS = ["test/reconciler/interleavings/slow-process.test.ts", "test/reconciler/interleavings/interleavings.test.ts"];

const OPEN_STORE = "const store = await openReservationStore(state.cluster, options, call);";
const GATHER = "const seen = await gatherUnderBudget(budget, state, call);";

export const BUDGET_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a reservation is written before the eviction is allowed",
    ...BATCH,
    find: `if ((await store.write(reservations, { deadlineMs, signal: deadline.signal })) === "kept") return results;`,
    replacement: `if (deadlineMs > 0 && store) return results;`,
  },
  {
    breaks: "a dry run reserves nothing",
    ...BATCH,
    find: `if (verdict.reason !== "Allowed" || request.dryRun)`,
    replacement: `if (verdict.reason !== "Allowed")`,
  },
  {
    breaks: "a reservation of the rollout, which may be released, is not shared",
    ...BATCH,
    find: "(found.by === by || isForEviction(found))",
    replacement: "(found.by === by || !request.rollout)",
  },
  {
    breaks: "the reservation of an unpinned eviction is always written",
    ...BATCH,
    find: "isFor(pod, found) && !request.unpinned && ",
    replacement: "isFor(pod, found) && ",
  },
  {
    breaks: "the reservation of an earlier disruption of the pod is never released",
    ...BATCH,
    find: "if (isAgain) return decided(verdict);",
    replacement: "",
  },
  {
    breaks: "an old reservation is renewed for an eviction that is allowed again",
    ...BATCH,
    find: "ageOf(found, now) < RENEWED_AFTER_MS",
    replacement: "ageOf(found, now) < 3 * RENEWED_AFTER_MS",
  },
  {
    breaks: "nothing is reserved with too little time left",
    ...BATCH,
    find: "if (!pod || remaining(request, state.clock) < LEAST_FOR_WRITE_MS)",
    replacement: "if (!pod)",
  },
  {
    breaks: "a budget is read before the pods",
    ...BATCH,
    tests: INTERLEAVINGS,
    find: `${OPEN_STORE}\n  ${GATHER}`,
    replacement: `${GATHER}
  const again = (await readBudgets(namespace, state, deadline)).find(({ ref }) => ref.uid === listed.ref.uid);
  ${OPEN_STORE.replace("listed.object", "again?.object ?? listed.object")}`,
  },
  {
    breaks: "the Lease of a budget is read before the pods",
    ...BATCH,
    tests: INTERLEAVINGS,
    find: `${OPEN_STORE}\n  ${GATHER}`,
    replacement: `${GATHER}\n  ${OPEN_STORE}`,
  },
  {
    breaks: "the tick reads the budgets before the pods whose reservations it removes",
    file: "reconciler/tick.ts",
    find: "const listed = await budgets.maintenance.readBudgets(common.namespace, budgetLists);\n  const snapshot = await gatherGroup(zones, input);",
    replacement:
      "const snapshot = await gatherGroup(zones, input);\n  const listed = await budgets.maintenance.readBudgets(common.namespace, budgetLists);",
    tests: ["test/reconciler/maintenance/order.test.ts"],
  },
  {
    breaks: "the read pods of one group do not decide about reservations of other groups' pods",
    file: "reconciler/maintenance/expired-reservations.ts",
    find: "(isOurs(pod) ? uids.get(pod) : all[pod]?.uid)",
    replacement: "(isOurs(pod) ? uids.get(pod) : uids.get(pod))",
    tests: ["test/reconciler/maintenance/maintain-budgets.test.ts"],
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
    find: "return Object.entries(next).every(([pod, reservation]) => isSame(kept[pod], reservation));",
    replacement: "return true;",
  },
  {
    breaks: "the Lease of a budget is written only to the version that was read",
    ...STORE,
    tests: INTERLEAVINGS,
    find: "changeLease(leaseRefOf(budget), found, {",
    replacement: 'changeLease(leaseRefOf(budget), found && { ...found, metadata: { ...found.metadata, resourceVersion: "" } }, {',
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
    find: "< LASTS_MS && uidOf(pod) === reservation.uid",
    replacement: "< LASTS_MS && uidOf(pod) !== undefined",
  },
  {
    breaks: "a process releases only its own reservation",
    file: "reconciler/reservations/release.ts",
    find: "if (isSame(found, handle)) await",
    replacement: "if (found) await",
    tests: RESERVE,
  },
  {
    breaks: "a grant is not released if the effect of the deletion is unknown",
    file: "reconciler/updater/delete-pods.ts",
    find: "if (wroteNothing(error)) unused.add(grant);",
    replacement: "unused.add(grant);",
    tests: ["test/reconciler/tick-budget.test.ts", "test/reconciler/updater/delete-pods.test.ts"],
  },
  {
    breaks: "a reserved pod counts as not ready",
    file: "reconciler/budget/unavailability.ts",
    find: "if (!pod.ready || reservations[pod.name]?.uid === pod.uid) return false;",
    replacement: "if (!pod.ready) return false;",
    tests: ["test/reconciler/budget/decide.test.ts"],
  },
  {
    breaks: "a pod of another zone counts as ready only after the delay between zones",
    file: "reconciler/budget/unavailability.ts",
    find: "now > pod.readySince + budget.crossZoneEvictionDelayMs",
    replacement: "now >= pod.readySince + budget.crossZoneEvictionDelayMs",
    tests: [
      "test/reconciler/budget/decide.test.ts",
      "test/reconciler/budget/readiness.test.ts",
      "test/reconciler/maintenance/maintain-budgets.test.ts",
    ],
  },
  {
    breaks: "missing pods count as unavailable",
    file: "reconciler/budget/unavailability.ts",
    find: "unknown: countMissing(zone, zone.pods)",
    replacement: "unknown: 0",
    tests: ["test/reconciler/budget/decide.test.ts"],
  },
  {
    breaks: "the ready time of a pod that is not ready is removed",
    file: "reconciler/budget/ready-time.ts",
    find: "if (pod.terminating || pod.ready === (pod.readyTime !== undefined)) return [];",
    replacement: "if (pod.terminating || !pod.ready || pod.readyTime !== undefined) return [];",
    tests: ["test/reconciler/maintenance/ready-times.test.ts"],
  },
  {
    breaks: "a ready time is written only to the pod that was read, by UID",
    file: "reconciler/maintenance/ready-times.ts",
    find: "metadata: { uid, annotations",
    replacement: "metadata: { annotations",
    tests: ["test/reconciler/maintenance/ready-times.test.ts"],
  },
  {
    breaks: "an invalid budget protects the pods that it selects",
    file: "reconciler/budget/scope.ts",
    find: "filter(({ matchLabels }) => matchLabels && ",
    replacement: `filter(({ matchLabels, content }) => !("problem" in content) && matchLabels && `,
    tests: RESERVE,
  },
  {
    breaks: "a pod under two budgets is not evicted",
    file: "reconciler/budget/scope.ts",
    find: "if (found.length > 1) {",
    replacement: "if (found.length > 2) {",
    tests: RESERVE,
  },
];
