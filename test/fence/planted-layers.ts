/** Violations: imports that go up, and pure files that are not. */
import type { Row } from "./row.ts";

/** Imports go functions -> reconciler -> infra, and pure folders do no I/O. */
export const LAYERS: readonly Row[] = [
  [
    "a pure folder reads the file system",
    "reconciler/rollout/x.ts",
    `import fs from "node:fs";\nexport const x = fs;\n`,
    /pure\(imports\)/,
  ],
  [
    "a pure folder uses the cluster",
    "reconciler/rollout/x.ts",
    `import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";\nexport const x = connectCluster;\n`,
    /access\(reach\)/,
  ],
  [
    "a pure folder uses the client",
    "reconciler/model/x.ts",
    `import { KubeConfig } from "@kubernetes/client-node";\nexport const x = KubeConfig;\n`,
    /access\(reach\)/,
  ],
  [
    "a capability imports another",
    "reconciler/budget/x.ts",
    `import { decideRollout } from "../rollout/decide.ts";\nexport const x = decideRollout;\n`,
    /access\(downwards\)/,
  ],
  [
    "a capability takes a type of the run",
    "reconciler/scaling/act/x.ts",
    `import type { Tick } from "../../run/tick.ts";\nexport type X = Tick;\n`,
    /access\(downwards\)/,
  ],
  [
    "a capability imports its neighbour",
    "reconciler/gates/x.ts",
    `import { decidePhased } from "../phased/decide.ts";\nexport const x = decidePhased;\n`,
    /access\(downwards\)/,
  ],
  [
    "a folder of the reconciler is on no floor",
    "reconciler/else/x.ts",
    `import { y } from "./y.ts";\nexport const x = y;\n`,
    /access\(downwards\)/,
  ],
  [
    "a pure file takes a value from an act folder",
    "reconciler/budget/x.ts",
    `import { y } from "./act/y.ts";\nexport const x = y;\n`,
    /pure\(imports\)/,
  ],
  [
    "a capability imports the shell",
    "reconciler/scaling/x.ts",
    `import { tick } from "../run/tick.ts";\nexport const x = tick;\n`,
    /access\(downwards\)/,
  ],
  [
    "a capability imports from infra what does I/O",
    "reconciler/downscale/x.ts",
    `import { createLog } from "../../infra/log.ts";\nexport const x = createLog;\n`,
    /pure\(imports\)/,
  ],
  [
    "a pure folder reads the clock",
    "reconciler/rollout/x.ts",
    `export const x = Date.now();\n`,
    /no-restricted-properties/,
  ],
  ["a pure folder asks for the current date", "reconciler/rollout/x.ts", `export const x = new Date();\n`, /no-clock/],
  [
    "a pure folder reads the environment",
    "reconciler/budget/x.ts",
    `export const x = process.env;\n`,
    /no-restricted-globals/,
  ],
  ["a pure folder fetches", "reconciler/scaling/x.ts", `export const x = fetch;\n`, /no-restricted-globals/],
  ["a pure folder sets a timer", "reconciler/model/x.ts", `export const x = setTimeout;\n`, /no-restricted-globals/],
  [
    "a pure folder draws a random number",
    "reconciler/rollout/x.ts",
    `export const x = Math.random();\n`,
    /no-restricted-properties/,
  ],
  [
    "infra imports the reconciler",
    "infra/x.ts",
    `import { tick } from "../reconciler/run/tick.ts";\nexport const x = tick;\n`,
    /access\(downwards\)/,
  ],
  [
    "infra imports a function",
    "infra/x.ts",
    `import { reconcile } from "../functions/reconcile.ts";\nexport const x = reconcile;\n`,
    /access\(downwards\)/,
  ],
  [
    "the reconciler imports a function",
    "reconciler/run/x.ts",
    `import { reconcile } from "../../functions/reconcile.ts";\nexport const x = reconcile;\n`,
    /access\(downwards\)/,
  ],
  [
    "the reconciler imports the CLI",
    "reconciler/run/x.ts",
    `import { runCli } from "../../cli/run.ts";\nexport const x = runCli;\n`,
    /access\(downwards\)/,
  ],
  [
    "the CLI imports a function",
    "cli/x.ts",
    `import { compose } from "../functions/compose.ts";\nexport const x = compose;\n`,
    /access\(downwards\)/,
  ],
  [
    "the reconciler imports the client",
    "reconciler/run/x.ts",
    `import { KubeConfig } from "@kubernetes/client-node";\nexport const x = KubeConfig;\n`,
    /access\(reach\)/,
  ],
  [
    "a function imports a test",
    "functions/x.ts",
    `import { zone } from "../test/reconciler/builders.ts";\nexport const x = zone;\n`,
    /access\(downwards\)/,
  ],
];

/** Files that are pure beside others that are not. */
export const PURE_FILES: readonly Row[] = [
  [
    "a pure file reads the clock",
    "reconciler/report/ticking.ts",
    `export const x = Date.now();\n`,
    /no-restricted-properties/,
  ],
  [
    "a decision of the CLI reads the clock",
    "cli/decide/x.ts",
    `export const x = Date.now();\n`,
    /no-restricted-properties/,
  ],
  ["a pure file asks for the current date", "functions/status/view/x.ts", `export const x = new Date();\n`, /no-clock/],
  [
    "a pure file reads the environment",
    "infra/config/config.ts",
    `export const x = process.env;\n`,
    /no-restricted-globals/,
  ],
  ["a pure file fetches", "infra/certs/decide-certificate.ts", `export const x = fetch;\n`, /no-restricted-globals/],
  ["a pure file sets a timer", "infra/duration.ts", `export const x = setInterval;\n`, /no-restricted-globals/],
  [
    "a pure file draws a random number",
    "reconciler/report/events.ts",
    `export const x = Math.random();\n`,
    /no-restricted-properties/,
  ],
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
    "reconciler/report/judge-ticking.ts",
    `export { createLog } from "../../infra/log.ts";\n`,
    /pure\(imports\)/,
  ],
  [
    "a pure file imports at run time",
    "infra/timestamp.ts",
    `export const x = () => import("./duration.ts");\n`,
    /no-clock/,
  ],
];
