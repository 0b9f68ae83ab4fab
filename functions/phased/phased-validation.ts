/**
 * `/validate-sts-plus-v1alpha1-phasedrollout`: refuses a PhasedRollout (§16) or a RolloutGate (§14.12) with a check
 * that could never be answered, and warns of fields that are easily misunderstood. Fails open: the definitions' own
 * rules refuse the rest, and without an answer the reconciler releases no pod, and opens no gate.
 */
import * as z from "zod";
import { isDeepStrictEqual } from "node:util";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { phasedRollouts } from "../../infra/kubernetes/custom-resources.ts";
import { readQueryTarget } from "../../infra/prometheus/target.ts";
import { fillPlaceholders } from "../../reconciler/checks/placeholders.ts";
import { NEEDS_BASELINE, NO_OTHER_PODS, comparesWithNone } from "../../reconciler/phased/phased-rollout.ts";
import { SAMPLE_VALUES } from "../../reconciler/phased/placeholder-values.ts";
import type { AdmissionRequest, Answer, Webhook } from "../http/webhook.ts";
import { isReadable, readGate } from "../../reconciler/gates/gate.ts";
import { findImpossible } from "../../reconciler/gates/placeholder-values.ts";

const OBJECT = z.object({
  metadata: z.object({ name: z.string().nullish() }).nullish(),
  spec: z.object({
    targetRef: z.string(),
    skipCheck: z.boolean().nullish(),
    standardRollingUpdate: z.boolean().nullish(),
    check: z.object({
      successThreshold: z.number().nullish(),
      query: z.object({ expr: z.string(), url: z.string(), successWhen: z.string().nullish() }),
      baseline: z.object({ expr: z.string() }).nullish(),
    }),
    finalCheck: z.boolean().nullish(),
  }),
});

type Spec = z.infer<typeof OBJECT>["spec"];

interface PhasedValidationTools {
  readonly cluster: Cluster;
}

export function createPhasedValidation({ cluster }: PhasedValidationTools): Webhook {
  return {
    name: "phasedValidation",
    paths: ["/validate-sts-plus-v1alpha1-phasedrollout"],
    async handle(request, { signal }) {
      // It must be possible to remove the finalizer, also from an object that was invalid from the start.
      if (isOnItsWay(request)) return { allowed: true, reason: "Unchanged" };
      if (isGate(request)) return validateGate(request);
      const parsed = OBJECT.safeParse(request.object);
      if (!parsed.success) return deny(parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`));
      return judge(parsed.data, request, { cluster, signal });
    },
    onFault: (_error, request) => ({
      allowed: true,
      reason: "Fault",
      warnings: [`the ${isGate(request) ? "RolloutGate" : "PhasedRollout"} could not be checked`],
    }),
  };
}

const isGate = ({ resource }: AdmissionRequest): boolean => resource.resource === "rolloutgates";

async function judge(
  { spec, metadata }: z.infer<typeof OBJECT>,
  request: AdmissionRequest,
  lookup: Lookup,
): Promise<Answer> {
  const problems = [
    ...findProblems(spec, OBJECT.safeParse(request.oldObject).data?.spec),
    ...findInExpressions(spec),
    ...findInBaseline(spec),
  ];
  if (problems.length > 0) return deny(problems);
  const rival = await findRival({ ...request, name: metadata?.name ?? request.name ?? "" }, spec, lookup);
  const warnings = [...warnOfMeaning(spec), ...rival];
  return { allowed: true, reason: "Valid", ...(warnings.length > 0 && { warnings }) };
}

/** Whether the rest of an expression is PromQL, Prometheus says before the first pod is released. */
function findInExpressions({ check: { query, baseline } }: Spec): string[] {
  const written = [
    ["spec.check.query.expr", query.expr],
    ...(baseline ? [["spec.check.baseline.expr", baseline.expr] as const] : []),
  ] as const;
  return written.flatMap(([field, expr]) => {
    const { problem } = fillPlaceholders(expr, SAMPLE_VALUES);
    return problem === undefined ? [] : [`${field}: ${problem}`];
  });
}

function findInBaseline(spec: Spec): string[] {
  const { query, baseline } = spec.check;
  const problems = [];
  if ((query.successWhen === "WithinBaseline") !== Boolean(baseline))
    problems.push(`spec.check.baseline: ${NEEDS_BASELINE}`);
  if (comparesWithNone(spec)) problems.push(`spec.finalCheck: ${NO_OTHER_PODS}`);
  return problems;
}

const DELETED = z.object({ metadata: z.object({ deletionTimestamp: z.string() }) });
const SPECIFIED = z.object({ spec: z.unknown() });

/** True if the object is being deleted, or if its spec does not change. */
function isOnItsWay({ operation, object, oldObject }: AdmissionRequest): boolean {
  const [now, before] = [SPECIFIED.safeParse(object).data, SPECIFIED.safeParse(oldObject).data];
  const isSame = operation === "UPDATE" && now !== undefined && isDeepStrictEqual(now.spec, before?.spec);
  return isSame || DELETED.safeParse(object).success;
}

function findProblems(
  { targetRef, skipCheck, standardRollingUpdate, check }: Spec,
  before: Spec | undefined,
): string[] {
  const { problem } = readQueryTarget(check.query.url);
  const isTwofold =
    typeof skipCheck === "boolean" && typeof standardRollingUpdate === "boolean" && skipCheck !== standardRollingUpdate;
  return [
    targetRef === "" ? "spec.targetRef is empty" : undefined,
    before && before.targetRef !== targetRef
      ? "spec.targetRef cannot be changed, make another PhasedRollout"
      : undefined,
    isTwofold ? "spec.standardRollingUpdate is another name of spec.skipCheck, set only one of them" : undefined,
    check.successThreshold === 0 ? "spec.check.successThreshold must be at least 1" : undefined,
    problem === undefined ? undefined : `spec.check.query.url ${problem}`,
  ].filter((text) => text !== undefined);
}

function warnOfMeaning({ check }: Spec): string[] {
  if (typeof check.query.successWhen === "string") return [];
  // PHASED_SUCCESS_WHEN is a variable of the reconciler: the webhook does not know its value.
  return [
    "spec.check.query.successWhen is not set: a check is successful if the query returns nothing (NoData), unless PHASED_SUCCESS_WHEN of the reconciler says Data",
  ];
}

interface Lookup {
  readonly cluster: Cluster;
  readonly signal: AbortSignal;
}

const TARGETED = z.object({ spec: z.object({ targetRef: z.string() }) });

/** The reconciler decides between two claims to a StatefulSet, so the webhook only warns. */
async function findRival(
  { namespace = "", name = "" }: Pick<AdmissionRequest, "namespace" | "name">,
  spec: Spec,
  { cluster, signal }: Lookup,
): Promise<string[]> {
  try {
    for await (const { items } of cluster.list(phasedRollouts, { namespace }, { signal })) {
      const rival = items.find(
        (one) => one.metadata.name !== name && TARGETED.safeParse(one).data?.spec.targetRef === spec.targetRef,
      );
      if (rival)
        return [
          `StatefulSet ${spec.targetRef} is the target of PhasedRollout ${rival.metadata.name} as well: only one of them manages it`,
        ];
    }
  } catch {
    // A warning is optional.
  }
  return [];
}

function deny(problems: readonly string[]): Answer {
  return { allowed: false, code: 422, reason: "Invalid", message: problems.join("; ") };
}

const GATE = z.object({ spec: z.looseObject({}) });

/**
 * An update is refused only for new problems: a gate that was stored with a problem can still be changed to observe
 * only.
 */
function validateGate(request: AdmissionRequest): Answer {
  const problems = findIn(request.object, request);
  const known = new Set(findIn(request.operation === "UPDATE" ? request.oldObject : undefined, request));
  const added = problems.filter((problem) => !known.has(problem));
  if (added.length > 0) return { allowed: false, code: 422, reason: "Invalid", message: added.join("; ") };
  const warnings = problems.map((problem) => `${problem}: it stays in force`);
  return { allowed: true, reason: "Valid", ...(warnings.length > 0 && { warnings }) };
}

/** Finds nothing in an object that is no gate: its definition refuses it. */
function findIn(object: unknown, { namespace = "" }: Pick<AdmissionRequest, "namespace">): string[] {
  const spec = GATE.safeParse(object).data?.spec;
  const gate = readGate({ metadata: { namespace }, spec });
  if (!gate) return [];
  if (!isReadable(gate)) return ["spec: it cannot be read, and the gate would never open"];
  const urls = gate.checks.flatMap(({ name, query }) => {
    const { problem } = readQueryTarget(query.url);
    return problem === undefined ? [] : [`check ${name}: query.url ${problem}`];
  });
  return [...urls, ...findImpossible(gate)].map((problem) => `spec.checks: ${problem}`);
}
