/** matchConditions of webhooks, in CEL. */
import { celOver, type Expression, isCelError } from "../cel.ts";

const compileOver = celOver(["object", "oldObject", "request"]);

/** Over `object`, `oldObject` and `request`; throws where CEL has an error. Throws for what does not parse. */
export function compile(text: string): Expression {
  const evaluate = compileOver(text);
  return (variables) => {
    const value = evaluate(variables);
    if (isCelError(value)) throw new Error(value.message);
    return value;
  };
}
