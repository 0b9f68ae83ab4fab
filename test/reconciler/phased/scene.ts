/** Scenes of a PhasedRollout of `db`, and the facts of them. */
import type { CustomObject } from "../../../infra/kubernetes/custom-resources.ts";
import type { QueryAnswer } from "../../../infra/prometheus/answer.ts";
import {
  ago,
  NOW,
  OLD,
  POD,
  podsOf,
  REVISIONS,
  rolloutObject,
  type RolloutTraits,
  setObject,
  type SetTraits,
} from "../../builders/phased.ts";
import { checkHash, type Facts } from "./adapter.ts";

export interface Scene extends RolloutTraits {
  readonly set?: SetTraits | null;
  /** See `podsOf`; all at the current revision by default. */
  readonly pods?: string;
  /** The pods from this index on are half an hour younger. */
  readonly younger?: number;
  readonly now?: number;
  readonly answer?: QueryAnswer;
  /** The PhasedRollout that the set names, if it is another one. */
  readonly other?: RolloutTraits;
}

export function factsOf({
  set = {},
  pods,
  younger = Infinity,
  now = NOW,
  answer,
  other,
  ...traits
}: Scene = {}): Facts {
  const statefulSet = set ? setObject({ ...(pods !== undefined && countsOf(pods, set.update)), ...set }) : undefined;
  const uid = statefulSet?.metadata?.uid ?? "";
  const text = pods ?? "o".repeat(set?.replicas ?? 3);
  const found = podsOf(text, set?.start ?? 0).map((pod, index) => ({
    ...pod,
    metadata: {
      ...pod.metadata,
      creationTimestamp: ago(index >= younger ? 1500 : 3600),
      ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid, controller: true }],
    },
  }));
  return {
    now,
    rollout: withCheckHash(rolloutObject(traits)),
    ...(other && { others: [rolloutObject(other)] }),
    statefulSet,
    pods: found,
    ...(answer && { answer }),
  };
}

/** What the status of the StatefulSet says where its pods are these: a pod that terminates still counts as available. */
function countsOf(text: string, update = OLD): Pick<SetTraits, "replicas" | "available" | "updated"> {
  const tokens = [...text.matchAll(POD)];
  const letters = tokens.map(([, letter = ""]) => letter);
  const isUp = ([, letter = "", mark]: RegExpExecArray): boolean => /[onx]/.test(letter) && mark !== "!";
  return {
    replicas: tokens.length,
    available: tokens.filter(isUp).length,
    updated: letters.filter((letter) => REVISIONS[letter.toLowerCase()] === update).length,
  };
}

/** The results of a stored step are of the present check, unless the test says which. */
function withCheckHash(rollout: CustomObject): CustomObject {
  const status = (rollout.status ?? {}) as { readonly rollingPodStatus?: object };
  const { rollingPodStatus: step } = status;
  if (!step || "checkHash" in step) return rollout;
  return { ...rollout, status: { ...status, rollingPodStatus: { ...step, checkHash: checkHash(rollout) } } };
}
