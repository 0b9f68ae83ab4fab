/** The documentation quotes the code exactly: messages that users search for, and scripts that they run. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PAGES, readPage, readSources } from "./pages.ts";

const sources = readSources("cli", "functions", "reconciler", "infra", "test/drill");

/** Quotes of an API server, and lines composed of two words. */
const FOREIGN: ReadonlySet<string> = new Set([
  "invalid CIDR address",
  "failed calling webhook",
  "pod eviction allowed",
  "pod eviction denied",
]);
const COMMAND = /^(?:kubectl|zonewise|npm|npx|docker|git|helm) /;

/** Text in backticks of at least two words, without placeholders. */
function messagesIn(page: string): string[] {
  const quoted = [...page.matchAll(/`(?<text>[a-z]{2,}(?:[ ,;]+[a-zA-Z]+)+)`/g)].map(
    ({ groups }) => groups?.["text"] ?? "",
  );
  return quoted.filter((text) => !COMMAND.test(text) && !FOREIGN.has(text));
}

describe("the documentation", () => {
  const pages = PAGES.map((path) => ({ path, text: readPage(path) }));

  it("quotes messages exactly as in the code", () => {
    const quotes = pages.flatMap(({ path, text }) => messagesIn(text).map((message) => ({ path, message })));
    assert.ok(quotes.length > 8, `${quotes.length} messages`);
    assert.deepEqual(
      quotes.filter(({ message }) => !sources.includes(message)),
      [],
    );
  });

  it("ends npm's own flags before zonewise: npm drops -n otherwise", () => {
    const shown = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\bnpx .*zonewise/g)].map(([line]) => ({ path, line })),
    );
    assert.ok(shown.length > 2, `${shown.length} lines`);
    assert.deepEqual(
      shown.filter(({ line }) => !line.startsWith("npx --no -- ")),
      [],
    );
  });

  it("names only scripts that exist", () => {
    const { scripts } = JSON.parse(readPage("package.json")) as { readonly scripts: Readonly<Record<string, string>> };
    const named = pages.flatMap(({ text }) => [
      ...text.matchAll(/\bnpm (?:run )?(?<script>start|test|(?<=run )[\w:]+)/g),
    ]);
    assert.ok(named.length > 8, `${named.length} scripts`);
    assert.deepEqual(
      named.map(({ groups }) => groups?.["script"] ?? "").filter((script) => scripts[script] === undefined),
      [],
    );
  });
});
