/** Expressions in CEL over JSON. */
import { CelScalar, celEnv, isCelError, parse, plan } from "@bufbuild/cel";
import { strings } from "@bufbuild/cel/ext";
import { isFields } from "./objects.ts";

/** The value, or an error of CEL (`isCelError`). */
export type Expression = (variables: Readonly<Record<string, unknown>>) => unknown;

export { isCelError };

/** Compiles expressions over variables of these names, with the functions of strings. Throws what does not parse. */
export function celOver(names: readonly string[]): (text: string) => Expression {
  const variables = Object.fromEntries(names.map((name) => [name, CelScalar.DYN]));
  const env = celEnv({ variables, funcs: [...strings] });
  return (text) => {
    const planned = plan(env, parse(text));
    return (given) => {
      const values = names.map((name) => [name, celValue(given[name])] as const);
      return planned(Object.fromEntries(values) as never);
    };
  };
}

/** JSON as CEL has it: whole numbers are integers, and what is undefined is not there. */
function celValue(value: unknown): unknown {
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(celValue);
  if (!isFields(value)) return value ?? null;
  const fields = Object.entries(value).filter(([, part]) => part !== undefined);
  return new Map(fields.map(([key, part]) => [key, celValue(part)]));
}
