/**
 * Groups in examples/ are what they say: nothing of them is ignored, and their zones are of one group and budget. The
 * values in examples/values/ are taken by the chart, and switch on what they say.
 */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { Ajv } from "ajv";
import { applyPatch, type Operation } from "rfc6902";
import { parse, parseAllDocuments } from "yaml";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { BUDGET_KIND, parseBudget } from "../../reconciler/budget/zpdb.ts";
import { matchesLabels } from "../../reconciler/model/label-selector.ts";
import { chooseTracing } from "../../infra/tracing/load-tracer.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import { readZone } from "../../reconciler/model/zone.ts";
import { readPage, ROOT } from "./pages.ts";

const FILES = globSync("examples/*-zones.yaml", { cwd: ROOT });
type Manifest = StatefulSet & { readonly kind?: string };
const objectsIn = (file: string): Manifest[] => parseAllDocuments(readPage(file)).map((one) => one.toJS() as Manifest);

interface Kustomization {
  readonly nameSuffix: string;
  readonly patches: readonly { readonly patch: string }[];
}

/** A zone of examples/nats as kustomize makes it, as far as Zonewise reads it. */
function renderZone(folder: string): Manifest {
  const { nameSuffix, patches } = parse(readPage(join(folder, "kustomization.yaml"))) as Kustomization;
  const [zone] = objectsIn("examples/nats/zone/statefulset.yaml");
  assert.ok(zone?.metadata);
  zone.metadata.name += nameSuffix;
  for (const { patch } of patches)
    assert.deepEqual(applyPatch(zone, parse(patch) as Operation[]).filter(Boolean), [], folder);
  return zone;
}

const NATS = [
  ...globSync("examples/nats/zone-*", { cwd: ROOT }).map(renderZone),
  ...objectsIn("examples/nats/budget.yaml"),
];
const GROUPS: readonly (readonly [string, readonly Manifest[]])[] = [
  ...FILES.map((file) => [file, objectsIn(file)] as const),
  ["examples/nats", NATS],
];

describe("the groups of the examples", () => {
  it("are found", () => assert.equal(FILES.length, 2));
  for (const [file, objects] of GROUPS) {
    const zones = objects.filter(({ kind }) => kind === "StatefulSet").map(readZone);
    it(`${file}: no annotation is ignored, and the zones are one group`, () => {
      assert.ok(zones.length >= 2);
      assert.deepEqual(
        zones.flatMap(({ problems }) => problems),
        [],
      );
      assert.deepEqual([...new Set(zones.map(({ updateStrategy }) => updateStrategy))], ["OnDelete"]);
      assert.equal(new Set(zones.map(({ group }) => group)).size, 1);
      const settings = zones.map(({ maxUnavailable, accelerates, window }) => [maxUnavailable, accelerates, window]);
      for (const one of settings) assert.deepEqual(one, settings[0]);
    });
    it(`${file}: it has a budget, and leaves pauses to commands: an apply must end none`, () => {
      assert.equal(objects.filter(({ kind }) => kind === BUDGET_KIND).length, 1);
      assert.ok(objects.every(({ metadata }) => metadata?.annotations?.[ANNOTATIONS.paused] === undefined));
    });
    for (const object of objects.filter(({ kind }) => kind === BUDGET_KIND))
      it(`${file}: its budget is valid and selects zones and pods`, () => {
        const budget = parseBudget(object);
        assert.ok(!("problem" in budget), JSON.stringify(budget));
        for (const { labels, podLabels } of zones)
          for (const found of [labels, podLabels]) assert.ok(matchesLabels(budget.matchLabels, found));
      });
  }
});

interface Values {
  readonly extraEnv: readonly { readonly name: string; readonly value: string }[];
  readonly [key: string]: unknown;
}

const CHART = "infra/helm/zonewise";
const defaults = parse(readPage(`${CHART}/values.yaml`)) as Values;
const isValid = new Ajv({ allErrors: true, allowUnionTypes: true }).compile(
  JSON.parse(readPage(`${CHART}/values.schema.json`)) as object,
);

/** As Helm does: maps are merged, all else is replaced. */
function overlay(base: unknown, over: unknown): unknown {
  const isMap = (one: unknown): one is Record<string, unknown> =>
    typeof one === "object" && one !== null && !Array.isArray(one);
  if (!isMap(base) || !isMap(over)) return over;
  return { ...base, ...Object.fromEntries(Object.entries(over).map(([key, one]) => [key, overlay(base[key], one)])) };
}

describe("the values of the examples", () => {
  const example = (name: string): Values => parse(readPage(`examples/values/${name}.yaml`)) as Values;
  const FOUND = globSync("examples/values/*.yaml", { cwd: ROOT });

  it("are found", () => assert.equal(FOUND.length, 2));
  for (const file of FOUND)
    it(`${file}: the chart takes them, and they change something`, () => {
      const values = overlay(defaults, parse(readPage(file)));
      assert.ok(isValid(values), JSON.stringify(isValid.errors));
      assert.notDeepEqual(values, defaults);
    });

  it("traces.yaml: spans are recorded", () => {
    const env = Object.fromEntries(example("traces").extraEnv.map(({ name, value }) => [name, value]));
    assert.deepEqual(chooseTracing(env), { isWanted: true });
  });
});
