import assert from "node:assert/strict";
import { it } from "node:test";
import { createScreen } from "../../../cli/output/screen.ts";
import { colourful, showControls, untilOf } from "../../../cli/output/text.ts";
import { runCli } from "../../../cli/run.ts";
import { systemClock } from "../../../infra/clock.ts";

it("control characters of the cluster are shown, not sent", () => {
  assert.equal(
    showControls("a\u001B[2Jb\u001B]0;title\u0007\r\u0000\u009B1A\u007F"),
    "a\\u001b[2Jb\\u001b]0;title\\u0007\\u000d\\u0000\\u009b1A\\u007f",
  );
  assert.equal(showControls("a\u202Eb\u2066c\u200Bd\u2028"), "a\\u202eb\\u2066c\\u200bd\\u2028");
  assert.equal(showControls("hidden \u001B[8mtext"), "hidden \\u001b[8mtext");
  assert.equal(showControls("b\u001B[2A\u001B[J"), "b\\u001b[2A\\u001b[J");
});

it("a document in JSON means the same", () => {
  const value = { message: "a\u001B[2J\u009B\u007Fb\n" };
  assert.deepEqual(JSON.parse(showControls(JSON.stringify(value))), value);
});

it("our own colours, redrawing, lines and letters of all languages stay", () => {
  const coloured = `${["good", "bad", "moving", "waiting", "warning"].map((tone) => colourful(tone as "good", "Zone läuft ● 区")).join("\t")}\n`;
  assert.match(coloured, /\[32m.*\[31m.*\[34m.*\[90m.*\[33m/);
  assert.equal(showControls(coloured), coloured);
  const written: string[] = [];
  const io = { write: (text: string) => void written.push(text), warn: () => {}, isTty: true, style: colourful };
  const screen = createScreen({ io, output: "table" });
  for (const table of ["1\n", "2\n"])
    screen.update({ table: () => table, short: () => "", lines: () => table, document: () => "" });
  assert.equal(showControls(written[1] ?? ""), "\u001B[1A\u001B[J2\n");
});

it("what the CLI writes is shown so, errors too", async () => {
  let text = "";
  const write = (more: string): void => void (text += more);
  const terminal = {
    write,
    warn: write,
    isTty: true,
    env: {},
    clock: systemClock,
    signal: new AbortController().signal,
  };
  await runCli(["status", "--kubeconfig", "/none/\u001B[2J"], terminal);
  assert.match(text, /\/none\/\\u001b\[2J/);
});

const NOW = Date.parse("2026-11-22T03:00:00Z");
const CASES: readonly (readonly [at: string | undefined, shown: string])[] = [
  ["2026-11-22T03:04:30Z", "in 4m30s"],
  ["2026-11-22T03:00:00Z", "now"],
  ["2026-11-22T02:59:00Z", "now"],
  ["2026-11-22T02:58:59Z", ""],
  [undefined, ""],
];
for (const [at, shown] of CASES)
  it(`what lasts until ${at} is shown as "${shown}" at 03:00`, () => assert.equal(untilOf(at, NOW), shown));
