import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { stripVTControlCharacters } from "node:util";
import type { Picture } from "./picture.ts";
import { clip, createScreen } from "./screen.ts";

function record(isTTY: boolean, colours = false, columns = 80, rows = 24) {
  const written: string[] = [];
  const screen = createScreen({ write: (text) => written.push(text), isTTY, columns, rows }, colours);
  return { written, screen };
}

const picture = (row: string, message = ""): Picture => ({
  title: [{ text: "title", style: "strong" }],
  rows: [[{ text: row, style: "good" }], [{ text: "row b" }]],
  message: [{ text: message }],
});

describe("a terminal", () => {
  it("draws the next picture in the place of the previous one", () => {
    const { screen, written } = record(true);
    screen.show(picture("row a"), "");
    screen.show(picture("row A"), "");
    const lines = (written[0] ?? "").split("\n").length - 1;
    assert.ok(!(written[0] ?? "").includes("F"));
    assert.ok(written[1]?.startsWith(`\u001B[${lines}F`));
  });

  it("writes nothing for an unchanged picture", () => {
    const { screen, written } = record(true);
    screen.show(picture("row a"), "0.1 s");
    screen.show(picture("row a"), "0.2 s");
    assert.equal(written.length, 1);
  });

  it("puts printed lines above the picture, which follows them", () => {
    const { screen, written } = record(true);
    screen.show(picture("row a"), "");
    screen.print("done");
    const text = written[1] ?? "";
    assert.ok(text.indexOf("done") < text.indexOf("title") && text.indexOf("title") < text.indexOf("row a"));
  });

  it("breaks printed lines and messages between words, and no command", () => {
    const { screen, written } = record(true, false, 20);
    const command = "    kubectl get pods --watch --all-namespaces";
    screen.show(picture("row a", "zone-a waits for all pods"), "");
    screen.print("Rolled out 3 zones in 4.2 s", command);
    const lines = stripVTControlCharacters(written.join("")).split("\n");
    for (const line of ["zone-a waits for all", "pods", "Rolled out 3 zones", "in 4.2 s", command])
      assert.ok(lines.includes(line), `${line}\n${lines.join("\n")}`);
  });

  it("uses colours only if they are enabled", () => {
    for (const colours of [true, false]) {
      const { screen, written } = record(true, colours);
      screen.show(picture("row a"), "");
      assert.equal(written.join("").includes("\u001B[32mrow a"), colours);
    }
  });

  it("never draws more rows than the terminal has", () => {
    const { screen, written } = record(true, false, 80, 4);
    screen.show(picture("row a"), "");
    assert.equal(written.join("").split("\n").length - 1, 3);
  });
});

describe("lines that are too long", () => {
  it("are clipped over all their spans", () => {
    const line = [{ text: "abc" }, { text: "def", style: "good" as const }, { text: "ghi" }];
    assert.deepEqual(
      clip(line, 4).map(({ text }) => text),
      ["abc", "d", ""],
    );
  });
});
