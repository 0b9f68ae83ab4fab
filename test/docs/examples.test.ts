/** Groups in examples/ are what they say: nothing of them is ignored, and their zones are of one group and budget. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { matchesLabels } from "../../reconciler/budget/selector.ts";
import { BUDGET_KIND, parseBudget } from "../../reconciler/budget/zpdb.ts";
import { readZone } from "../../reconciler/model/zone.ts";
import { readPage, ROOT } from "./pages.ts";

const FILES = globSync("examples/*-zones.yaml", { cwd: ROOT });
const objectsIn = (file: string) =>
  parseAllDocuments(readPage(file)).map((one) => one.toJS() as StatefulSet & { readonly kind?: string });

describe("the groups of the examples", () => {
  it("are found", () => assert.equal(FILES.length, 2));
  for (const file of FILES) {
    const objects = objectsIn(file);
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
    for (const object of objects.filter(({ kind }) => kind === BUDGET_KIND))
      it(`${file}: its budget is valid and selects zones and pods`, () => {
        const budget = parseBudget(object);
        assert.ok(!("problem" in budget), JSON.stringify(budget));
        for (const { labels, podLabels } of zones)
          for (const found of [labels, podLabels]) assert.ok(matchesLabels(budget.matchLabels, found));
      });
  }
});
