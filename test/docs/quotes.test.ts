/** What the documentation quotes is what the code says: messages that users search for, and scripts that they run. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PAGES, readPage, readSources } from "./pages.ts";

const sources = readSources("functions", "reconciler", "infra");

/** Quoted from elsewhere: an API server, or a line that is put together of two words. */
const FOREIGN: ReadonlySet<string> = new Set([
  "invalid CIDR address",
  "failed calling webhook",
  "pod eviction allowed",
  "pod eviction denied",
]);
const COMMAND = /^(?:kubectl|npm|docker|git) /;

/** Sentences in backticks: two words or more, without placeholders. */
function messagesIn(page: string): string[] {
  const quoted = [...page.matchAll(/`(?<text>[a-z]{2,}(?:[ ,;]+[a-zA-Z]+)+)`/g)].map(({ groups }) => groups?.["text"] ?? "");
  return quoted.filter((text) => !COMMAND.test(text) && !FOREIGN.has(text));
}

describe("the documentation", () => {
  const pages = PAGES.map((path) => ({ path, text: readPage(path) }));

  it("quotes messages as the code has them", () => {
    const quotes = pages.flatMap(({ path, text }) => messagesIn(text).map((message) => ({ path, message })));
    assert.ok(quotes.length > 8, `${quotes.length} messages`);
    assert.deepEqual(
      quotes.filter(({ message }) => !sources.includes(message)),
      [],
    );
  });

  it("names only scripts that are there", () => {
    const { scripts } = JSON.parse(readPage("package.json")) as { readonly scripts: Readonly<Record<string, string>> };
    const named = pages.flatMap(({ text }) => [...text.matchAll(/\bnpm (?:run )?(?<script>start|test|(?<=run )[\w:]+)/g)]);
    assert.ok(named.length > 8, `${named.length} scripts`);
    assert.deepEqual(
      named.map(({ groups }) => groups?.["script"] ?? "").filter((script) => scripts[script] === undefined),
      [],
    );
  });
});
