import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { judge } from "./judge.ts";
import { mutate, readTable, type Mutation } from "./mutation.ts";
import { MUTATIONS } from "./table.ts";

const ROOT = join(import.meta.dirname, "../..");

describe("the mutation table", () => {
  for (const mutation of MUTATIONS)
    it(`has a line to break: ${mutation.breaks}`, async () => {
      const text = await readFile(join(ROOT, mutation.file), "utf8");
      const mutated = mutate(text, mutation);
      assert.ok(
        mutated !== undefined,
        `${JSON.stringify(mutation.find)} is not found exactly once in ${mutation.file}`,
      );
      assert.notEqual(mutated, text);
      for (const test of mutation.tests) assert.ok(existsSync(join(ROOT, test)), test);
    });

  it("is read a rule after the other", () => {
    const text = `# About rooms
file functions/room.ts
tests {room,house} door
there is room
- most - down
+ most
nobody enters
- if (open)
- enter();

file functions/door.ts
`;
    const row = { file: "functions/room.ts", tests: ["test/room.test.ts", "test/house.test.ts", "test/door.test.ts"] };
    assert.deepEqual(readTable(text), [
      { ...row, breaks: "there is room", find: "most - down", replacement: "most" },
      { ...row, breaks: "nobody enters", find: "if (open)\nenter();", replacement: "" },
    ]);
  });

  it("names each rule once", () => {
    const names = MUTATIONS.map(({ breaks }) => breaks);
    assert.deepEqual(
      names.filter((name, i) => names.indexOf(name) !== i),
      [],
    );
  });
});

const TREE = {
  "functions/room.ts": "export const room = (most: number, down: number): number => most - down;\n",
  "test/room.test.ts": `import assert from "node:assert/strict";
import { it } from "node:test";
import { room } from "../functions/room.ts";
it("leaves room for what is down", () => assert.equal(room(2, 1), 1));
if (room(2, 1) !== 1) setInterval(() => {}, 1000);
`,
};

describe("a mutation", () => {
  const CASES: readonly [string, Partial<Mutation>, object][] = [
    [
      "that a test notices is killed, although its process would not end",
      { find: "most - down" },
      { state: "killed", by: "leaves room for what is down" },
    ],
    ["that changes nothing survives", { replacement: "most - 1 * down" }, { state: "survived" }],
    ["of a text that is not there is not found", { find: "least" }, { state: "not found" }],
    ["of a text that is there twice is not found", { find: "number" }, { state: "not found" }],
    [
      "that does not compile is invalid",
      { replacement: "mots" },
      { state: "invalid", message: "functions/room.ts(1,61): error TS2304: Cannot find name 'mots'." },
    ],
  ];
  for (const [name, more, result] of CASES)
    it(name, async (t) => {
      const path = await mkdtemp(join(tmpdir(), "mutation-"));
      t.after(() => rm(path, { recursive: true }));
      for (const folder of ["functions", "test"]) await mkdir(join(path, folder));
      for (const [file, text] of Object.entries(TREE)) await writeFile(join(path, file), text);
      await writeFile(join(path, "package.json"), `{ "type": "module" }`);
      await cp(join(ROOT, "tsconfig.json"), join(path, "tsconfig.json"));
      await symlink(join(ROOT, "node_modules"), join(path, "node_modules"));
      const mutation = {
        breaks: "",
        file: "functions/room.ts",
        find: "most - down",
        replacement: "most",
        tests: ["test/room.test.ts"],
        ...more,
      };
      assert.deepEqual(await judge(path, mutation), result);
      assert.equal(await readFile(join(path, "functions/room.ts"), "utf8"), TREE["functions/room.ts"]);
    });
});
