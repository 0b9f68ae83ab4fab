/** Violations: imports that go up, and pure files that are not. */
import type { Row } from "./row.ts";

/** Imports go functions -> reconciler -> infra, and pure folders do no I/O. */
export const LAYERS: readonly Row[] = [
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
    "the reconciler imports the CLI",
    "reconciler/x.ts",
    `import { runCli } from "../cli/run.ts";\nexport const x = runCli;\n`,
    /no-restricted-imports/,
  ],
  [
    "the CLI imports a function",
    "cli/x.ts",
    `import { compose } from "../functions/compose.ts";\nexport const x = compose;\n`,
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

/** Files that are pure beside others that are not. */
export const PURE_FILES: readonly Row[] = [
  ["a pure file reads the clock", "reconciler/report/memory.ts", `export const x = Date.now();\n`, /no-restricted-properties/],
  ["a decision of the CLI reads the clock", "cli/decide/x.ts", `export const x = Date.now();\n`, /no-restricted-properties/],
  ["a pure file asks for the current date", "reconciler/run/resync.ts", `export const x = new Date();\n`, /no-clock/],
  ["a pure file reads the environment", "infra/config/config.ts", `export const x = process.env;\n`, /no-restricted-globals/],
  ["a pure file fetches", "infra/certs/decide.ts", `export const x = fetch;\n`, /no-restricted-globals/],
  ["a pure file sets a timer", "infra/duration.ts", `export const x = setInterval;\n`, /no-restricted-globals/],
  ["a pure file draws a random number", "reconciler/report/events.ts", `export const x = Math.random();\n`, /no-restricted-properties/],
  [
    "a pure file draws a random number from a module",
    "infra/certs/secret.ts",
    `import { randomUUID } from "node:crypto";\nexport const x = randomUUID;\n`,
    /pure\(imports\)/,
  ],
  [
    "a pure file reads the file system",
    "infra/certs/configurations.ts",
    `import fs from "node:fs";\nexport const x = fs;\n`,
    /pure\(imports\)/,
  ],
  [
    "a pure file takes a value from what is not pure",
    "reconciler/model/outcome.ts",
    `import { createLog } from "../../infra/log.ts";\nexport const x = createLog;\n`,
    /pure\(imports\)/,
  ],
  [
    "a pure file passes on what is not pure",
    "reconciler/report/describe.ts",
    `export { createLog } from "../../infra/log.ts";\n`,
    /pure\(imports\)/,
  ],
  ["a pure file imports at run time", "infra/timestamp.ts", `export const x = () => import("./duration.ts");\n`, /no-clock/],
];
