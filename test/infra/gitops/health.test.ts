/** What each engine says of our objects by the files that are shipped for it: all say the same. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CelScalar, celEnv, mapType, parse, plan } from "@bufbuild/cel";
import { LuaFactory } from "wasmoon";
import { type Manifest, read } from "../manifests.ts";
import { CASES, type Case, type Health, OUTSIDERS, type Target } from "./objects.ts";

const engineFile = (name: string): Manifest[] => read(`infra/gitops/${name}`);

/** One module of WebAssembly for all engines. */
const factory = new LuaFactory();

/** Runs a script in an engine of its own: engines keep no globals from one object to the next. */
async function runLua(script: string, globals: Readonly<Record<string, unknown>>, call: string): Promise<unknown> {
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
function evaluate(expression: string, variables: Readonly<Record<string, unknown>>): unknown {
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

/** One test a case: a name as an engine would say it. */
function each(cases: readonly Case[], judge: (object: Target, health: Health) => Promise<void> | void): void {
  for (const [name, object, health] of cases)
    it(`of ${name} is ${health}`, async () => {
      await judge(object, health);
    });
}

describe("the health by Argo CD's Lua", () => {
  const [map] = engineFile("argocd-cm.yaml");
  const scripts = map?.["data"] as Readonly<Record<string, string>>;
  each([...CASES, ...OUTSIDERS], async (object, health) => {
    const key = `resource.customizations.health.${object.apiVersion.split("/")[0]}_${object.kind}`;
    const script = scripts[key] ?? assert.fail(`no ${key}`);
    const said = (await runLua(`function judge() ${script}\nend`, { obj: object }, "return judge()")) as {
      status: string;
      message: string;
    };
    assert.equal(said.status, health);
    assert.equal(typeof said.message, "string");
  });
});

describe("the health by Flux's CEL", () => {
  const [manifest] = engineFile("flux-health.yaml");
  const { healthCheckExprs } = manifest?.["spec"] as { healthCheckExprs: Readonly<Record<string, string>>[] };
  const IN_FLUX = { Healthy: "Current", Degraded: "Failed", Progressing: "InProgress", Suspended: "InProgress" };

  each(CASES, ({ kind, apiVersion, metadata, spec, status }, health) => {
    const { inProgress, failed, current } =
      healthCheckExprs.find((one) => one["kind"] === kind && one["apiVersion"] === apiVersion) ?? assert.fail(kind);
    const holds = (expression: string | undefined): boolean =>
      expression !== undefined && evaluate(expression, { metadata, spec, status }) === true;
    // In Flux's order.
    const said = holds(inProgress)
      ? "InProgress"
      : holds(failed)
        ? "Failed"
        : holds(current)
          ? "Current"
          : "InProgress";
    assert.equal(said, IN_FLUX[health]);
  });
});
