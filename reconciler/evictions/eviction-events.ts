/** The Events of an answered Eviction: on its pod, where people look for the reason. */
import { formatTimestamp } from "../../infra/timestamp.ts";
import { listSome } from "../model/list-some.ts";
import type { Draft } from "../report/events.ts";
import type { Answer } from "./decide-answer.ts";
import type { Eviction } from "./eviction.ts";

/** None for a target that is no pod. A wait is the same Event as long as its reason is the same. */
export function draftAnswer(eviction: Eviction, answer: Answer): Draft[] {
  if (!eviction.pod) return [];
  const { message } = answer;
  const regarding = { kind: "Pod" as const, namespace: eviction.namespace, ...eviction.pod };
  const by = listSome(eviction.requesters);
  if (answer.answer === "wait") {
    const until = answer.expectedAt === undefined ? "" : `, expected until ${formatTimestamp(answer.expectedAt)}`;
    const cause = `${eviction.uid} ${message.split(":")[0]}`;
    const said = `its eviction, asked for by ${by}, waits${until}: ${message}`;
    return [{ regarding, type: "Normal", reason: "EvictionAwaited", message: said, cause }];
  }
  if (answer.why !== "allowed") return [];
  const said = `its eviction, asked for by ${by}, goes on: ${message}`;
  return [{ regarding, type: "Normal", reason: "EvictionHandedOn", message: said, cause: eviction.uid }];
}

/** The controller has heard no heartbeat of ours for 20 minutes: the reconciler did not tick, or could not write. */
export function draftInterrupted({ namespace, name, uid, pod, wasInterrupted }: Eviction): Draft[] {
  if (!wasInterrupted || !pod) return [];
  const regarding = { kind: "Pod" as const, namespace, ...pod };
  const message = `Eviction ${name} went on without an answer of the reconciler: no heartbeat came in time. The eviction webhook still judges it`;
  return [{ regarding, type: "Warning", reason: "EvictionUnanswered", message, cause: uid }];
}
