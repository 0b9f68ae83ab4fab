/** Checks and gates. */
import type { Mutation } from "../mutation.ts";

const GATES = {
  tests: ["rollout", "advance", "pass", "hold", "properties"].map((name) => `test/reconciler/gates/${name}.test.ts`),
};
const ROLLOUT = { file: "reconciler/gates/rollout.ts", ...GATES };
const PASS = { file: "reconciler/gates/pass.ts", ...GATES };
const RECORD = { file: "reconciler/gates/record.ts", ...GATES };
const CHECK = { file: "reconciler/checks/check.ts", tests: ["test/reconciler/checks/check.test.ts"] };
const RESULT = { file: "reconciler/checks/result.ts", tests: ["test/reconciler/checks/result.test.ts"] };
const CHECKING = { tests: ["test/reconciler/checks/act/ask-prometheus.test.ts"] };
const TURNS = { file: "reconciler/checks/act/turns.ts", tests: ["test/reconciler/checks/act/turns.test.ts"] };
const ON_CLUSTER = {
  tests: ["tick-gates", "follow-gate", "list-gates"].map((name) => `test/reconciler/gates/act/${name}.test.ts`),
};
const CLIENT = { file: "infra/prometheus/act/client.ts", tests: ["test/infra/prometheus/act/client.test.ts"] };

export const GATE_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "the credentials of a Pushgateway are not sent to where it redirects",
    file: "infra/metrics/push.ts",
    tests: ["test/infra/metrics/metrics.test.ts"],
    find: "(to.origin !== from.origin && { headers })",
    replacement: "{}",
  },
  {
    breaks: "a step that takes long reads the gates again before it deletes pods",
    file: "reconciler/run/step-group.ts",
    find: "if (isLate && decision",
    replacement: "if (isLate && snapshot.gatheredAt < 0 && decision",
    tests: ["test/reconciler/gates/act/tick-gates.test.ts"],
  },
  {
    breaks: "a partial answer is known as one",
    file: "infra/prometheus/answer.ts",
    find: `isPartial ? ["the answer is partial", ...warnings] : warnings`,
    replacement: "isPartial === undefined ? warnings : warnings",
    tests: ["test/infra/prometheus/answer.test.ts"],
  },
  {
    breaks: "a zone with serving pods waits for its gates",
    file: "reconciler/rollout/decide-rollout.ts",
    find: "takesServing(decision) ? (gates?.holds.get(decision.zone.uid) ?? decision) : decision;",
    replacement: "takesServing(decision) ? decision : decision;",
    tests: GATES.tests,
  },
  {
    breaks: "a gate records that a zone begins before its first pod goes",
    file: "reconciler/gates/hold.ts",
    find: `return need === "Nothing" ? undefined :`,
    replacement: `return need === "Nothing" || stage?.state === "Passed" ? undefined :`,
    tests: GATES.tests,
  },
  {
    breaks: "a gate's results from a time that is to come do not count",
    ...ROLLOUT,
    find: "gate.record && inPast(gate.record, view.now)",
    replacement: "gate.record && inPast(gate.record, Infinity)",
  },
  {
    breaks: "a gate's results of other templates do not count",
    ...ROLLOUT,
    find: "record?.identity === view.identity && !isOver",
    replacement: "record !== undefined && !isOver",
  },
  {
    breaks: "a gate's results of a rollout that is over do not count for the next one",
    ...ROLLOUT,
    find: "record?.settledAt !== undefined && view.wanted.kind",
    replacement: "record === undefined && view.wanted.kind",
  },
  {
    breaks: "a zone that was let begin and did not is asked for again after another zone",
    ...ROLLOUT,
    find: "if (!record.zones.some(isTaken)) return record;",
    replacement: "if (record.zones.length >= 0) return record;",
  },
  {
    breaks: "successes before another zone has begun do not count for the next one",
    ...ROLLOUT,
    find: `state === "Failed" || zone === next || begun.has(zone)`,
    replacement: `state === "Failed" || zone !== "" || begun.has(zone)`,
  },
  {
    breaks: "a new gate takes no zone without a pod of its template for one on its way back",
    ...ROLLOUT,
    find: "record ? updated < replicas : updated === 0",
    replacement: "record !== undefined && updated < replicas",
  },
  {
    breaks: "a gate leaves the way back open",
    ...ROLLOUT,
    find: "if (own?.settledRevision === zone.status.updateRevision)",
    replacement: "if (own === undefined)",
  },
  {
    breaks: "a zone that an earlier rollout has begun is asked for once another zone has begun in this one",
    ...ROLLOUT,
    find: `isFirstOver && one.began === "Earlier"`,
    replacement: `one.began === undefined`,
  },
  {
    breaks: "a pass that its zone has not used gets old",
    ...RESULT,
    ...GATES,
    find: " && !isOld(check, streak, now)",
    replacement: "",
  },
  {
    breaks: "a pass that its zone has not used ends when a check does not succeed",
    ...PASS,
    find: "record.stages.filter(isOver)",
    replacement: "record.stages.slice(0, 0)",
  },
  {
    breaks: "only the rollout begins a zone, not the loss of a pod",
    ...PASS,
    find: `own?.began === "Now" && zone !== undefined`,
    replacement: "own !== undefined && zone !== undefined",
  },
  {
    breaks: "a zone that has begun is not held again",
    ...PASS,
    find: "!isUntouched(zone, own.settledRevision)",
    replacement: "own.settledRevision === undefined",
  },
  {
    breaks: "a gate lets no zone begin by answers that came while another zone was in the way",
    file: "reconciler/gates/advance.ts",
    find: "return mayPass && arePassed",
    replacement: "return arePassed",
    ...GATES,
  },
  {
    breaks: "a zone that another gate holds has not begun",
    file: "reconciler/gates/advance.ts",
    find: `gate.mode === "Observe" || !view.isHeld`,
    replacement: `gate.mode === "Observe" || view.now > 0`,
    ...GATES,
  },
  {
    breaks: "a result that is older than its stage does not count",
    ...RESULT,
    ...GATES,
    find: "lastAt === undefined || lastAt < since",
    replacement: "lastAt === undefined",
  },
  {
    breaks: "a stage that is older than its rollout does not count",
    ...RECORD,
    find: "since >= startedAt",
    replacement: "since >= 0",
  },
  {
    breaks: "a gate passes only when all its checks have passed at once",
    ...PASS,
    find: "checks.every((check) => isPassing",
    replacement: "checks.some((check) => isPassing",
  },
  {
    breaks: "a check that was edited begins again",
    ...ROLLOUT,
    find: "if (generation === observedGeneration) return record;",
    replacement: "if (generation >= 0) return record;",
  },
  {
    breaks: "a check that was edited begins again also in a tick without its group",
    file: "reconciler/gates/act/follow-gate.ts",
    find: "(gate.record && forgetOldSpec(gate, gate.record))",
    replacement: "gate.record",
    ...ON_CLUSTER,
  },
  {
    breaks: "a gate of a group that was not reached is no gate without a group",
    file: "reconciler/gates/act/tick-gates.ts",
    find: "groups.has(key) ? [] : gates",
    replacement: "groups.size < 0 ? [] : gates",
    ...ON_CLUSTER,
  },
  {
    breaks: "gates that cannot be listed hold every zone",
    file: "reconciler/gates/act/list-gates.ts",
    find: "return { error };",
    replacement: "return { gates: [] };",
    ...ON_CLUSTER,
  },
  {
    breaks: "results of a gate that was edited meanwhile are not written",
    file: "infra/kubernetes/write-status.ts",
    find: "metadata: { resourceVersion }, status",
    replacement: "metadata: {}, status",
    ...ON_CLUSTER,
  },
  {
    breaks: "an empty answer with warnings is no success of an alert",
    ...CHECK,
    find: `answer.warnings.length > 0 ? "Error" : "Success"`,
    replacement: `"Success"`,
  },
  {
    breaks: "a check is passing only as long as its last answer is not old",
    ...RESULT,
    find: " && !isOld(check, streak, now)",
    replacement: "",
  },
  {
    breaks: "a check's results from a time that is to come do not count",
    ...RESULT,
    find: "!isInFuture(lastAt, now)",
    replacement: "lastAt > 0",
  },
  {
    breaks: "an error is a success only for a gate that proceeds on errors",
    ...RESULT,
    find: ` && onError === "Proceed"`,
    replacement: "",
  },
  {
    breaks: "an error breaks a row of successes",
    ...CHECK,
    find: `successes: verdict === "Success" ? streak.successes + 1 : 0`,
    replacement: `successes: verdict === "Success" ? streak.successes + 1 : streak.successes`,
  },
  {
    breaks: "a host that is not allowed is not asked",
    ...CLIENT,
    find: "if (!isHostAllowed(url, allowedHosts))",
    replacement: "if (allowedHosts.length < 0)",
  },
  {
    breaks: "credentials are removed from what Prometheus says",
    ...CLIENT,
    find: `shown.replaceAll(secret, "***")`,
    replacement: "shown",
  },
  {
    breaks: "a tick waits 10 s at most for its checks",
    file: "reconciler/checks/act/ask-prometheus.ts",
    find: "signal: fireAfter(ROUND_MS, abandoned)",
    replacement: "signal: abandoned",
    ...CHECKING,
  },
  {
    breaks: "a query that the end of the round cuts off is an error, and is asked again later and later",
    file: "reconciler/checks/act/ask-prometheus.ts",
    find: "if (abandoned.aborted) return undefined;",
    replacement: "if (tools.signal.aborted) return undefined;",
    ...CHECKING,
  },
  {
    breaks: "a query has 4.5 s at least before the end of the round cuts it off",
    file: "reconciler/checks/act/ask-prometheus.ts",
    find: "turns.take(question, late)",
    replacement: "turns.take(question, abandoned)",
    ...CHECKING,
  },
  {
    breaks: "dead endpoints leave turns to others",
    ...TURNS,
    find: "troubled < MAX_TROUBLED",
    replacement: "troubled < IN_FLIGHT",
  },
  {
    breaks: "checks that answer leave turns to those that did not",
    ...TURNS,
    find: "regular < MAX_REGULAR",
    replacement: "regular < IN_FLIGHT",
  },
  {
    breaks: "at most 16 queries are in flight",
    ...TURNS,
    find: "regular + troubled < IN_FLIGHT",
    replacement: "regular < IN_FLIGHT",
  },
  {
    breaks: "the check that is overdue longest is asked first",
    ...TURNS,
    find: "one.dueAt < next.dueAt",
    replacement: "one.dueAt > next.dueAt",
  },
  {
    breaks: "a PhasedRollout that waits for Prometheus keeps no other from its visit",
    file: "reconciler/phased/act/phased-tick.ts",
    find: "place[Symbol.dispose]();\n    const answer = await input.round.ask(question);\n    place = await places.take();",
    replacement: "const answer = await input.round.ask(question);",
    tests: ["test/reconciler/phased/act/waiting.test.ts"],
  },
];
