/** Downscales that webhooks admit, and their Leases. */
import type { Mutation } from "../mutation.ts";

const PREPARE = {
  file: "functions/downscale/prepare-downscale.ts",
  tests: [
    "test/functions/downscale/prepare-downscale.test.ts",
    "test/functions/prepare-trouble.test.ts",
    "test/functions/prepare-scope.test.ts",
  ],
};
const ZONE = { ...PREPARE, file: "functions/downscale/prepare-zone.ts" };
const GROUP_LEASE = {
  file: "reconciler/downscale/act/downscale-lease.ts",
  tests: ["test/reconciler/downscale/act/downscale-lease.test.ts"],
};
const TURN = {
  file: "reconciler/downscale/pending.ts",
  tests: ["test/reconciler/downscale/turn.test.ts", "test/functions/downscale-refused-elsewhere.test.ts"],
};
const POD_CALLS = { file: "infra/call-pods.ts", tests: ["test/reconciler/downscale/act/pod-calls.test.ts"] };
const PENDING = { tests: ["test/reconciler/downscale/pending.test.ts"] };
const DECIDE = {
  file: "reconciler/downscale/decide-admission.ts",
  tests: [
    "test/reconciler/downscale/downscale.test.ts",
    "test/reconciler/downscale/unobserved.test.ts",
    "test/functions/downscale/prepare-downscale.test.ts",
  ],
};

export const DOWNSCALE_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "in both modes the later of tracker and annotation counts",
    file: "functions/downscale/other-zones.ts",
    find: "laterOf(scaling.lastDownscale, recorded.get(name))",
    replacement: "recorded.get(name) ?? scaling.lastDownscale",
    tests: PREPARE.tests,
  },
  {
    breaks: "an admitted downscale waits for other zones unless all the pods that go serve nothing",
    file: "functions/downscale/other-zones.ts",
    tests: ["test/functions/downscale/prepare-downscale.test.ts"],
    find: "if (own && losesNothing(own, replicas, now)) return undefined;",
    replacement: "if (own && losesNothing(own, own.replicas - 1, now + replicas)) return undefined;",
  },
  {
    breaks: "other ordinals take away no pod that is not prepared",
    file: "functions/downscale/prepare-downscale.ts",
    find: "after.start > before.start || after.end < before.end",
    replacement: "after.start > before.start && after.end < before.end",
    tests: ["test/functions/prepare-scope.test.ts"],
  },
  {
    breaks: "a downscale waits for a pod of another zone that cannot be made again",
    ...DECIDE,
    find: "const expected = Math.max(replicas, status.replicas) - givenUp.length - unawaited;",
    replacement: "const expected = status.replicas - givenUp.length - unawaited;",
  },
  {
    breaks: "a downscale is refused if a pod is not prepared",
    ...ZONE,
    find: "if (!(await postPrepare(calls, signal))) {",
    replacement: "if (!(await postPrepare(calls, signal)) && signal.aborted) {",
  },
  {
    breaks: "a downscale that another webhook makes larger is prepared as it is stored",
    file: "infra/manifests/webhooks/prepare-downscale.yaml",
    tests: ["test/functions/through-api.test.ts"],
    find: "reinvocationPolicy: IfNeeded",
    replacement: "reinvocationPolicy: Never",
  },
  {
    breaks: "a refusal cancels the preparations",
    ...ZONE,
    find: `(await cancelPreparation(calls, CANCEL_MS)) ? "staying" : "unknown"`,
    replacement: `"staying"`,
  },
  {
    breaks: "a preparation that could not be cancelled stays recorded, so that the tick cancels it",
    ...ZONE,
    tests: ["test/functions/prepare-trouble.test.ts", "test/functions/downscale-kills.test.ts"],
    find: `if (pods === "unknown") return`,
    replacement: `if (pods === "unknown") return found;\n  if (recorded !== found) return`,
  },
  {
    breaks: "a dry run prepares no pod",
    ...PREPARE,
    find: `if (request.dryRun) return { allowed: true, reason: "DryRun" };`,
    replacement: "",
  },
  {
    breaks: "a StatefulSet that is not scaled down is not prepared",
    ...PREPARE,
    find: `if (labels[LABELS.noDownscale] === "true") return`,
    replacement: `if (labels[LABELS.noDownscale] === "never") return`,
  },
  {
    breaks: "a StatefulSet that cannot be read is not scaled down",
    ...PREPARE,
    find: `return denyDownscale(candidate, "ParentUnknown", "finding the statefulset failed.");`,
    replacement: `return { allowed: true, reason: "ParentUnknown" };`,
  },
  {
    breaks: "the Lease of a group is written only to the version that was read",
    ...GROUP_LEASE,
    file: "infra/kubernetes/lease-object.ts",
    find: "return await cluster.replace(leases, { namespace, name, body: lease }, call);",
    replacement:
      "return await cluster.replace(leases, { namespace, name, body: { ...lease, metadata: (await cluster.get(leases, { namespace, name }, call)).metadata ?? {} } }, call);",
  },
  {
    breaks: "the Lease of a group excludes other requests",
    ...GROUP_LEASE,
    file: "infra/kubernetes/lease-object.ts",
    find: "if (!holderIdentity || holderIdentity === holder) return false;",
    replacement: "return false;",
  },
  {
    breaks: "a zone waits for another whose downscale was admitted and may still be stored",
    file: "functions/downscale/other-zones.ts",
    tests: ["test/functions/downscale/other-zones.test.ts"],
    find: "if (admitted) return",
    replacement: "if (admitted && refusal) return",
  },
  {
    breaks: "a downscale counts that may have happened before an upscale",
    file: "reconciler/downscale/pending.ts",
    tests: ["test/reconciler/downscale/pending.test.ts"],
    find: "changes > 1 || ",
    replacement: "",
  },
  {
    breaks: "a downscale that another webhook made smaller has happened",
    file: "reconciler/downscale/pending.ts",
    tests: ["test/reconciler/downscale/pending.test.ts", "test/functions/downscale-refused-elsewhere.test.ts"],
    find: " || (changes === 1 && replicas < from)",
    replacement: "",
  },
  {
    breaks: "pods are told that they stay by their ordinals, also after spec.ordinals.start has changed",
    file: "reconciler/downscale/pending.ts",
    ...PENDING,
    find: "const start = Math.max(prepared.start, firstOrdinal);",
    replacement: "const start = prepared.start + firstOrdinal;",
  },
  {
    breaks: "a zone whose downscales are never stored is refused after a while, so that others have their turn",
    ...TURN,
    find: "<= TURN_MS) return undefined;",
    replacement: "<= 1000 * TURN_MS) return undefined;",
  },
  {
    breaks: "downscales that follow each other count from the first one",
    ...TURN,
    find: "const { since = next.at } = turnOf(earlier, zone, parseTimestamp(next.at) ?? 0) ?? {};",
    replacement: "const since = next.at;",
  },
  {
    breaks: "a zone whose downscale was cancelled waits until its next turn",
    ...TURN,
    file: "reconciler/downscale/pending.ts",
    find: "cooldown: cooldownOf(pending, zone, now),",
    replacement: "cooldown: undefined,",
  },
  {
    breaks: "pods of a StatefulSet that was made again are told that they stay",
    ...PENDING,
    file: "reconciler/downscale/pending.ts",
    find: "staying: stayingOf(pending, zone),",
    replacement: "staying: isSame ? stayingOf(pending, zone) : { start: 0, end: 0 },",
  },
  {
    breaks: "a downscale of a StatefulSet that is gone stays recorded while it may be made again",
    ...PENDING,
    file: "reconciler/downscale/pending.ts",
    find: "< STORE_TIMEOUT_MS) return undefined;",
    replacement: "< 0) return undefined;",
  },
  {
    breaks: "a downscale is recorded with the pods of an earlier StatefulSet",
    ...PENDING,
    file: "reconciler/downscale/pending.ts",
    find: "return { ...next, ...prepared, since: next.at };",
    replacement: "return { ...next, since: next.at };",
  },
  {
    breaks: "a further downscale is refused before anything is recorded",
    ...TURN,
    file: "reconciler/downscale/act/downscale-lease.ts",
    find: "if (refusal) return { refusal };",
    replacement: "if (refusal && !lease) return { refusal };",
  },
  {
    breaks: "the time of another zone's last downscale must be over",
    ...DECIDE,
    file: "reconciler/scaling/min-time.ts",
    tests: ["test/reconciler/scaling/min-time.test.ts"],
    find: "if (now - last < min) {",
    replacement: "if (now - last < min - 1000) {",
  },
  {
    breaks: "a zone is not scaled down while another has pods that are not ready",
    ...DECIDE,
    find: "if (expected === ready && (updated === ready",
    replacement: "if ((updated === ready",
  },
  {
    breaks: "a zone is not scaled down while the surplus pods of another still run",
    ...DECIDE,
    find: "if (observed && surplus.length === 0) return undefined;",
    replacement: "if (observed) return undefined;",
  },
  {
    breaks: "a zone is not scaled down while the downscale of another is not observed",
    ...DECIDE,
    find: "if (observed && surplus.length === 0) return undefined;",
    replacement: "if (surplus.length === 0) return undefined;",
  },
  {
    breaks: "no-downscale uses the labels from before the change",
    file: "functions/downscale/no-downscale.ts",
    find: `if (old.kind !== "Scale") return old.labels;`,
    replacement: `if (old.kind !== "Scale") return {};`,
    tests: ["test/functions/downscale/no-downscale.test.ts"],
  },
  {
    breaks: "a note of a downscale that cannot be read is not dropped in silence",
    file: "reconciler/downscale/act/conclude-downscales.ts",
    tests: ["test/reconciler/downscale/act/conclude-downscales.test.ts"],
    find: "context.recorder.emitEvents([warning]);",
    replacement: "",
  },
  {
    breaks: "the reconciler's work under the Lease keeps the notes that it cannot read",
    ...GROUP_LEASE,
    find: "const last = pending === recorded ? {} : { pending };",
    replacement: "const last = { pending };",
  },
  {
    breaks: "a downscale whose end cannot be written holds up no other of its group",
    file: "reconciler/downscale/act/conclude-downscales.ts",
    tests: ["test/reconciler/downscale/act/conclude-downscales.test.ts"],
    find: "if (!wroteNothing(error)) throw error;",
    replacement: "if (!wroteNothing(error) || zone) throw error;",
  },
  {
    breaks: "a hanging call to a pod is cut off once the downscale Lease may have passed on",
    ...POD_CALLS,
    find: 'if (stopAtFailure || hasCode(error, "LeaseLost")) stop.abort',
    replacement: "if (stopAtFailure) stop.abort",
  },
  {
    breaks: "a hanging call to a pod is cut off when another pod refuses its preparation",
    ...POD_CALLS,
    find: "const request = { namespace, signal,",
    replacement: "const request = { namespace, signal: calls.signal,",
  },
];
