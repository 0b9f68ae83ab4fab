/** The commands of docs/fleet.md: shells read them. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { readPage } from "./pages.ts";

const page = readPage("docs/fleet.md");

/** Blocks of commands: indented by four, without those in a list, which are manifests. */
const blocks = [...page.matchAll(/(?:^ {4}(?=\S).*\n(?:^ {4}.*\n)*)/gm)].map(([block]) =>
  block.replaceAll(/^ {4}/gm, ""),
);
/** A table's cells in code. */
const cells = [...page.matchAll(/`((?:kubectl|flux) [^`]+)`/g)].map(([, command = ""]) => command);
const commands = [...blocks, ...cells];
const patches = commands.flatMap((command) => [...command.matchAll(/^(.*?)-p '([^']+)'/gm)]);

describe("the commands of docs/fleet.md", () => {
  it("are there", () => assert.ok(blocks.length >= 1 && cells.length >= 2, `${blocks.length} and ${cells.length}`));
  for (const command of commands)
    it(`a shell reads: ${command.slice(0, 60).replaceAll("\n", " ")}`, () => {
      const { status, stderr } = spawnSync("bash", ["-n"], { input: command, encoding: "utf8" });
      assert.equal(status, 0, stderr);
    });

  for (const [, , patch = ""] of patches) it(`the patch is JSON: ${patch.slice(0, 60)}`, () => void JSON.parse(patch));
});
