/** Runs the engines' snippets: Lua in a Lua engine, CEL in a CEL engine. */
import { CelScalar, celEnv, mapType, parse, plan } from "@bufbuild/cel";
import { LuaFactory } from "wasmoon";
import { type Manifest, read } from "../manifests.ts";

export const engineFile = (name: string): Manifest[] => read(`infra/gitops/${name}`);

/** One module of WebAssembly for all engines. */
const factory = new LuaFactory();

/** Runs a script in an engine of its own: engines keep no globals from one object to the next. */
export async function runLua(
  script: string,
  globals: Readonly<Record<string, unknown>>,
  call: string,
): Promise<unknown> {
  const lua = await factory.createEngine();
  try {
    const given = Object.entries(globals).map(([name, value]) => `${name} = ${toLua(value)}`);
    return await lua.doString([...given, script, call].join("\n"));
  } finally {
    lua.global.close();
  }
}

/** A value as a table of Lua, which is what all engines pass. */
function toLua(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(toLua).join(",")}}`;
  if (typeof value !== "object" || value === null)
    return value === undefined || value === null ? "nil" : JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, part]) => `[${JSON.stringify(key)}]=${toLua(part)}`)
    .join(",")}}`;
}

const ANY = mapType(CelScalar.STRING, CelScalar.DYN);

/** The value of an expression over these maps. Throws where the engine would have an error. */
export function evaluate(expression: string, variables: Readonly<Record<string, unknown>>): unknown {
  const env = celEnv({ variables: Object.fromEntries(Object.keys(variables).map((name) => [name, ANY])) });
  const value = plan(env, parse(expression))(celValue(variables) as never);
  if (value instanceof Error) throw value;
  return value;
}

/** Whole numbers are integers in CEL. */
function celValue(value: unknown): unknown {
  if (typeof value === "number") return BigInt(Math.trunc(value));
  if (Array.isArray(value)) return value.map(celValue);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, part]) => (part === undefined ? [] : [[key, celValue(part)]])),
    );
  return value;
}
