/** What gates say: why they hold, what their placeholders stand for, and what is wrong with them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fillPlaceholders } from "../../../reconciler/checks/placeholders.ts";
import { follow, judge, listImpossible, sampleOf } from "./adapter.ts";
import { data, gateObject, lost, noData, zonesOf } from "../../builders/gates.ts";
import { CREATED } from "../../builders/zones.ts";
import { B, begins, begun, factsAt, holdOf, type Kind, play, settled } from "./play.ts";

describe("several gates", () => {
  const passed = play({ name: "one" }, [0, noData], [10, noData]).gate;
  const waiting = play({ name: "two" }, [0, data]).gate;
  const heldBy = (gates: Parameters<typeof factsAt>[1], seconds = 11) =>
    judge(factsAt(seconds, gates)).holds.get(`uid-${B}`);

  it("must all have passed; the first that has not holds", () => {
    const begins = play({ name: "one" }, [0, noData], [10, noData], [11, noData]).gate;
    const held = heldBy([begins, settled({ name: "two" })], 12);
    assert.deepEqual([held?.reason, held?.objects.map(({ name }) => name)], ["GateWaiting", ["zone-b", "two"]]);
  });

  it("name the one whose checks are waited for, not one that only records its pass", () => {
    const held = heldBy([passed, waiting]);
    assert.deepEqual([held?.objects[1]?.name, held?.isBrief], ["two", undefined]);
    assert.equal(heldBy([passed])?.isBrief, true);
  });

  it("let a zone begin together: one that has passed asks on as long as another one holds", () => {
    const { gate, asked } = follow(factsAt(21, [passed, waiting]), data);
    assert.deepEqual([begins(gate), asked, holdOf(gate, 22)?.reason], ["a", ["errors"], "GateWaiting"]);
    assert.deepEqual(follow(factsAt(22, [gate, waiting]), data).asked, [], "the answer counts for a period");
  });
});

describe("a gate says", () => {
  it("why it holds, since when, and when it asks next", () =>
    assert.equal(
      holdOf(play({}, [0, data]).gate, 1)?.message,
      'zone-b waits for gate gate: check "errors" fails (errors{} 7); since 2026-01-01T00:00:00Z, next check at 2026-01-01T00:00:10Z',
    ));

  it("until when it soaks, and that it is valid with a soak time alone, not with neither", () => {
    const { gate, last } = play({ spec: { soakSeconds: 60, checks: [] } }, [0, noData], [59, noData]);
    const hold = holdOf(gate, 59);
    assert.deepEqual([hold?.until, last?.nextAt], [CREATED + 60_000, CREATED + 60_000]);
    assert.match(
      hold?.message ?? "",
      /^zone-b waits for gate gate: it soaks until 2026-01-01T00:01:00Z; since .*, next check at/,
    );
    const [valid, neither] = [gate, begun({ spec: { checks: [] } })].map(({ status }) => status.conditions[0]?.reason);
    assert.deepEqual([valid, neither], ["Valid", "SpecUnreadable"]);
  });

  it("which value of the annotation asks it again, once it has failed", () => {
    const traits = { check: { failureThreshold: 1 } };
    let { gate } = play(traits, [0, data]);
    const { identity } = gate.status;
    const named = (): string | undefined => holdOf(gate, 50)?.message.split(" is ").at(-1);
    assert.equal(named(), identity);
    for (const [retry, next] of [
      [identity, `${identity}/2`],
      [`${identity}/2`, `${identity}/3`],
      [`${identity}/now`, `${identity}/2`],
    ] as const) {
      const { metadata } = gateObject({ ...traits, retry });
      ({ gate } = follow(factsAt(10, [{ ...gate, metadata }]), data));
      assert.deepEqual([gate.status.retried, named()], [retry, next]);
    }
  });
});

describe("a gate with an expression that was refused when it was tried", () => {
  const query = { expr: "up", url: "http://prometheus" };
  const check = { query, successWhen: "NoData", initialDelaySeconds: 0, periodSeconds: 10 };
  const traits = {
    spec: {
      checks: [
        { ...check, name: "fine" },
        { ...check, name: "tried" },
      ],
    },
  };
  const message = "check tried: BadQuery: parse error";
  const valid = { type: "Valid", status: "False", reason: "ExpressionInvalid", message } as const;
  const refused: Kind = (at) => ({ kind: "Error", code: "BadQuery", message: "parse error", at });
  const FINAL = "it is invalid, and opens only once it is corrected";
  const ROWS: readonly (readonly [name: string, answers: readonly [Kind, Kind], reason: string, says: string])[] = [
    ["may open by itself while no check has been answered", [lost, lost], "GateUnreachable", "it may be invalid"],
    ["may open by itself once a check has been answered", [noData, lost], "GateUnreachable", "it may be invalid"],
    ["is invalid if it is refused again", [noData, refused], "GateInvalid", FINAL],
  ];
  for (const [name, [fine, tried], reason, says] of ROWS)
    it(name, () => {
      const { gate } = play(traits, [0, (at, which) => (which === "fine" ? fine : tried)(at, which)]);
      const condition = { ...valid, lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 1 };
      const held = holdOf({ ...gate, status: { ...gate.status, conditions: [condition] } }, 1);
      assert.equal(held?.reason, reason);
      assert.ok(held?.message.includes(says) && held.message.includes(message), held?.message);
      assert.equal(held?.until === undefined, says === FINAL);
    });
});

describe("what the placeholders of a gate stand for", () => {
  const traits = {
    spec: { when: ["BeforeFirstZone", "BetweenZones", "AfterLastZone"] },
    check: { successThreshold: 1 },
  };
  const podsOf = (...names: string[]) => ({ kind: "pods", sets: names.map((set) => ({ set })) });
  const start = zonesOf("1>2 1>2 1>2");
  const first = follow(factsAt(0, [settled(traits)], { zones: start, wants: "zone-a" }), noData);
  const { gate } = follow(factsAt(1, [first.gate], { zones: start, wants: "zone-a" }), noData);

  it("before the first zone no pod is a candidate", () =>
    assert.deepEqual(
      [first.values["zone"], first.values["candidate_pods"], first.values["other_pods"]],
      [{ kind: "name", name: "zone-a" }, podsOf(), podsOf("zone-a", "zone-b", "zone-c")],
    ));

  it("between zones those are that the rollout has updated, and the range is the time since", () => {
    const waiting = follow(factsAt(10, [gate]), data).gate;
    assert.deepEqual(follow(factsAt(310, [waiting]), data).values, {
      namespace: { kind: "name", name: "test" },
      group: { kind: "name", name: "ingester" },
      zone: { kind: "name", name: "zone-b" },
      candidate_pods: podsOf("zone-a"),
      other_pods: podsOf("zone-b", "zone-c"),
      range: { kind: "duration", seconds: 300 },
    });
  });

  it("a zone that the rollout does not change is no candidate, although all its pods are up to date", () => {
    const { values } = follow(factsAt(10, [gate], { zones: zonesOf("2 1>2 1") }), data);
    assert.deepEqual([values["candidate_pods"], values["other_pods"]], [podsOf("zone-a"), podsOf("zone-b", "zone-c")]);
  });

  it("after the last zone all are, and no zone waits", () => {
    const { values } = follow(factsAt(100, [gate], { zones: zonesOf("2 2 2"), wants: "settled" }), data);
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
      const found = fillPlaceholders(`up{a="$(zone)"}`, sampleOf(gateObject({ spec: { when: [when] } }))).problem;
      assert.equal(found?.split(":")[0], error);
    });
});

it("the definition refuses all other placeholders", () => {
  const text = readFileSync(new URL("../../../infra/manifests/crds/rolloutgates.yaml", import.meta.url), "utf8");
  const rules = text.split("\n").filter((line) => line.includes("self.replace("));
  const known = Object.keys(sampleOf(gateObject({ spec: { when: ["BetweenZones"] } }))).toSorted();
  assert.equal(rules.length, 2);
  for (const rule of rules)
    assert.deepEqual([...rule.matchAll(/\$\((\w+)\)/g)].map(([, name]) => name).toSorted(), known);
});

describe("a comparison of pods at a point where there are none is pointed out", () => {
  const compare = (when: string[], query: string, baseline?: string) =>
    listImpossible(
      gateObject({
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
