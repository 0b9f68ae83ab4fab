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

const LIMITS: readonly Row[] = [
  ["a file has more than 350 lines", "functions/x.ts", `${"// one\n".repeat(350)}export const x = 1;\n`, /max-lines/],
  ["a function has more than ten paths", "reconciler/run/x.ts", branches(10), /complexity/],
  ["a function has four positional parameters", "infra/x.ts", parameters("a, b, c, d"), /max-params/],
];

const ALLOWED: readonly Row[] = [
  [
    "a capability imports the model",
    "reconciler/budget/x.ts",
    `import { byName } from "../model/order.ts";\nexport const x = byName;\n`,
  ],
  [
    "a capability imports its own files",
    "reconciler/budget/x.ts",
    `import { y } from "./y.ts";\nexport const x = y;\n`,
  ],
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
    "functions/status/view/page.ts",
    `import type { Log } from "../../../infra/log.ts";\nexport type X = Log;\n`,
  ],
  [
    "a pure file reads certificates",
    "infra/certs/x509.ts",
    `import { X509Certificate } from "node:crypto";\nexport const x = X509Certificate;\n`,
  ],
  [
    "a caller of the cluster takes the port and a kind",
    "reconciler/scaling/act/x.ts",
    `import type { Cluster } from "../../../infra/kubernetes/cluster.ts";\nimport { pods } from "../../../infra/kubernetes/resources.ts";\nexport const x = (cluster: Cluster) => ({ cluster, pods });\n`,
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
  ["a file has 350 lines", "functions/x.ts", `${"// one\n".repeat(349)}export const x = 1;\n`],
  ["a function has ten paths", "reconciler/run/x.ts", branches(9)],
  ["a function has three positional parameters", "infra/x.ts", parameters("a, b, c")],
];

export const PLANTED: readonly Planted[] = [
  ...LAYERS,
  ...PURE_FILES,
  ...ACCESS,
  ...HTTP,
  ...NODES,
  ...LIMITS,
  ...ALLOWED,
].map(([name, path, content, rule], i) => ({ name, path: path.replace("x.ts", `x${i}.ts`), content, rule }));
