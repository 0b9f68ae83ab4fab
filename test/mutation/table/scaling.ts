/** Decisions of scaling, and the preparation of pods. */
import type { Mutation } from "../mutation.ts";

const DECIDE = {
  tests: ["test/reconciler/scaling/decide-scaling.test.ts", "test/reconciler/scaling/decide-properties.test.ts"],
};
const CALL_PODS = { file: "infra/call-pods.ts", tests: ["test/infra/call-pods.test.ts"] };
const STEADY = { file: "reconciler/scaling/steady.ts", tests: ["test/reconciler/scaling/steady.test.ts"] };
const DELAYED = {
  file: "reconciler/scaling/delayed.ts",
  tests: ["test/reconciler/scaling/delayed.test.ts", "test/reconciler/scaling/pod-ages.test.ts"],
};

export const SCALING_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a zone is not scaled down while a pod of another is being recreated",
    ...STEADY,
    file: "reconciler/model/health.ts",
    find: '(moves === "unlessServed" && served !== true)',
    replacement: "false",
  },
  {
    breaks: "a zone is not scaled down while another lacks pods",
    ...STEADY,
    find: "awaited > 0 || ",
    replacement: "",
  },
  {
    breaks: "a zone is not scaled down while another has surplus pods",
    ...STEADY,
    find: "if (isHealthy(whole)) return isSteady(whole) ?",
    replacement: "if (isHealthy(whole)) return isHealthy(whole) ?",
  },
  {
    breaks: "a zone is not scaled down while another's status is older than its spec",
    ...STEADY,
    find: "if (!whole.observed) return",
    replacement: "if (!whole.observed && whole.paused) return",
  },
  {
    breaks: "a zone waits for others unless all the pods that it loses serve nothing",
    ...STEADY,
    find: "|| servesNothing(pod, now));",
    replacement: '|| pod.health.state !== "ready");',
  },
  {
    breaks: "a pod is removed only once its delay is over",
    ...DELAYED,
    find: "now - preparedAt < ms && ",
    replacement: "now - preparedAt < ms / 2 && ",
  },
  {
    breaks: "a delay that cannot be read holds the downscale",
    ...DELAYED,
    find: `if (ms === undefined) return invalid(`,
    replacement: `if (ms === undefined) return undefined;\n  if (ms < 0) return invalid(`,
  },
  {
    breaks: "the pod that was prepared last decides",
    ...DELAYED,
    find: "place > (last?.place ?? -1)) last",
    replacement: "last === undefined) last",
  },
  {
    breaks: "a serviceName that is not a DNS label names no host",
    file: "reconciler/model/fqdn.ts",
    find: "if (DNS_LABEL.test(serviceName)) return undefined;",
    replacement: `if (serviceName !== "") return undefined;`,
    tests: [
      "test/reconciler/scaling/act/prepare-pods.test.ts",
      "test/functions/prepare-scope.test.ts",
      "test/reconciler/scaling/delayed.test.ts",
    ],
  },
  {
    breaks: "a redirect to another host than the pod is not followed",
    file: "infra/pod-http.ts",
    find: "if (to.origin !== from.origin)",
    replacement: "if (to.protocol !== from.protocol)",
    tests: ["test/infra/pod-http.test.ts"],
  },
  {
    breaks: "a pod that refuses its preparation holds the zone",
    file: "reconciler/scaling/act/scale-group.ts",
    find: "status >= 200 && status < 300 ? readPreparedAt(body) : undefined",
    replacement: "readPreparedAt(body)",
    tests: ["test/reconciler/scaling/mirror-delayed.test.ts"],
  },
  {
    breaks: "a zone's reference is read again after its pods were prepared",
    file: "reconciler/scaling/decide-scaling.ts",
    find: "if (delayOf(turn) && readWanted(zone, facts.confirmed) !== wanted) return undefined;",
    replacement: "",
    tests: ["test/reconciler/scaling/mirror-delayed.test.ts"],
  },
  {
    breaks: "pods count as prepared for the number of replicas that they were called for",
    file: "reconciler/scaling/decide-scaling.ts",
    ...DECIDE,
    find: "if (answers?.wanted !== wanted) return undefined;",
    replacement: "if (!answers) return undefined;",
  },
  {
    breaks: "a zone with a delay is scaled down only once its pods have been called",
    file: "reconciler/scaling/decide-scaling.ts",
    ...DECIDE,
    find: "return delay && !isHold(delay) && wanted < zone.replicas ? delay : undefined;",
    replacement: "return delay && !isHold(delay) && wanted > zone.replicas ? delay : undefined;",
  },
  {
    breaks: "no other zone is scaled once one has been",
    file: "reconciler/scaling/decide-scaling.ts",
    ...DECIDE,
    find: "if (scaled) return {",
    replacement: "if (scaled && zones.length === 0) return {",
  },
  {
    breaks: "a group with a zone that is being deleted is not scaled",
    file: "reconciler/scaling/decide-scaling.ts",
    ...DECIDE,
    find: "if (zones.some((zone) => zone.terminating)) return [];",
    replacement: "",
  },
  {
    breaks: "a refused zone is not tried again in the same tick",
    file: "reconciler/scaling/decide-scaling.ts",
    ...DECIDE,
    find: "notRefused, decideFollower, decideMirror,",
    replacement: "decideFollower, decideMirror, notRefused,",
  },
  {
    breaks: "no pod is called once the Lease may have passed to another process",
    ...CALL_PODS,
    find: "if (mayCall?.() === false) throw",
    replacement: "if (mayCall === undefined && failed) throw",
  },
  {
    breaks: "after the first pod that refuses its preparation no further pod is prepared",
    ...CALL_PODS,
    find: "if (stopAtFailure || hasCode(",
    replacement: "if (hasCode(",
  },
  {
    breaks: "pods that answer are told that they stay without waiting for silent ones",
    ...CALL_PODS,
    find: "targets: order, timeoutMs: QUICK_MS, atOnce",
    replacement: "targets: order, atOnce",
  },
  {
    breaks: "silent and slow pods have few places until all others were called",
    ...CALL_PODS,
    find: "const SILENT_PART = 1 / 4;",
    replacement: "const SILENT_PART = 15 / 16;",
  },
  {
    breaks: "a round that goes on is not begun anew, so that slow pods have their time",
    file: "reconciler/scaling/act/pod-notifier.ts",
    tests: ["test/reconciler/scaling/act/pod-notifier.test.ts"],
    find: "(isRunning || now - last.begunAt < REPEAT_MS)",
    replacement: "now - last.begunAt < REPEAT_MS",
  },
  {
    breaks: "a pod that was silent for a second has not confirmed",
    ...CALL_PODS,
    find: "targets: [next]",
    replacement: "targets: []",
  },
  {
    breaks: "no pod is always the last that is told that it stays",
    ...CALL_PODS,
    find: "Math.floor(random() * targets.count)",
    replacement: "Math.floor(0 * targets.count)",
  },
  {
    breaks: "silent pods of one zone leave most requests to those of others",
    file: "reconciler/scaling/act/pod-notifier.ts",
    find: "silentHttp: callsToSilent,",
    replacement: "silentHttp: calls,",
    tests: ["test/reconciler/scaling/act/pod-notifier.test.ts"],
  },
  {
    breaks: "pods are prepared only after an earlier cancellation of preparations has ended",
    file: "reconciler/scaling/act/pod-notifier.ts",
    find: "await last?.done;",
    replacement: "",
    tests: ["test/reconciler/run/preparation-order.test.ts"],
  },
  {
    breaks: "a time that no timestamp can name stops no group",
    file: "infra/timestamp.ts",
    tests: ["test/infra/duration.test.ts", "test/reconciler/group-status/act/far-times.test.ts"],
    find: "new Date(Math.min(Math.max(ms, FIRST), LAST))",
    replacement: "new Date(ms)",
  },
  {
    breaks: "a pod that tells milliseconds has told no time",
    file: "reconciler/scaling/delayed.ts",
    tests: ["test/reconciler/scaling/delayed.test.ts"],
    find: "timestamp <= LAST_SECOND",
    replacement: "timestamp <= 8.64e12",
  },
  {
    breaks: "a single tick waits for the calls to pods that stay",
    file: "reconciler/run/session.ts",
    tests: ["test/reconciler/run/run.test.ts"],
    find: "session.underWay, session.notifier.idle()]",
    replacement: "session.underWay]",
  },
  {
    breaks: "the minimum time of another zone does not count for a follower",
    file: "reconciler/scaling/min-time.ts",
    ...DECIDE,
    find: "const { minTime } = zone.scaling; if (minTime === undefined && label",
    replacement: `const minTime = snapshot.zones.find(({ scaling }) => scaling.minTime !== undefined)?.scaling.minTime;
  if (minTime === undefined && label`,
  },
  {
    breaks: "the minimum time of the zone that was scaled down does not count for a follower",
    file: "reconciler/scaling/min-time.ts",
    ...DECIDE,
    find: "const ms = parseGoDuration(minTime);",
    replacement: "const ms = parseGoDuration(last.zone.scaling.minTime ?? minTime);",
  },
  {
    breaks: "a leader whose pods cannot all be created is not ready",
    file: "reconciler/scaling/leader.ts",
    ...DECIDE,
    find: "leader.status.ready === leader.replicas)",
    replacement: "leader.status.ready === leader.status.replicas)",
  },
  {
    breaks: "a call to a pod that is to go ends with the run",
    file: "reconciler/scaling/act/scale-group.ts",
    tests: ["test/reconciler/run/slow-groups.test.ts"],
    find: "signal: scaler.stop",
    replacement: "signal: new AbortController().signal",
  },
];
