/** Violations: files that reach the cluster, or speak HTTP, and may not. */
import type { Row } from "./row.ts";

/** Who reaches the cluster. */
export const ACCESS: readonly Row[] = [
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
    "reconciler/scaling/act/x.ts",
    `import { connectCluster } from "../../../infra/kubernetes/connect-cluster.ts";\nexport const x = connectCluster;\n`,
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
    "reconciler/scaling/act/x.ts",
    `import { acquireLease } from "../../../infra/kubernetes/lease.ts";\nexport const x = acquireLease;\n`,
    /access\(reach\)/,
  ],
  [
    "something else writes a Lease",
    "reconciler/budget/act/x.ts",
    `import { writeLease } from "../../../infra/kubernetes/lease-object.ts";\nexport const x = writeLease;\n`,
    /access\(reach\)/,
  ],
  [
    "the port uses the client",
    "infra/kubernetes/x.ts",
    `import { KubeConfig } from "@kubernetes/client-node/dist/config.js";\nexport const x = KubeConfig;\n`,
    /access\(reach\)/,
  ],
  [
    "the port loads the client",
    "infra/kubernetes/x.ts",
    `export const x = () => import("@kubernetes/client-node");\n`,
    /access\(reach\)/,
  ],
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
export const HTTP: readonly Row[] = [
  [
    "the reconciler speaks HTTP",
    "reconciler/scaling/act/x.ts",
    `import http from "node:http";\nexport const x = http;\n`,
    /access\(reach\)/,
  ],
  [
    "another file than the client asks Prometheus",
    "infra/prometheus/x.ts",
    `import https from "node:https";\nexport const x = https;\n`,
    /access\(reach\)/,
  ],
  [
    "checks ask Prometheus themselves",
    "reconciler/checks/x.ts",
    `import { createPrometheusClient } from "../../infra/prometheus/act/client.ts";\nexport const x = createPrometheusClient;\n`,
    /pure\(imports\)/,
  ],
  [
    "checks use the cluster",
    "reconciler/checks/x.ts",
    `import type { Cluster } from "../../infra/kubernetes/cluster.ts";\nexport type X = Cluster;\n`,
    /access\(reach\)/,
  ],
  [
    "the reading of an answer reads the clock",
    "infra/prometheus/answer.ts",
    `export const x = Date.now();\n`,
    /no-restricted-properties/,
  ],
];

/** Node updates: what decides, the agent, and the API between them. */
export const NODES: readonly Row[] = [
  [
    "the rules of node updates read the file system",
    "reconciler/nodes/x.ts",
    `import fs from "node:fs";\nexport const x = fs;\n`,
    /pure\(imports\)/,
  ],
  [
    "the rules of node updates reserve evictions",
    "reconciler/nodes/x.ts",
    `import { createMayDisrupt } from "../budget/act/may-disrupt.ts";\nexport const x = createMayDisrupt;\n`,
    /pure\(imports\)/,
  ],
  [
    "the rules of node updates take the port",
    "reconciler/nodes/x.ts",
    `import type { Cluster } from "../../infra/kubernetes/cluster.ts";\nexport type X = Cluster;\n`,
    /access\(reach\)/,
  ],
  [
    "the rules of node updates read the clock",
    "reconciler/nodes/x.ts",
    `export const x = Date.now();\n`,
    /no-restricted-properties/,
  ],
  [
    "the rules of node updates ask for the current date",
    "reconciler/nodes/x.ts",
    `export const x = new Date();\n`,
    /no-clock/,
  ],
  [
    "the Events of node updates read the clock",
    "reconciler/nodes/node-events.ts",
    `export const x = Date.now();\n`,
    /no-restricted-properties/,
  ],
  [
    "the agent's rules draw a random number",
    "reconciler/nodes/decide-agent.ts",
    `export const x = Math.random();\n`,
    /no-restricted-properties/,
  ],
  [
    "another file of the agent speaks HTTP",
    "reconciler/nodes/agent/x.ts",
    `import http from "node:http";\nexport const x = http;\n`,
    /access\(reach\)/,
  ],
  [
    "a route of the node API opens a connection",
    "functions/nodes/x.ts",
    `import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";\nexport const x = connectCluster;\n`,
    /access\(reach\)/,
  ],
  [
    "the reconciler speaks HTTP through our own function",
    "reconciler/scaling/act/x.ts",
    `import { requestOnce } from "../../../infra/http.ts";\nexport const x = requestOnce;\n`,
    /access\(reach\)/,
  ],
  [
    "node updates speak HTTP with Prometheus themselves",
    "reconciler/nodes/act/x.ts",
    `import https from "node:https";\nexport const x = https;\n`,
    /access\(reach\)/,
  ],
  [
    "the rules of node updates ask budgets, checks and croner",
    "reconciler/nodes/x.ts",
    `import { Cron } from "croner";\nimport { decideEviction } from "../budget/decide.ts";\nimport { dueAt } from "../checks/check.ts";\nexport const x = [Cron, decideEviction, dueAt];\n`,
  ],
];
