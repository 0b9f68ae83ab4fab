/** Names and messages that want to be more than text. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { renderPage } from "../../../functions/status/view/page.ts";
import { type PageRecords, UNREAD } from "../../../functions/status/view/records.ts";
import { group, live, pod, records } from "./samples.ts";
import { SENTENCES, store } from "./sentences.ts";

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
