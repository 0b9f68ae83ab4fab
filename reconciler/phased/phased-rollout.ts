/** A PhasedRollout as the rules see it: the users' spec, completed by defaults, and the status that we wrote last. */
import * as z from "zod";
import type { PhasedRolloutObject } from "../../infra/kubernetes/custom-resources.ts";
import { baselineFields } from "../checks/baseline.ts";
import type { CheckSpec, SuccessWhen } from "../checks/check.ts";
import { compares } from "../checks/placeholders.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import { type Identity, readIdentity } from "../../infra/kubernetes/identity.ts";
import { type PhasedStatus, readStatus } from "./status.ts";

/** Keeps a deleted PhasedRollout until its StatefulSet is released. */
export const FINALIZER = "sts.plus/finalizer";

export interface PhasedRollout extends Identity {
  readonly kind: "PhasedRollout";
  readonly generation: number;
  readonly terminating: boolean;
  readonly finalizers: readonly string[];
  /** Name of the StatefulSet, in the same namespace. */
  readonly targetRef: string;
  /** The StatefulSet rolls without checks: `skipCheck`, or its former name `standardRollingUpdate`. */
  readonly skipCheck: boolean;
  readonly paused: boolean;
  /** `<updateRevision>/<partition>`: the step that a user promotes by hand. */
  readonly promoteStep: string | undefined;
  readonly check: CheckSpec;
  /** False if the installation's default decides when a check succeeds. */
  readonly statesSuccessWhen: boolean;
  readonly finalCheck: boolean;
  readonly progressDeadlineSeconds: number | undefined;
  readonly onDelete: "release" | "freeze";
  /** The problem of its spec; nothing is done then. */
  readonly problem: string | undefined;
  readonly status: PhasedStatus;
}

const seconds = (byDefault: number) =>
  z
    .number()
    .min(0)
    .nullish()
    .transform((value) => value ?? byDefault);

/** The problem of a baseline that is missing, or has no effect. */
export const NEEDS_BASELINE = "a check with query.successWhen: WithinBaseline needs a baseline, and no other has one";

/** The problem of a comparison that could never be made after the last pod. */
export const NO_OTHER_PODS =
  "$(other_pods) stands for no pods after the last one, and a baseline needs two numbers: set finalCheck to false, or compare with the same pods `at: BeforeRollout`";

/** True if the check after the last pod would compare with other pods: there are none by then. */
export const comparesWithNone = ({ finalCheck, check }: FinallyChecked): boolean =>
  finalCheck === true && compares(check, "other_pods");

interface FinallyChecked {
  readonly finalCheck?: boolean | null | undefined;
  readonly check: Parameters<typeof compares>[0];
}

const SPEC = z
  .object({
    targetRef: z.string(),
    skipCheck: z.boolean().nullish(),
    standardRollingUpdate: z.boolean().nullish(),
    progressDeadlineSeconds: z.number().min(1).nullish(),
    finalCheck: z.boolean().nullish(),
    onDelete: z.enum(["release", "freeze"]).nullish(),
    check: z
      .object({
        // The same defaults as in the definition and in the webhook: an object of the original's definition may lack them.
        initialDelaySeconds: seconds(60),
        periodSeconds: seconds(60),
        successThreshold: z
          .number()
          .min(1)
          .nullish()
          .transform((value) => value ?? 3),
        failureThreshold: z.number().min(1).nullish(),
        baseline: baselineFields.nullish(),
        query: z.object({
          expr: z.string(),
          url: z.string(),
          successWhen: z.enum(["NoData", "Data", "WithinBaseline"]).nullish(),
          insecureSkipVerify: z.boolean().nullish(),
          secretRef: z.string().nullish(),
          caBundle: z.string().nullish(),
        }),
      })
      .refine(({ query, baseline }) => (query.successWhen === "WithinBaseline") === Boolean(baseline), {
        path: ["baseline"],
        message: NEEDS_BASELINE,
      }),
  })
  .refine((spec) => !comparesWithNone(spec), { path: ["finalCheck"], message: NO_OTHER_PODS });

type Spec = z.infer<typeof SPEC>;

/** Used in place of a spec that cannot be read. */
const UNREADABLE: Spec = SPEC.parse({ targetRef: "", check: { query: { expr: "", url: "" } } });

/** Reads the object; `successWhen` is the installation's default. */
export function readPhasedRollout(
  { metadata, spec, status }: PhasedRolloutObject,
  successWhen: SuccessWhen,
): PhasedRollout {
  const parsed = SPEC.safeParse(spec);
  const { check, ...read } = parsed.data ?? { ...UNREADABLE, targetRef: targetOf(spec) };
  return {
    kind: "PhasedRollout",
    ...readIdentity(metadata),
    ...readMetadata(metadata),
    ...readOptions(read),
    targetRef: read.targetRef,
    check: readCheck(check, successWhen),
    statesSuccessWhen: typeof check.query.successWhen === "string",
    problem: parsed.error && describeProblem(parsed.error),
    status: readStatus(status),
  };
}

function readMetadata({
  generation = 0,
  deletionTimestamp,
  finalizers = [],
  annotations = {},
}: PhasedRolloutObject["metadata"]) {
  return {
    generation,
    terminating: deletionTimestamp !== undefined,
    finalizers,
    paused: annotations[ANNOTATIONS.pausePhases] === "true",
    promoteStep: annotations[ANNOTATIONS.promoteStep],
  };
}

function readOptions({
  skipCheck,
  standardRollingUpdate,
  finalCheck,
  progressDeadlineSeconds,
  onDelete,
}: Omit<Spec, "check">) {
  return {
    skipCheck: skipCheck ?? standardRollingUpdate ?? false,
    finalCheck: finalCheck ?? false,
    progressDeadlineSeconds: progressDeadlineSeconds ?? undefined,
    onDelete: onDelete ?? "release",
  };
}

function readCheck({ query, failureThreshold, baseline, ...rest }: Spec["check"], successWhen: SuccessWhen): CheckSpec {
  const { expr, url, insecureSkipVerify, secretRef, caBundle } = query;
  return {
    ...rest,
    ...(failureThreshold && { failureThreshold }),
    ...(baseline && { baseline }),
    successWhen: query.successWhen ?? successWhen,
    query: {
      expr,
      url,
      ...(insecureSkipVerify && { insecureSkipVerify }),
      ...(secretRef && { secretRef }),
      ...(caBundle && { caBundle }),
    },
  };
}

function describeProblem({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => `${["spec", ...path].join(".")}: ${message}`).join("; ");
}

const TARGET = z.object({ targetRef: z.string() });

/** A PhasedRollout that cannot be read still claims its target. */
function targetOf(spec: unknown): string {
  return TARGET.safeParse(spec).data?.targetRef ?? "";
}
