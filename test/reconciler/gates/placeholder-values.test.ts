import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fillPlaceholders } from "../../../reconciler/checks/placeholders.ts";
import { advanceGate } from "../../../reconciler/gates/advance.ts";
import { findImpossible, sampleValues } from "../../../reconciler/gates/placeholder-values.ts";
import { follow, gateOf, noData, SETTLED, settledRecord, stored, viewOf } from "./builders.ts";
import { a, b, start, zones, zonesAt } from "./play.ts";

const TRAITS = { spec: { when: ["BeforeFirstZone", "BetweenZones", "AfterLastZone"] } };
const podsOf = (...names: string[]) => ({ kind: "pods", sets: names.map((set) => ({ set })) });
const before = settledRecord(zonesAt("1"), TRAITS);

function valuesAt(record: typeof before | undefined, view: ReturnType<typeof viewOf>) {
  return advanceGate(stored(TRAITS, record), { ...view, isHeld: true }, new Map()).values;
}

describe("what the placeholders of a gate stand for", () => {
  const traits = { ...TRAITS, check: { successThreshold: 1 } };
  const asked = follow(traits, { record: before, view: viewOf(start, a), answer: noData }).record;
  const { record } = follow(traits, { record: asked, view: viewOf(start, a, 1), answer: noData });

  it("before the first zone no pod is a candidate", () => {
    const values = valuesAt(before, viewOf(start, a));
    assert.deepEqual(
      [values["zone"], values["candidate_pods"], values["other_pods"]],
      [{ kind: "name", name: "zone-a" }, podsOf(), podsOf("zone-a", "zone-b", "zone-c")],
    );
  });

  it("between zones those are that the rollout has updated, and the range is the time since", () => {
    const { record: waiting } = follow(traits, { record, view: viewOf(zones, b, 10), answer: noData });
    assert.deepEqual(valuesAt({ ...waiting, stages: waiting.stages }, viewOf(zones, b, 310)), {
      namespace: { kind: "name", name: "test" },
      group: { kind: "name", name: "ingester" },
      zone: { kind: "name", name: "zone-b" },
      candidate_pods: podsOf("zone-a"),
      other_pods: podsOf("zone-b", "zone-c"),
      range: { kind: "duration", seconds: 300 },
    });
  });

  it("a zone that the rollout does not change is no candidate, although all its pods are up to date", () => {
    const some = [...zones.slice(0, 2), ...zonesAt("1").slice(2)];
    const values = valuesAt(record, viewOf(some, b, 10));
    assert.deepEqual([values["candidate_pods"], values["other_pods"]], [podsOf("zone-a"), podsOf("zone-b", "zone-c")]);
  });

  it("after the last zone all are, and no zone waits", () => {
    const done = zonesAt("2");
    const all = { ...record, zones: record.zones.map((one) => ({ ...one, began: "Now" as const })) };
    const values = valuesAt(all, viewOf(done, SETTLED, 100));
    assert.deepEqual(
      [values["zone"], values["candidate_pods"], values["other_pods"]],
      [undefined, podsOf("zone-a", "zone-b", "zone-c"), podsOf()],
    );
  });

  for (const [when, error] of [
    ["BetweenZones", undefined],
    ["AfterLastZone", "$(zone) is not a placeholder here"],
  ] as const)
    it(`an expression with $(zone) is ${error === undefined ? "valid" : "not valid"} for ${when}`, () => {
      const found = fillPlaceholders(`up{a="$(zone)"}`, sampleValues(gateOf({ spec: { when: [when] } }))).problem;
      assert.equal(found?.split(":")[0], error);
    });
});

it("the definition refuses all other placeholders", () => {
  const text = readFileSync(new URL("../../../infra/manifests/crds/rolloutgates.yaml", import.meta.url), "utf8");
  const rules = text.split("\n").filter((line) => line.includes("self.replace("));
  const known = Object.keys(sampleValues(gateOf({ spec: { when: ["BetweenZones"] } }))).toSorted();
  assert.equal(rules.length, 2);
  for (const rule of rules)
    assert.deepEqual([...rule.matchAll(/\$\((\w+)\)/g)].map(([, name]) => name).toSorted(), known);
});

describe("a comparison of pods at a point where there are none is pointed out", () => {
  const compare = (when: string[], query: string, baseline?: string) =>
    findImpossible(
      gateOf({
        spec: { when },
        check: {
          query: { url: "http://prometheus", expr: query },
          ...(baseline !== undefined && {
            successWhen: "WithinBaseline",
            baseline: { expr: baseline, maxRatio: "2" },
          }),
        },
      }),
    );
  const [candidate, other] = ['x{pod=~"$(candidate_pods)"}', 'x{pod=~"$(other_pods)"}'];

  for (const [when, query, baseline, says] of [
    [["BeforeFirstZone", "BetweenZones"], candidate, other, /^check errors: \$\(candidate_pods\) .* BeforeFirstZone/],
    [["AfterLastZone"], candidate, other, /^check errors: \$\(other_pods\) .* AfterLastZone/],
    [["BetweenZones"], candidate, other, undefined],
    [["AfterLastZone"], candidate, candidate, undefined],
    [["BeforeFirstZone", "AfterLastZone"], candidate, undefined, undefined],
  ] as const)
    it(`${when.join()}, ${query} against ${baseline}: ${says ? "yes" : "no"}`, () => {
      const found = compare([...when], query, baseline);
      assert.equal(found.length, says ? 1 : 0, found.join());
      if (says) assert.match(found[0] ?? "", says);
    });
});
