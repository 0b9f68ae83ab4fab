/**
 * The status of a PhasedRollout: the memory of its rollout between ticks and processes. Times are RFC 3339, to the
 * second.
 */
import * as z from "zod";
import { type Condition, storedCondition } from "../../infra/kubernetes/condition.ts";

const text = z.string().optional().catch(undefined);
const count = z.number().catch(0);

const ROLLING_POD = z.object({
  status: z.string().catch(""),
  partition: z.number(),
  /** Pods from this index on have passed no step: they came with a scale-out. */
  replicas: z.number().optional().catch(undefined),
  /** When the step began. */
  stepStartTime: text,
  // Misspelt in the API.
  analisysStartTime: text,
  lastCheckTime: text,
  lastAttemptTime: text,
  consecutiveSuccessfulChecks: count,
  consecutiveFailedChecks: count,
  totalFailedChecks: count,
  consecutiveErrors: z.number().optional().catch(undefined),
  /** A hash of the query and of `successWhen`: the counts are about these. */
  checkHash: text,
  lastSample: text,
  lastError: text,
  promoted: z.literal(true).optional().catch(undefined),
});

const STATUS = z.object({
  /** The generation of the PhasedRollout that the decision was about. */
  observedGeneration: z.number().optional().catch(undefined),
  /** The generation of the StatefulSet that its controller had observed. */
  targetObservedGeneration: z.number().optional().catch(undefined),
  /** The StatefulSet that `updateRevision` and `rollingPodStatus` are about. */
  targetUID: text,
  phase: z.string().catch(""),
  updateRevision: text,
  /** The last step that was promoted by hand. */
  promotedStep: text,
  rolloutStartTime: text,
  rolloutEndTime: text,
  rollingPodStatus: ROLLING_POD.optional().catch(undefined),
  conditions: z.array(storedCondition).catch([]),
});

export type PhasedStatus = z.output<typeof STATUS>;
/** The step of the rollout: the conditions before the pod below `partition` is released. */
export type RollingPodStatus = z.output<typeof ROLLING_POD>;

/** Reads a status of any writer; an unreadable field counts as missing. */
export function readStatus(status: unknown): PhasedStatus {
  return STATUS.parse(status ?? {});
}

/** The condition of this type, if the status has it. */
export function findCondition({ conditions }: PhasedStatus, type: string): Condition | undefined {
  return conditions.find((condition) => condition.type === type);
}
