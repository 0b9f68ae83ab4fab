/**
 * docs/reference/helm-values.md has a row for every value of the chart, with its default, and the words in which the
 * schema refuses one.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { namesIn, readPage, rowsOf } from "./pages.ts";

type Json = Readonly<Record<string, unknown>>;

const CHART = "infra/helm/zonewise";
const page = readPage("docs/reference/helm-values.md");
const rows = rowsOf(page);
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
/** Values that are objects of Kubernetes. */
const WHOLE = /(?:resources|[sS]ecurityContext)$/;

function leavesOf(value: unknown, path = ""): [string, unknown][] {
  if (!isObject(value) || Object.keys(value).length === 0 || WHOLE.test(path)) return [[path, value]];
  return Object.entries(value).flatMap(([key, child]) => leavesOf(child, path ? `${path}.${key}` : key));
}

const schema = JSON.parse(readPage(`${CHART}/values.schema.json`)) as Json;
const definitions = schema["definitions"] as Record<string, Json>;

/** What the schema refuses, and in which words. */
function refusalsIn(node: Json, path = ""): [string, string][] {
  const {
    $ref,
    then,
    properties = {},
  } = node as { $ref?: string; then?: { const?: string }; properties?: Record<string, Json> };
  if ($ref !== undefined) return refusalsIn(definitions[$ref.split("/").at(-1) ?? ""] ?? {}, path);
  const own: [string, string][] = then?.const === undefined ? [] : [[path, then.const]];
  return [
    ...own,
    ...Object.entries(properties).flatMap(([key, child]) => refusalsIn(child, path ? `${path}.${key}` : key)),
  ];
}

describe("docs/reference/helm-values.md", () => {
  const leaves = leavesOf(parse(readPage(`${CHART}/values.yaml`)));
  const refusals = refusalsIn(schema);
  const rowOf = (path: string): readonly string[] => rows.find(([name]) => name === `\`${path}\``) ?? assert.fail(path);

  for (const [path, value] of leaves)
    it(`has ${path} with its default`, () => assert.equal(rowOf(path)[1], `\`${JSON.stringify(value)}\``));
  it("has no other row", () => {
    const names = new Set([...leaves, ...refusals].map(([path]) => path));
    assert.deepEqual(namesIn(page).toSorted(), [...names].toSorted());
  });
  for (const [path, message] of refusals)
    it(`says of ${path} what the schema says when it refuses it`, () => assert.ok(rowOf(path)[2]?.endsWith(message)));
  it("says of no other that it is refused", () => {
    const said = rows.filter(([, , meaning]) => /(?:^| )refused: /.test(meaning ?? ""));
    assert.equal(said.length, refusals.length);
  });
});
