/** The definitions of node updates and what the code reads are the same. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as z from "zod";
import { NODE_PHASES, policySpec, policyStatus } from "../../reconciler/nodes/policy.ts";
import { shadowSpec, shadowStatus, STATES } from "../../reconciler/nodes/shadow.ts";
import { read } from "./manifests.ts";

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
}
interface Definition {
  readonly spec: {
    readonly versions: readonly {
      readonly name: string;
      readonly storage: boolean;
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

const definition = (file: string) =>
  (read(`infra/manifests/node-updates/crds/${file}.yaml`)[0] as unknown as Definition).spec.versions;
const schemaOf = (file: string, part: "spec" | "status"): Schema =>
  definition(file)[0]?.schema.openAPIV3Schema.properties?.[part] ?? {};
const jsonOf = (schema: z.core.$ZodType): Schema =>
  z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Schema;

/** The paths of all fields, those of items of lists with []. */
function pathsOf({ properties = {}, items }: Schema, path = ""): string[] {
  const own = Object.entries(properties).flatMap(([name, schema]) => [
    `${path}.${name}`,
    ...pathsOf(schema, `${path}.${name}`),
  ]);
  return [...own, ...(items ? pathsOf(items, `${path}[]`) : [])].toSorted();
}

describe("the NodeUpdatePolicy", () => {
  it("has the fields that the code reads, and no others", () => {
    assert.deepEqual(pathsOf(schemaOf("nodeupdatepolicies", "spec")), pathsOf(jsonOf(policySpec)));
    assert.deepEqual(pathsOf(schemaOf("nodeupdatepolicies", "status")), pathsOf(jsonOf(policyStatus)));
  });

  it("has the same defaults and bounds", () => {
    const facts = (schema: Schema, path = ""): string[] =>
      Object.entries(schema.properties ?? {}).flatMap(([name, one]) => {
        const { default: value, minimum, maximum, enum: values } = one;
        const own =
          one.properties || one.type === undefined
            ? []
            : [`${path}.${name} ${JSON.stringify({ value, minimum, maximum, values })}`];
        return [...own, ...facts(one, `${path}.${name}`)];
      });
    assert.deepEqual(facts(schemaOf("nodeupdatepolicies", "spec")), facts(jsonOf(policySpec)));
  });
});

describe("the BottlerocketShadow", () => {
  it("stores v2, and serves v1", () =>
    assert.deepEqual(
      definition("bottlerocketshadows").map(({ name, storage }) => `${name} ${storage}`),
      ["v2 true", "v1 false"],
    ));
  it("has the fields and the states that the code reads", () => {
    assert.deepEqual(pathsOf(schemaOf("bottlerocketshadows", "spec")), pathsOf(jsonOf(shadowSpec)));
    assert.deepEqual(schemaOf("bottlerocketshadows", "spec").properties?.["state"]?.enum, [...STATES]);
    const known = new Set(pathsOf(schemaOf("bottlerocketshadows", "status")));
    for (const name of Object.keys(shadowStatus.shape)) assert.ok(known.has(`.${name}`), name);
  });
});

it("every phase is one word", () => assert.ok(NODE_PHASES.every((phase) => /^[A-Z][a-z]+$/.test(phase))));
