/** Explains the reconciler's answers to the Evictions of a pod (§19). Pure. */
import type { Eviction } from "../../reconciler/evictions/eviction.ts";
import { listSome } from "../../reconciler/model/list-some.ts";
import { allow, allowByTick, deny, refuse, type Explanation, type Scene } from "./answer.ts";

const QUESTION = "be evicted on request";

interface Facts {
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly scene: Scene;
  /** The answers about the pod so far: the same reason has the same blockers and the same remedy. */
  readonly known: readonly Explanation[];
}

/** One answer for each Eviction of this pod, by its UID. */
export const explainEvictions = (evictions: readonly Eviction[], facts: Facts): Explanation[] =>
  evictions.filter((one) => one.pod?.uid === facts.pod.uid).map((one) => explainEviction(one, facts));

function explainEviction(eviction: Eviction, facts: Facts): Explanation {
  const { name, requesters, isOurTurn, wasInterrupted, own } = eviction;
  const by = requesters.length > 0 ? listSome(requesters) : "nobody any more";
  const asked = `Eviction ${name}, asked for by ${by}`;
  if (wasInterrupted)
    return deny({
      question: QUESTION,
      reason: "EvictionUnanswered",
      rule: "the reconciler answers an Eviction within 20 minutes",
      message: `${asked}, went on without an answer; the eviction webhook judges it`,
      objects: [{ kind: "Pod", name: facts.pod.name }],
      since: own.heartbeatTime ?? own.startTime,
      remedy: "zonewise doctor says whether the reconciler ticks, and whether it may patch evictions/status",
    });
  if (own.completionTime !== undefined)
    return allow(QUESTION, `${asked}: ${own.message ?? "left to the next responder"}`);
  if (!isOurTurn) return allow(QUESTION, `${asked}: it is the turn of another responder`);
  if (own.heartbeatTime === undefined) return allowByTick(QUESTION, `${asked}: the reconciler answers it`);
  return explainWait(eviction, asked, facts);
}

function explainWait({ own }: Eviction, asked: string, { pod, scene, known }: Facts): Explanation {
  const [, reason = "", words = ""] = /^(\w+): (.*)$/s.exec(own.message ?? "") ?? [];
  const { startTime: since = "", expectedCompletionTime: until } = own;
  const said = {
    question: QUESTION,
    reason,
    message: `${asked}: ${words}`,
    since,
    ...(until !== undefined && { until }),
  };
  const same = known.find((one) => !one.allowed && one.reason === reason);
  if (same) return { ...same, ...said };
  const { message } = said;
  return refuse({ question: QUESTION, scene, reason, message, objects: [{ kind: "Pod", ...pod }], since, until });
}
