/**
 * Admission of a RolloutGate (§14.12). A gate is refused if no server could ever answer one of its checks. Whether an
 * expression is PromQL, Prometheus says once the gate is stored.
 */
import * as z from "zod";
import { readQueryTarget } from "../../infra/prometheus/target.ts";
import { isReadable, readGate } from "../../reconciler/gates/gate.ts";
import { findImpossible } from "../../reconciler/gates/placeholder-values.ts";
import type { AdmissionRequest, Answer } from "../http/webhook.ts";

const OBJECT = z.object({ spec: z.looseObject({}) });

/**
 * An update is refused only for new problems: a gate that was stored with a problem can still be changed to observe
 * only.
 */
export function validateGate(request: AdmissionRequest): Answer {
  const problems = findIn(request.object, request);
  const known = new Set(findIn(request.operation === "UPDATE" ? request.oldObject : undefined, request));
  const added = problems.filter((problem) => !known.has(problem));
  if (added.length > 0) return { allowed: false, code: 422, reason: "Invalid", message: added.join("; ") };
  const warnings = problems.map((problem) => `${problem}: it holds as before`);
  return { allowed: true, reason: "Valid", ...(warnings.length > 0 && { warnings }) };
}

/** Finds nothing in an object that is no gate: its definition refuses it. */
function findIn(object: unknown, { namespace = "" }: Pick<AdmissionRequest, "namespace">): string[] {
  const spec = OBJECT.safeParse(object).data?.spec;
  const gate = readGate({ metadata: { namespace }, spec });
  if (!gate) return [];
  if (!isReadable(gate)) return ["spec: it cannot be read, and the gate would never open"];
  const urls = gate.checks.flatMap(({ name, query }) => {
    const { problem } = readQueryTarget(query.url);
    return problem === undefined ? [] : [`check ${name}: query.url ${problem}`];
  });
  return [...urls, ...findImpossible(gate)].map((problem) => `spec.checks: ${problem}`);
}
