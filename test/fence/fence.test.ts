/** Plants violations of the architecture in a copy of the tree's skeleton, and expects the linter to name each. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { before, describe, it } from "node:test";

const root = join(import.meta.dirname, "../..");
const PLANTED: readonly [string, string, string, RegExp?][] = [
  [
    "a pure folder reads the file system",
    "reconciler/rollout/x.ts",
    `import fs from "node:fs";\nexport const x = fs;\n`,
    /no-restricted-imports/,
  ],
  [
    "a pure folder uses the cluster",
    "reconciler/rollout/x.ts",
    `import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";\nexport const x = connectCluster;\n`,
    /no-restricted-imports/,
  ],
  [
    "a pure folder uses the client",
    "reconciler/model/x.ts",
    `import { KubeConfig } from "@kubernetes/client-node";\nexport const x = KubeConfig;\n`,
    /no-restricted-imports/,
  ],
  [
    "a capability imports another",
    "reconciler/budget/x.ts",
    `import { decideRollout } from "../rollout/decide.ts";\nexport const x = decideRollout;\n`,
    /no-restricted-imports/,
  ],
  [
    "a capability imports the shell",
    "reconciler/scaling/x.ts",
    `import { tick } from "../tick.ts";\nexport const x = tick;\n`,
    /no-restricted-imports/,
  ],
  [
    "a capability imports from infra what does I/O",
    "reconciler/downscale/x.ts",
    `import { createLog } from "../../infra/log.ts";\nexport const x = createLog;\n`,
    /no-restricted-imports/,
  ],
  ["a pure folder reads the clock", "reconciler/rollout/x.ts", `export const x = Date.now();\n`, /no-restricted-properties/],
  ["a pure folder asks for the current date", "reconciler/rollout/x.ts", `export const x = new Date();\n`, /no-clock/],
  ["a pure folder reads the environment", "reconciler/budget/x.ts", `export const x = process.env;\n`, /no-restricted-globals/],
  ["a pure folder fetches", "reconciler/scaling/x.ts", `export const x = fetch;\n`, /no-restricted-globals/],
  ["a pure folder sets a timer", "reconciler/model/x.ts", `export const x = setTimeout;\n`, /no-restricted-globals/],
  ["a pure folder draws a random number", "reconciler/rollout/x.ts", `export const x = Math.random();\n`, /no-restricted-properties/],
  [
    "infra imports the reconciler",
    "infra/x.ts",
    `import { tick } from "../reconciler/tick.ts";\nexport const x = tick;\n`,
    /no-restricted-imports/,
  ],
  [
    "infra imports a function",
    "infra/x.ts",
    `import { reconcile } from "../functions/reconcile.ts";\nexport const x = reconcile;\n`,
    /no-restricted-imports/,
  ],
  [
    "the reconciler imports a function",
    "reconciler/x.ts",
    `import { reconcile } from "../functions/reconcile.ts";\nexport const x = reconcile;\n`,
    /no-restricted-imports/,
  ],
  [
    "the reconciler imports the client",
    "reconciler/x.ts",
    `import { KubeConfig } from "@kubernetes/client-node";\nexport const x = KubeConfig;\n`,
    /no-restricted-imports/,
  ],
  [
    "a function imports a test",
    "functions/x.ts",
    `import { zone } from "../test/reconciler/builders.ts";\nexport const x = zone;\n`,
    /no-restricted-imports/,
  ],
];

const ALLOWED: readonly [string, string, string, RegExp?][] = [
  ["a capability imports the model", "reconciler/budget/x.ts", `import { byName } from "../model/order.ts";\nexport const x = byName;\n`],
  ["a capability imports its own files", "reconciler/budget/x.ts", `import { y } from "./y.ts";\nexport const x = y;\n`],
  [
    "the model takes shapes from infra",
    "reconciler/model/x.ts",
    `import type { Pod } from "../../infra/kubernetes/resources.ts";\nexport type X = Pod;\n`,
  ],
  [
    "a capability reads durations",
    "reconciler/budget/x.ts",
    `import { parseGoDuration } from "../../infra/duration.ts";\nexport const x = parseGoDuration;\n`,
  ],
  ["a pure folder builds a date from a number", "reconciler/rollout/x.ts", `export const x = new Date(0);\n`],
  [
    "a function imports a capability",
    "functions/x.ts",
    `import { decideRollout } from "../reconciler/rollout/decide.ts";\nexport const x = decideRollout;\n`,
  ],
];

const cases = [...PLANTED, ...ALLOWED].map(([name, path, content, rule], i) => ({
  name,
  path: path.replace("x.ts", `x${i}.ts`),
  content,
  rule,
}));
let output = "";

before(() => {
  const copy = mkdtempSync(join(tmpdir(), "fence-"));
  for (const path of [".oxlintrc.json", "tsconfig.json", "package.json", "test/fence/pure.js"]) cpSync(join(root, path), join(copy, path));
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  for (const { path, content } of cases) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    writeFileSync(join(copy, path), content);
  }
  const linter = spawnSync(join(root, "node_modules/.bin/oxlint"), ["-f", "unix", "functions", "infra", "reconciler"], {
    cwd: copy,
    encoding: "utf8",
  });
  output = linter.stdout + linter.stderr;
  rmSync(copy, { recursive: true, force: true });
});

describe("the architecture fence", () => {
  for (const { name, path, rule } of cases) {
    it(`${rule ? "reports" : "is silent"} when ${name}`, () => {
      const said = output.split("\n").filter((line) => line.startsWith(`${path}:`));
      if (rule) assert.match(said.join("\n"), rule);
      else assert.deepEqual(said, []);
    });
  }
});
