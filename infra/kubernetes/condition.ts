/**
 * A condition as Kubernetes defines it:
 * https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/#condition-v1-meta
 */
import * as z from "zod";
import { formatTimestamp } from "../timestamp.ts";

/** One of any writer, as it is stored. */
export const storedCondition = z.object({
  type: z.string(),
  status: z.enum(["True", "False", "Unknown"]),
  reason: z.string(),
  message: z.string(),
  observedGeneration: z.number().default(0),
  /** RFC 3339. */
  lastTransitionTime: z.string(),
});

export type Condition = Readonly<z.output<typeof storedCondition>>;

export type UnstampedCondition = Omit<Condition, "observedGeneration" | "lastTransitionTime">;

interface ConditionStamp {
  readonly earlier: readonly Pick<Condition, "type" | "status" | "lastTransitionTime">[] | undefined;
  readonly generation: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Adds the time of the last transition: that of the earlier condition of this type while the status is the same. */
export function stampCondition<C extends UnstampedCondition>(
  condition: C,
  { earlier, generation, now }: ConditionStamp,
) {
  const before = earlier?.find(({ type }) => type === condition.type);
  const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : formatTimestamp(now);
  return { ...condition, observedGeneration: generation, lastTransitionTime };
}
