import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { renderPage } from "../../../../functions/status/view/page.ts";
import { type PageRecords, sortGroups, UNREAD } from "../../../../functions/status/view/records.ts";
import type { RolloutGroupStatus } from "../../../../reconciler/group-status/status.ts";
import { group, records, zone } from "../samples.ts";
import { OLD, SENTENCES, store } from "../sentences.ts";

/** The page's text, as a reader without style sees it. */
function textOf(traits: Partial<PageRecords>, focus?: string): string {
  const [, body = ""] = renderPage({ records: records(traits), focus }).split("<body>");
  const [shown = ""] = body.split("<script>");
  return shown.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");
}

describe("the status page shows", () => {
  for (const [what, traits, expected] of SENTENCES)
    it(what, () => assert.ok(textOf(traits).includes(expected), `${expected}\n\n${textOf(traits)}`));

  it("readers without JavaScript that it stays as it is", () =>
    assert.match(
      renderPage({ records: records(), focus: undefined }),
      /<noscript><p>Without JavaScript this page stays as it is: reload it\.<\/p><\/noscript>/,
    ));
  for (const [lastTick, isOld] of [
    ["2026-11-22T02:54:59Z", true],
    ["2026-11-22T02:55:00Z", false],
  ] as const)
    it(`${isOld ? "that" : "not that"} all is old if the last tick began at ${lastTick}`, () =>
      assert.equal(textOf({ reconciler: { lastTick } }).includes(OLD), isOld));
  it("a sentence that is also the block's only once", () =>
    assert.equal(textOf({ groups: [store] }).split("zone-b waits for zone-a").length, 2));
  it("one group alone, also if it is done, with a way back", () => {
    const text = textOf({ groups: [store, group("a", { phase: "Ready", zones: [zone("zone-x")] })] }, "default/a");
    assert.match(text, /All groups .*default\/a Ready .*zone-x/);
    assert.doesNotMatch(text, /default\/store/);
  });
  it("no count of groups, and no group missing, before they have been read", () => {
    const text = textOf({ groups: UNREAD }, "default/b");
    assert.match(text, /^ Zonewise Rollout groups could not be read /);
    assert.doesNotMatch(text, /no rollout group|No rollout groups/);
  });
  it("that the one group does not exist", () =>
    assert.match(textOf({ groups: [store] }, "default/b"), /There is no rollout group default\/b\./));
});

describe("statuses of other versions", () => {
  const CASES: readonly (readonly [string, unknown])[] = [
    ["nothing", {}],
    ["a phase of a later version", { phase: "Hovering" }],
    ["a zone with a name alone", { zones: [{ name: "zone-a" }] }],
    ["a block with a reason alone", { blocked: [{ reason: "Other" }] }],
    ["a step without fields", { plan: [{}], progress: {} }],
  ];
  for (const [what, status] of CASES)
    it(`with ${what} are shown as far as they go, in front`, () => {
      const odd = group("odd", status as Partial<RolloutGroupStatus>);
      const groups = sortGroups([group("a", { phase: "Ready" }), odd]);
      assert.equal(groups[0], odd);
      assert.match(textOf({ groups }), /default\/odd/);
    });
});
