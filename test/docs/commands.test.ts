/** The commands of the pages: shells read them, and the command line takes them; links.test.ts has what they name. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { GLOBAL_FLAGS } from "../../cli/flags.ts";
import { COMMANDS } from "../../cli/program.ts";
import { PAGES, readPage } from "./pages.ts";

const FIRST =
  /^(?:[A-Z_]+=\S* )*(?:kubectl|npm|npx|helm|docker|kind|zonewise|git|export|curl|cosign|flux|for|source|printf|test\/plane|infra\/release|awk|sleep)\b/;

/** Blocks of commands, indented by four, or by seven in a list. */
function blocksOf(page: string): string[] {
  const blocks = page.replaceAll(/^```[^]*?^```$/gm, "").match(/(?:^(?: {4}| {7})\S.*\n(?: {4,}.*\n)*)/gm) ?? [];
  return blocks.map((block) => block.replaceAll(/^ {7}|^ {4}/gm, "")).filter((block) => FIRST.test(block));
}

/** Commands in the text and in the cells of tables. */
const inText = (page: string): string[] =>
  [...page.matchAll(/`((?:kubectl|zonewise|helm|npm|npx) [^`]+)`/g)].map(([, command = ""]) => command);

const linesOf = (commands: string): string[] => commands.replaceAll(/\\\n +/g, " ").split("\n");

/** What is wrong with a call of the command line: its command, or one of its flags. */
function findUnknown(call: string): string[] {
  const words = call
    .replace(/ {2,}#.*$/, "")
    .replaceAll(/"[^"]*"|'[^']*'/g, "TEXT")
    .split(/[|;&)]| > /, 1)[0]
    ?.trim()
    .split(/\s+/);
  const named = COMMANDS.find(({ name }) => words?.includes(name));
  const flags = [...GLOBAL_FLAGS, ...(named?.flags ?? [])].flatMap(({ flag }) => flag.match(/--?[a-z][a-z-]*/g) ?? []);
  const known = new Set([...flags, "--version", "--help", "--no-watch", "--watch", "--", "--no"]);
  const unknown = (words ?? []).filter((word) => word.startsWith("-") && !known.has(word.replace(/=.*/, "")));
  return named || words?.includes("--version") || words?.length === 0 ? unknown : [...unknown, `no command in ${call}`];
}

for (const path of PAGES) {
  const page = readPage(path);
  const blocks = blocksOf(page);
  const commands = [...blocks, ...inText(page)];
  if (commands.length === 0) continue;
  describe(`the commands of ${path}`, () => {
    const lines = commands.flatMap(linesOf);
    it("are read by a shell", () => {
      const { status, stderr } = spawnSync("bash", ["-n"], { input: blocks.join("\n"), encoding: "utf8" });
      assert.equal(status, 0, stderr);
    });
    it("have patches that are JSON", () => {
      for (const [, patch = ""] of commands.flatMap((one) => [...one.matchAll(/-p '([^'$]+)'(?!\$)/g)]))
        JSON.parse(patch);
    });
    it("call commands and flags of the command line that exist", () => {
      const calls = lines.flatMap((line) => /^(?:npx --no -- )?zonewise (.*)$/.exec(line)?.[1] ?? []);
      assert.deepEqual(calls.flatMap(findUnknown), []);
    });
  });
}

describe("the commands of all pages", () => {
  const pages = PAGES.map((path) => ({ path, text: readPage(path) }));

  it("ends npm's own flags before zonewise: npm drops -n otherwise", () => {
    const shown = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\bnpx .*zonewise/g)].map(([line]) => ({ path, line })),
    );
    assert.ok(shown.length > 2, `${shown.length} lines`);
    assert.deepEqual(
      // As published, it needs no clone.
      shown.filter(({ line }) => line !== "npx zonewise" && !line.startsWith("npx --no -- ")),
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
