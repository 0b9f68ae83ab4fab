/**
 * `/validate-sts-plus-v1alpha1-phasedrollout`: refuses a PhasedRollout (§16) or a RolloutGate (§14.12) with a check
 * that could never be answered, and warns of fields that are easily misunderstood. Fails open: the definitions' own
 * rules refuse the rest, and without an answer the reconciler releases no pod, and opens no gate.
 */
import * as z from "zod";
import { isDeepStrictEqual } from "node:util";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { phasedRollouts } from "../../infra/kubernetes/custom-resources.ts";
import { findFaults } from "../../reconciler/checks/placeholders.ts";
import { readPhasedRollout } from "../../reconciler/phased/phased-rollout.ts";
import { SAMPLE_VALUES } from "../../reconciler/phased/placeholder-values.ts";
import type { AdmissionRequest, Answer, Webhook } from "../http/webhook.ts";
import { isReadable, readGate } from "../../reconciler/gates/gate.ts";
import { findImpossible } from "../../reconciler/gates/placeholder-values.ts";

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
      return isGate(request) ? validateGate(request) : validateRollout(request, { cluster, signal });
    },
    onFault: (_error, request) => ({
      allowed: true,
      reason: "Fault",
      warnings: [`the ${isGate(request) ? "RolloutGate" : "PhasedRollout"} could not be checked`],
    }),
  };
}

const isGate = ({ resource }: AdmissionRequest): boolean => resource.resource === "rolloutgates";

const OBJECT = z.object({
  metadata: z.object({ name: z.string().optional(), deletionTimestamp: z.string().optional() }).default({}),
  spec: z.unknown(),
});
const read = (object: unknown): z.output<typeof OBJECT> =>
  OBJECT.safeParse(object).data ?? { metadata: {}, spec: undefined };

/** True if the object is being deleted, or if its spec does not change. */
function isOnItsWay({ operation, object, oldObject }: AdmissionRequest): boolean {
  const { metadata, spec } = read(object);
  const isSame = operation === "UPDATE" && spec !== undefined && isDeepStrictEqual(spec, read(oldObject).spec);
  return isSame || metadata.deletionTimestamp !== undefined;
}

interface Lookup {
  readonly cluster: Cluster;
  readonly signal: AbortSignal;
}

async function validateRollout(request: AdmissionRequest, lookup: Lookup): Promise<Answer> {
  const { metadata, spec } = read(request.object);
  const { problem, targetRef, check, statesSuccessWhen } = rolloutOf(spec);
  const isMoved = request.operation === "UPDATE" && rolloutOf(read(request.oldObject).spec).targetRef !== targetRef;
  const problems = [
    ...(isMoved ? ["spec.targetRef cannot be changed, make another PhasedRollout"] : []),
    ...(problem === undefined ? findFaults(check, SAMPLE_VALUES).map((fault) => `spec.check.${fault}`) : [problem]),
  ];
  if (problems.length > 0) return denySpec(problems);
  const { namespace = "", name = "" } = { ...request, ...metadata };
  return allow([
    // PHASED_SUCCESS_WHEN is a variable of the reconciler: the webhook does not know its value.
    ...(statesSuccessWhen
      ? []
      : [
          "spec.check.query.successWhen is not set: a check is successful if the query returns nothing (NoData), unless PHASED_SUCCESS_WHEN of the reconciler says Data",
        ]),
    ...(await findRival({ namespace, name, targetRef }, lookup)),
  ]);
}

const rolloutOf = (spec: unknown) => readPhasedRollout({ metadata: {}, spec }, "NoData");

interface Claimant {
  readonly namespace: string;
  readonly name: string;
  readonly targetRef: string;
}

/** The reconciler decides between two claims to a StatefulSet, so the webhook only warns. */
async function findRival({ namespace, name, targetRef }: Claimant, { cluster, signal }: Lookup): Promise<string[]> {
  try {
    for await (const { items } of cluster.list(phasedRollouts, { namespace }, { signal })) {
      const rival = items.find((one) => one.metadata.name !== name && rolloutOf(one.spec).targetRef === targetRef);
      if (rival)
        return [
          `StatefulSet ${targetRef} is the target of PhasedRollout ${rival.metadata.name} as well: only one of them manages it`,
        ];
    }
  } catch {
    // A warning is optional.
  }
  return [];
}

/**
 * An update is refused only for new problems: a gate that was stored with a problem can still be changed to observe
 * only.
 */
function validateGate(request: AdmissionRequest): Answer {
  const problems = findIn(request.object, request);
  const known = new Set(findIn(request.operation === "UPDATE" ? request.oldObject : undefined, request));
  const added = problems.filter((problem) => !known.has(problem));
  return added.length > 0 ? denySpec(added) : allow(problems.map((problem) => `${problem}: it stays in force`));
}

/** Finds nothing in an object that is no gate: its definition refuses it. */
function findIn(object: unknown, { namespace = "" }: Pick<AdmissionRequest, "namespace">): string[] {
  const gate = readGate({ metadata: { namespace }, spec: read(object).spec });
  if (!gate) return [];
  if (!isReadable(gate)) return ["spec: it cannot be read, and the gate would never open"];
  return findImpossible(gate).map((problem) => `spec.checks: ${problem}`);
}

const denySpec = (problems: readonly string[]): Answer => ({
  allowed: false,
  code: 422,
  reason: "Invalid",
  message: problems.join("; "),
});

const allow = (warnings: readonly string[]): Answer => ({
  allowed: true,
  reason: "Valid",
  ...(warnings.length > 0 && { warnings }),
});
