/** Violations of the architecture, each with the rule that names it; and what the same rules allow. */
import { ACCESS, HTTP, NODES } from "./planted-access.ts";
import { LAYERS, PURE_FILES } from "./planted-layers.ts";
import type { Row } from "./row.ts";

/** `path` says where the file is planted: each `x.ts` becomes a file of its own. */
export interface Planted {
  readonly name: string;
  readonly path: string;
  readonly content: string;
  /** Undefined for what is allowed. */
  readonly rule: RegExp | undefined;
}

/** A function with this many branches, and so one more path. */
function branches(count: number): string {
  return `export function x(n: number): number {\n${Array.from({ length: count }, (_, i) => `  if (n === ${i}) return ${i};\n`).join("")}  return n;\n}\n`;
}

function parameters(names: string): string {
  return `export function x(${names.replaceAll(/\w+/g, "$&: string")}): string[] {\n  return [${names}];\n}\n`;
}

/** Imports go functions -> reconciler -> infra, and pure folders do no I/O. */
const LAYERS: readonly Row[] = [
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
const PURE_FILES: readonly Row[] = [
  ["a pure file reads the clock", "reconciler/report/memory.ts", `export const x = Date.now();\n`, /no-restricted-properties/],
  ["a decision of the CLI reads the clock", "cli/decide/x.ts", `export const x = Date.now();\n`, /no-restricted-properties/],
  ["a pure file asks for the current date", "reconciler/resync.ts", `export const x = new Date();\n`, /no-clock/],
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
    "reconciler/report/outcome.ts",
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

/** Who reaches the cluster. */
const ACCESS: readonly Row[] = [
  [
    "a folder that has no business with the cluster takes the port",
    "functions/http/x.ts",
    `import type { Cluster } from "../../infra/kubernetes/cluster.ts";\nexport type X = Cluster;\n`,
    /access\(reach\)/,
  ],
  [
    "a pure folder takes the port",
    "reconciler/model/x.ts",
    `import type { Cluster } from "../../infra/kubernetes/cluster.ts";\nexport type X = Cluster;\n`,
    /access\(reach\)/,
  ],
  [
    "a pure file takes the port",
    "reconciler/report/log-lines.ts",
    `import type { Cluster } from "../../infra/kubernetes/cluster.ts";\nexport type X = Cluster;\n`,
    /access\(reach\)/,
  ],
  [
    "a file that does not call the cluster names a kind",
    "reconciler/report/x.ts",
    `import { pods } from "../../infra/kubernetes/resources.ts";\nexport const x = pods;\n`,
    /access\(reach\)/,
  ],
  [
    "a caller of the cluster opens a connection of its own",
    "reconciler/scaler/x.ts",
    `import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";\nexport const x = connectCluster;\n`,
    /access\(reach\)/,
  ],
  [
    "a caller of the cluster loads credentials",
    "infra/certs/x.ts",
    `import { loadConnection } from "../kubernetes/connection.ts";\nexport const x = loadConnection;\n`,
    /access\(reach\)/,
  ],
  [
    "something beside the run takes the reconciler's Lease",
    "reconciler/scaler/x.ts",
    `import { acquireLease } from "../../infra/kubernetes/lease.ts";\nexport const x = acquireLease;\n`,
    /access\(reach\)/,
  ],
  [
    "something else writes a Lease",
    "reconciler/maintenance/x.ts",
    `import { writeLease } from "../../infra/kubernetes/lease-object.ts";\nexport const x = writeLease;\n`,
    /access\(reach\)/,
  ],
  [
    "the port uses the client",
    "infra/kubernetes/x.ts",
    `import { KubeConfig } from "@kubernetes/client-node/dist/config.js";\nexport const x = KubeConfig;\n`,
    /access\(reach\)/,
  ],
  ["the port loads the client", "infra/kubernetes/x.ts", `export const x = () => import("@kubernetes/client-node");\n`, /access\(reach\)/],
  [
    "the shapes of objects use the client",
    "infra/kubernetes/resources.ts",
    `import { KubeConfig } from "@kubernetes/client-node";\nexport const x = KubeConfig;\n`,
    /access\(reach\)/,
  ],
  [
    "another file takes the client's types",
    "infra/x.ts",
    `import type { V1Pod } from "@kubernetes/client-node";\nexport type X = V1Pod;\n`,
    /access\(reach\)/,
  ],
];

/** Who speaks HTTP, and what checks may import. */
const HTTP: readonly Row[] = [
  ["the reconciler speaks HTTP", "reconciler/scaler/x.ts", `import http from "node:http";\nexport const x = http;\n`, /access\(reach\)/],
  [
    "another file than the client asks Prometheus",
    "infra/prometheus/x.ts",
    `import https from "node:https";\nexport const x = https;\n`,
    /access\(reach\)/,
  ],
  [
    "checks ask Prometheus themselves",
    "reconciler/checks/x.ts",
    `import { createPrometheusClient } from "../../infra/prometheus/client.ts";\nexport const x = createPrometheusClient;\n`,
    /no-restricted-imports/,
  ],
  [
    "checks use the cluster",
    "reconciler/checks/x.ts",
    `import type { Cluster } from "../../infra/kubernetes/cluster.ts";\nexport type X = Cluster;\n`,
    /access\(reach\)/,
  ],
  ["the reading of an answer reads the clock", "infra/prometheus/answer.ts", `export const x = Date.now();\n`, /no-restricted-properties/],
];

const LIMITS: readonly Row[] = [
  ["a file has more than 200 lines", "functions/x.ts", `${"// one\n".repeat(200)}export const x = 1;\n`, /max-lines/],
  ["a function has more than ten paths", "reconciler/x.ts", branches(10), /complexity/],
  ["a function has four positional parameters", "infra/x.ts", parameters("a, b, c, d"), /max-params/],
];

const ALLOWED: readonly Row[] = [
  ["a capability imports the model", "reconciler/budget/x.ts", `import { byName } from "../model/order.ts";\nexport const x = byName;\n`],
  ["a capability imports its own files", "reconciler/budget/x.ts", `import { y } from "./y.ts";\nexport const x = y;\n`],
  [
    "the model takes shapes from infra",
    "reconciler/model/x.ts",
    `import type { PodObject } from "../../infra/kubernetes/resources.ts";\nexport type X = PodObject;\n`,
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
  [
    "a pure file takes a type from what is not pure",
    "functions/http/review.ts",
    `import type { Log } from "../../infra/log.ts";\nexport type X = Log;\n`,
  ],
  [
    "a pure file reads certificates",
    "infra/certs/x509.ts",
    `import { X509Certificate } from "node:crypto";\nexport const x = X509Certificate;\n`,
  ],
  [
    "a caller of the cluster takes the port and a kind",
    "reconciler/scaler/x.ts",
    `import type { Cluster } from "../../infra/kubernetes/cluster.ts";\nimport { pods } from "../../infra/kubernetes/resources.ts";\nexport const x = (cluster: Cluster) => ({ cluster, pods });\n`,
  ],
  [
    "the connection uses the client",
    "infra/kubernetes/connection.ts",
    `import { KubeConfig } from "@kubernetes/client-node";\nexport const x = KubeConfig;\n`,
  ],
  [
    "checks read answers of Prometheus",
    "reconciler/checks/x.ts",
    `import { readAnswer } from "../../infra/prometheus/answer.ts";\nexport const x = readAnswer;\n`,
  ],
  ["a file has 200 lines", "functions/x.ts", `${"// one\n".repeat(199)}export const x = 1;\n`],
  ["a function has ten paths", "reconciler/x.ts", branches(9)],
  ["a function has three positional parameters", "infra/x.ts", parameters("a, b, c")],
];

export const PLANTED: readonly Planted[] = [...LAYERS, ...PURE_FILES, ...ACCESS, ...HTTP, ...NODES, ...LIMITS, ...ALLOWED].map(
  ([name, path, content, rule], i) => ({ name, path: path.replace("x.ts", `x${i}.ts`), content, rule }),
);
