/** `--help` of each command: its examples are command lines that the parser takes, and it names each exit code once. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { COMMANDS, createProgram } from "../../cli/program.ts";

/** What a command line prints, and the command that it runs. */
async function parse(words: readonly string[]): Promise<{ readonly out: string; readonly ran: string | undefined }> {
  let [out, ran]: [string, string | undefined] = ["", undefined];
  const program = createProgram(COMMANDS, async ({ name }) => void (ran = name));
  program.configureOutput({ writeOut: (text) => (out += text), writeErr: (text) => (out += text) });
  for (const command of program.commands) command.copyInheritedSettings(program);
  await program.parseAsync([...words], { from: "user" }).catch(() => {});
  return { out, ran };
}

describe("zonewise --help", () => {
  it("has the commands in groups, those that only look first", async () => {
    const { out } = await parse(["--help"]);
    const headings = [...out.matchAll(/^([\w ]+):$/gm)].map(([, heading]) => heading);
    assert.deepEqual(headings, ["Look", "Steer", "Check", "Flags of every command"]);
    const long = out.split("\n").filter(({ length }) => length > 100);
    assert.deepEqual(long, []);
  });
  for (const { name, examples } of COMMANDS) {
    it(`${name} --help names each exit code once, and has examples`, async () => {
      const { out } = await parse([name, "--help"]);
      const codes = out.slice(out.indexOf("Exit codes:")).match(/^ {2}\d+ /gm) ?? [];
      assert.equal(new Set(codes).size, codes.length, out);
      assert.ok(codes.length >= 4, out);
      assert.ok(examples.length >= 2, out);
      for (const [words] of examples) assert.ok(out.includes(`  zonewise ${words}`), out);
    });
    for (const [words] of examples)
      it(`zonewise ${words}: is taken`, async () => {
        const { out, ran } = await parse(words.split(" "));
        assert.equal(ran, name, out);
      });
  }
});
