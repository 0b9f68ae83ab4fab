/**
 * Admission of a RolloutGate (§14.12). A gate is refused if no server could ever answer one of its checks. An
 * expression that is only invalid as PromQL is admitted with a warning: it may be MetricsQL, and the gate queries it
 * all the same.
 */
import * as z from "zod";
import { readQueryTarget } from "../../infra/prometheus/target.ts";
import { readExpression } from "../../reconciler/checks/expression.ts";
import { isReadable, readGate } from "../../reconciler/gates/gate.ts";
import { judgeExpressions, type JudgedExpressions } from "../../reconciler/gates/judge-expressions.ts";
import type { AdmissionRequest, Answer } from "../http/webhook.ts";

const OBJECT = z.object({ spec: z.looseObject({}) });

/**
 * An update is refused only for new problems: a gate that was stored with a problem can still be changed to observe
 * only.
 */
export function validateGate(request: AdmissionRequest): Answer {
  const [{ impossible, foreign, warnings }, before] = [
    findIn(request.object, request),
    findIn(request.operation === "UPDATE" ? request.oldObject : undefined, request),
  ];
  const known = new Set(before.impossible);
  const added = impossible.filter((problem) => !known.has(problem));
  if (added.length > 0) return { allowed: false, code: 422, reason: "Invalid", message: added.join("; ") };
  const all = [
    ...impossible.map((problem) => `${problem}: it holds as before`),
    ...foreign.map((problem) => `${problem}: it is asked all the same, as its server may know more than PromQL`),
    ...warnings,
  ];
  return { allowed: true, reason: "Valid", ...(all.length > 0 && { warnings: all }) };
}

const NOTHING: JudgedExpressions = { impossible: [], foreign: [], warnings: [] };

/** Finds nothing in an object that is no gate: its definition refuses it. */
function findIn(object: unknown, { namespace = "" }: Pick<AdmissionRequest, "namespace">): JudgedExpressions {
  const spec = OBJECT.safeParse(object).data?.spec;
  const gate = readGate({ metadata: { namespace }, spec });
  if (!gate) return NOTHING;
  if (!isReadable(gate)) return { ...NOTHING, impossible: ["spec: it cannot be read, and the gate would never open"] };
  const { impossible, foreign, warnings } = judgeExpressions(gate, readExpression);
  const named = (texts: readonly string[]): string[] => texts.map((text) => `spec.checks: ${text}`);
  const urls = gate.checks.flatMap(({ name, query }) => {
    const { problem } = readQueryTarget(query.url);
    return problem === undefined ? [] : [`check ${name}: query.url ${problem}`];
  });
  return { impossible: named([...urls, ...impossible]), foreign: named(foreign), warnings: named(warnings) };
}
