import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { renderPage } from "../../../../functions/status/view/page.ts";
import {
  keyOf,
  type PageGroup,
  type PageRecords,
  sortGroups,
  UNREAD,
} from "../../../../functions/status/view/records.ts";
import { stored, group, live, pod, records, zone } from "../samples.ts";
import { NO_TICK, NOT_YET, OLD, SENTENCES, store } from "../sentences.ts";

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
  it("first that the reconciler does not tick, in its title too, and no group as green", () => {
    const groups = [group("a", { phase: "Ready" })];
    assert.match(
      textOf({ reconciler: NO_TICK, groups }),
      /^ Zonewise The reconciler does not run\. As recorded: 1 Ready /,
    );
    assert.ok(textOf({ reconciler: NO_TICK, groups }).includes(OLD), textOf({ reconciler: NO_TICK, groups }));
    const page = renderPage({ records: records({ reconciler: NO_TICK, groups }), focus: undefined });
    assert.match(page, /<title>The reconciler does not run\. As recorded: 1 Ready – Zonewise<\/title>/);
    assert.match(page, /class="problem stopped"/);
    assert.match(page, /header:has\(\.stopped\) ~ main \.phase \{ color: var\(--faint\); \}/);
  });
  it("of a reconciler that has not run yet that what is recorded may be old, as the commands say", () =>
    assert.match(textOf({ reconciler: NOT_YET }), /was created 50s ago\. The records may be old\. Fix kubectl get it/));
  it("a sentence that is also the block's only once", () =>
    assert.equal(textOf({ groups: [store] }).split("zone-b waits for zone-a").length, 2));
  it("what a blocked group adds to its hold, and the phase of a hold that has another one", () => {
    const blocked = group("a", {
      phase: "Blocked",
      message: "no step since 02:00: zone-b waits",
      holds: [
        stored({ phase: "Blocked", message: "zone-b waits" }),
        stored({ reason: "LeaderNotReady", phase: "Waiting", message: "" }),
      ],
    });
    const text = textOf({ groups: [blocked] });
    assert.match(text, / no step since 02:00 OtherZoneNotReady .* Waiting LeaderNotReady /);
    assert.equal(text.split("zone-b waits").length, 2);
  });
  it("no end that is over: neither of a wait nor of a rollout", () => {
    const nextCheck = "2026-11-22T02:59:00Z";
    const progress = { stepsLeft: 1, startTime: "", lastStepTime: "", estimatedCompletionTime: nextCheck };
    const text = textOf({ groups: [group("a", { holds: [stored({ nextCheck })], progress })] });
    assert.match(text, /OtherZoneNotReady since 02:55/);
    assert.doesNotMatch(text, /until|done about/);
  });
  it("that it is unknown whether the reconciler runs, in its title too, if the Lease could not be read", () => {
    const page = renderPage({ records: records({ groups: [store], reconciler: UNREAD }), focus: undefined });
    assert.match(page, /<title>It is unknown whether the reconciler runs\. As recorded: 1 Waiting – Zonewise<\/title>/);
    assert.match(
      textOf({ groups: [store], reconciler: UNREAD }),
      / Warning: it is unknown whether the reconciler runs\. The records may be old\. /,
    );
    assert.match(
      textOf({ groups: UNREAD, reconciler: UNREAD }),
      /^ Zonewise It is unknown whether the reconciler runs\. Rollout groups could not be read /,
    );
  });
  it("no estimated end while the reconciler does not tick, or nobody knows", () => {
    assert.match(textOf({ groups: [store] }), /pods updated done about /);
    for (const reconciler of [NO_TICK, UNREAD] as const)
      assert.doesNotMatch(textOf({ groups: [store], reconciler }), /done about/);
  });
  for (const [what, holds, colour] of [
    ["green if nothing blocks it", [], "ready"],
    ["not green if it waits to be scaled", [stored()], "waiting"],
  ] as const)
    it(`a ready group ${what}`, () => {
      const groups = [group("a", { phase: "Ready", holds })];
      const page = renderPage({ records: records({ groups }), focus: undefined });
      assert.ok(page.includes(`<span class="phase ${colour}">Ready</span>`));
    });
  it("the images beside the hash in a group's sentence, and in the message of a block", () => {
    const message = "zone-b waits for zone-a-2222222222";
    const groups = [group("a", { message: `${message} now`, holds: [stored({ message })] })];
    const text = textOf({ groups, zones: new Map([["default/a", [live("zone-a", [], ["app:3"])]]]) });
    assert.equal(text.split("zone-b waits for app:3 (zone-a-2222222222)").length, 3, text);
  });
  for (const [what, traits, isShown] of [
    ["of the recorded revision", {}, true],
    ["not of a template that no revision has yet", { observed: false }, false],
    ["not of a later revision than the recorded one", { updateRevision: "zone-a-3333333333" }, false],
  ] as const)
    it(`the images ${what}`, () => {
      const { observed = true, updateRevision = "zone-a-2222222222" }: { observed?: boolean; updateRevision?: string } =
        traits;
      const read = live("zone-a", [], ["app:3"]);
      const now = { ...read, observed, status: { ...read.status, updateRevision } };
      const text = textOf({ groups: [store], zones: new Map([["default/store", [now]]]) });
      assert.equal(text.includes("app:3"), isShown, text);
    });
  const outdated = (...images: readonly string[]) => pod("zone-a-0", "zone-a-1111111111", { images });
  for (const [what, pods, expected] of [
    ["old and new of a rollout", [outdated("app:2", "proxy:1")], "app:2 → app:3"],
    [
      "of several earlier templates",
      [outdated("app:1", "proxy:1"), outdated("app:2", "proxy:1")],
      "app:1, app:2 → app:3",
    ],
    ["that a template takes away", [outdated("app:3", "proxy:1", "extra:1")], "extra:1 → app:3, proxy:1"],
    ["once if only the settings change", [outdated("app:3", "proxy:1")], "app:3, proxy:1"],
    ["once when all pods are new", [pod("zone-a-0", "zone-a-2222222222", { images: ["app:2"] })], "app:3, proxy:1"],
  ] as const)
    it(`the images ${what}`, () => {
      const zones = new Map([["default/store", [live("zone-a", pods, ["app:3", "proxy:1"])]]]);
      const text = textOf({ groups: [store], zones });
      assert.ok(text.includes(` 11111 → 22222 ${expected} `), text);
    });
  it("the cluster's name, in the title too", () => {
    const page = renderPage({ records: records({ groups: [store] }), focus: undefined, clusterName: "prod <eu>" });
    assert.match(page, /<title>1 Waiting – prod &lt;eu> – Zonewise<\/title>/);
    assert.match(page, /<h1>Zonewise<span class="faint"> on prod &lt;eu><\/span><\/h1>/);
  });
  it("one group alone, also if it is done, with a way back", () => {
    const text = textOf({ groups: [store, group("a", { phase: "Ready", zones: [zone("zone-x")] })] }, "default/a");
    assert.match(text, /All groups .*default\/a Ready .*zone-x/);
    assert.doesNotMatch(text, /default\/store/);
  });
  it("no count of groups, and no group missing, if they could not be read", () => {
    const text = textOf({ groups: UNREAD }, "default/b");
    assert.match(text, /^ Zonewise Rollout groups could not be read /);
    assert.doesNotMatch(text, /no rollout group|No rollout groups/);
  });
  it("that the one group does not exist", () =>
    assert.match(textOf({ groups: [store] }, "default/b"), /No rollout group default\/b\./));
});

describe("groups", () => {
  const ORDER: readonly PageGroup[] = [
    group("blocked-for-long", { phase: "Blocked", holds: [stored({ since: "2026-11-21T00:00:00Z" })] }),
    group("blocked", { phase: "Blocked", holds: [stored()] }),
    group("waiting-for-long", { phase: "Waiting", holds: [stored({ since: "2026-11-21T00:00:00Z" })] }),
    group("paused", { phase: "Paused", holds: [stored()] }),
    group("ready-but-not-scaled", { phase: "Ready", holds: [stored({ phase: "Waiting" })] }),
    group("waiting", { phase: "Waiting", holds: [stored()] }),
    group("without-status"),
    group("rolling-and-held", { phase: "RollingOut", holds: [stored()] }),
    group("rolling", { phase: "RollingOut" }),
    group("a", { phase: "Ready" }),
    group("b", { phase: "Ready" }),
  ];

  it("come in this order: what is blocked, then what waits, or is not known yet, what moves, what is done", () => {
    assert.deepEqual(sortGroups(ORDER.toReversed()).map(keyOf), ORDER.map(keyOf));
    assert.match(textOf({ groups: ORDER }), /default\/without-status/);
  });
});

it("no character of a text that is not seen, or that turns others round, reaches the page as such", () => {
  const message = "all is well \u202E.degnad ni si ti\u2066 and\u200B so on \uFEFF";
  const html = renderPage({
    records: records({ groups: [group("a", { phase: "Waiting", message })] }),
    focus: undefined,
  });
  assert.ok(html.includes(String.raw`all is well \u202e.degnad ni si ti\u2066 and\u200b so on \ufeff`), html);
});

it("no text of an object becomes HTML", () => {
  const evil = `"><script>alert(1)</script><img src=x onerror='alert(2)'>`;
  const spoil = (value: unknown): unknown =>
    typeof value === "string" && value !== UNREAD
      ? evil
      : Array.isArray(value)
        ? value.map(spoil)
        : typeof value === "object" && value !== null
          ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, spoil(part)]))
          : value;
  const traits = SENTENCES.map(([, traits]) => ({ ...traits, zones: new Map() }));
  for (const all of [...traits, { groups: [group(evil, { phase: "Ready" })] }]) {
    const html = renderPage({
      records: { ...(spoil(records(all)) as PageRecords), zones: new Map() },
      focus: undefined,
    });
    assert.equal(html.split("<script>").length, 2, "the page's own");
    assert.doesNotMatch(html, /<img/);
    assert.doesNotMatch(html, /"><script>alert/);
  }
  const zones = new Map([["default/store", [live("zone-a", [pod(evil, evil)], [evil])]]]);
  assert.doesNotMatch(
    renderPage({ records: records({ groups: [store], zones }), focus: "default/store" }),
    /<img|"><script>alert/,
  );
});
