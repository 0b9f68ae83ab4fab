/** A PhasedRollout as the rules see it: the users' spec, completed by defaults, and the status that we wrote last. */
import * as z from "zod";
import type { CustomObject } from "../../infra/kubernetes/custom-resources.ts";
import { baselineFields } from "../checks/baseline.ts";
import type { CheckSpec, SuccessWhen } from "../checks/check.ts";
import { compares } from "../checks/placeholders.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import { type Identity, readIdentity } from "../../infra/kubernetes/identity.ts";
import type { ObjectMeta } from "../../infra/kubernetes/resources.ts";
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

/** The original's definition lets fields be null, and has no defaults. */
const or = <T extends z.ZodType, const D>(type: T, byDefault: D) =>
  type.nullish().transform((value) => value ?? byDefault);
const text = z
  .string()
  .nullish()
  .transform((value) => value || undefined);
const number = (least: number) => z.number().min(least, `must be at least ${least}`);

const CHECK = z
  .object({
    initialDelaySeconds: or(number(0), 60),
    periodSeconds: or(number(0), 60),
    successThreshold: or(number(1), 3),
    failureThreshold: or(number(1), undefined),
    baseline: or(baselineFields, undefined),
    query: z.object({
      expr: z.string(),
      url: z.string(),
      successWhen: or(z.enum(["NoData", "Data", "WithinBaseline"]), undefined),
      // As if it were absent: results of the check count on.
      insecureSkipVerify: z
        .boolean()
        .nullish()
        .transform((value) => value || undefined),
      secretRef: text,
      caBundle: text,
    }),
  })
  .refine(({ query, baseline }) => (query.successWhen === "WithinBaseline") === Boolean(baseline), {
    path: ["baseline"],
    message: "a check with query.successWhen: WithinBaseline needs a baseline, and no other has one",
  });

const SPEC = z
  .object({
    targetRef: z.string().min(1, "is empty"),
    skipCheck: or(z.boolean(), undefined),
    standardRollingUpdate: or(z.boolean(), undefined),
    progressDeadlineSeconds: or(number(1), undefined),
    finalCheck: or(z.boolean(), false),
    onDelete: or(z.enum(["release", "freeze"]), "release"),
    check: CHECK,
  })
  .refine(({ skipCheck: a, standardRollingUpdate: b }) => a === undefined || b === undefined || a === b, {
    path: ["standardRollingUpdate"],
    message: "is another name of spec.skipCheck, set only one of them",
  })
  .refine(({ finalCheck, check }) => !finalCheck || !compares(check, "other_pods"), {
    path: ["finalCheck"],
    message:
      "$(other_pods) stands for no pods after the last one, and a baseline needs two numbers: set finalCheck to false, or compare with the same pods `at: BeforeRollout`",
  });

/** Used in place of a spec that cannot be read. */
const UNREADABLE = SPEC.parse({ targetRef: "-", check: { query: { expr: "", url: "" } } });

/** What counts of a spec that is wrong elsewhere: it claims its target, and says what becomes of that. */
const KEPT = z
  .object({ targetRef: z.string().catch(""), onDelete: z.enum(["release", "freeze"]).catch("release") })
  .catch({ targetRef: "", onDelete: "release" });

/** Reads the object; `byDefault` is the installation's default of `successWhen`. */
export function readPhasedRollout({ metadata, spec, status }: CustomObject, byDefault: SuccessWhen): PhasedRollout {
  const parsed = SPEC.safeParse(spec);
  const { check, skipCheck, standardRollingUpdate, ...read } = parsed.data ?? { ...UNREADABLE, ...KEPT.parse(spec) };
  const { successWhen, ...query } = check.query;
  return {
    kind: "PhasedRollout",
    ...readIdentity(metadata),
    ...readMetadata(metadata),
    ...read,
    skipCheck: skipCheck ?? standardRollingUpdate ?? false,
    check: { ...check, query, successWhen: successWhen ?? byDefault },
    statesSuccessWhen: successWhen !== undefined,
    problem: parsed.error && describeProblem(parsed.error),
    status: readStatus(status),
  };
}

const readMetadata = ({ generation = 0, deletionTimestamp, finalizers = [], annotations = {} }: ObjectMeta) => ({
  generation,
  terminating: deletionTimestamp !== undefined,
  finalizers,
  paused: annotations[ANNOTATIONS.pausePhases] === "true",
  promoteStep: annotations[ANNOTATIONS.promoteStep],
});

function describeProblem({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => `${["spec", ...path].join(".")}: ${message}`).join("; ");
}
