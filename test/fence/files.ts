/**
 * Files, and the rule that names each: a path and what the file says, which is an expression, or what it imports from
 * where, with paths from the root of the tree. Each `x.ts` becomes a file of its own.
 */

/** Violations, by the rule that names them. */
export const FORBIDDEN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "pure(imports)": {
    "a pure folder reads the file system": "reconciler/rollout/x.ts: fs from node:fs",
    "a pure file takes a value from an act folder": "reconciler/budget/x.ts: y from reconciler/budget/act/y.ts",
    "a capability imports from infra what does I/O": "reconciler/downscale/x.ts: createLog from infra/log.ts",
    "a pure file draws a random number from a module": "infra/certs/secret.ts: randomUUID from node:crypto",
    "a pure file reads the file system": "infra/certs/configurations.ts: fs from node:fs",
    "a pure file takes a value from what is not pure": "reconciler/model/outcome.ts: createLog from infra/log.ts",
    "checks ask Prometheus themselves":
      "reconciler/checks/x.ts: createPrometheusClient from infra/prometheus/act/client.ts",
    "the rules of node updates read the file system": "reconciler/nodes/x.ts: fs from node:fs",
    "the rules of node updates reserve evictions":
      "reconciler/nodes/x.ts: createMayDisrupt from reconciler/budget/act/may-disrupt.ts",
  },
  "access(reach)": {
    "a pure folder uses the cluster":
      "reconciler/rollout/x.ts: connectCluster from infra/kubernetes/connect-cluster.ts",
    "a pure folder uses the client": "reconciler/model/x.ts: KubeConfig from @kubernetes/client-node",
    "the reconciler imports the client": "reconciler/run/x.ts: KubeConfig from @kubernetes/client-node",
    "a folder that has no business with the cluster takes the port":
      "functions/http/x.ts: type Cluster from infra/kubernetes/cluster.ts",
    "a pure folder takes the port": "reconciler/model/x.ts: type Cluster from infra/kubernetes/cluster.ts",
    "a pure file takes the port": "reconciler/report/log-lines.ts: type Cluster from infra/kubernetes/cluster.ts",
    "a file that does not call the cluster names a kind":
      "reconciler/report/x.ts: pods from infra/kubernetes/resources.ts",
    "a caller of the cluster opens a connection of its own":
      "reconciler/scaling/act/x.ts: connectCluster from infra/kubernetes/connect-cluster.ts",
    "a caller of the cluster loads credentials": "infra/certs/x.ts: loadConnection from infra/kubernetes/connection.ts",
    "something beside the run takes the reconciler's Lease":
      "reconciler/scaling/act/x.ts: acquireLease from infra/kubernetes/lease.ts",
    "something else writes a Lease": "reconciler/budget/act/x.ts: writeLease from infra/kubernetes/lease-object.ts",
    "the port uses the client": "infra/kubernetes/x.ts: KubeConfig from @kubernetes/client-node/dist/config.js",
    "the port loads the client": 'infra/kubernetes/x.ts: () => import("@kubernetes/client-node")',
    "the shapes of objects use the client": "infra/kubernetes/resources.ts: KubeConfig from @kubernetes/client-node",
    "another file takes the client's types": "infra/x.ts: type V1Pod from @kubernetes/client-node",
    "the reconciler speaks HTTP": "reconciler/scaling/act/x.ts: http from node:http",
    "another file than the client asks Prometheus": "infra/prometheus/x.ts: https from node:https",
    "checks use the cluster": "reconciler/checks/x.ts: type Cluster from infra/kubernetes/cluster.ts",
    "the rules of node updates take the port": "reconciler/nodes/x.ts: type Cluster from infra/kubernetes/cluster.ts",
    "another file of the agent speaks HTTP": "reconciler/nodes/agent/x.ts: http from node:http",
    "a route of the node API opens a connection":
      "functions/nodes/x.ts: connectCluster from infra/kubernetes/connect-cluster.ts",
    "the reconciler speaks HTTP through our own function":
      "reconciler/scaling/act/x.ts: requestOnce from infra/http.ts",
    "node updates speak HTTP with Prometheus themselves": "reconciler/nodes/act/x.ts: https from node:https",
  },
  "access(downwards)": {
    "a capability imports another": "reconciler/budget/x.ts: decideRollout from reconciler/rollout/decide.ts",
    "a capability takes a type of the run": "reconciler/scaling/act/x.ts: type Tick from reconciler/run/tick.ts",
    "a capability imports its neighbour": "reconciler/gates/x.ts: decidePhased from reconciler/phased/decide.ts",
    "a folder of the reconciler is on no floor": "reconciler/else/x.ts: y from reconciler/else/y.ts",
    "a capability imports the shell": "reconciler/scaling/x.ts: tick from reconciler/run/tick.ts",
    "infra imports the reconciler": "infra/x.ts: tick from reconciler/run/tick.ts",
    "infra imports a function": "infra/x.ts: reconcile from functions/reconcile.ts",
    "the reconciler imports a function": "reconciler/run/x.ts: reconcile from functions/reconcile.ts",
    "the reconciler imports the CLI": "reconciler/run/x.ts: runCli from cli/run.ts",
    "the CLI imports a function": "cli/x.ts: compose from functions/compose.ts",
    "a function imports a test": "functions/x.ts: zone from test/reconciler/builders.ts",
  },
  "no-restricted-properties": {
    "a pure folder reads the clock": "reconciler/rollout/x.ts: Date.now()",
    "a pure folder draws a random number": "reconciler/rollout/x.ts: Math.random()",
    "a pure file reads the clock": "reconciler/report/ticking.ts: Date.now()",
    "a decision of the CLI reads the clock": "cli/decide/x.ts: Date.now()",
    "a pure file draws a random number": "reconciler/report/events.ts: Math.random()",
    "the reading of an answer reads the clock": "infra/prometheus/answer.ts: Date.now()",
    "the rules of node updates read the clock": "reconciler/nodes/x.ts: Date.now()",
    "the Events of node updates read the clock": "reconciler/nodes/node-events.ts: Date.now()",
    "the agent's rules draw a random number": "reconciler/nodes/decide-agent.ts: Math.random()",
  },
  "no-clock": {
    "a pure folder asks for the current date": "reconciler/rollout/x.ts: new Date()",
    "a pure file asks for the current date": "functions/status/view/x.ts: new Date()",
    "a pure file imports at run time": 'infra/timestamp.ts: () => import("./duration.ts")',
    "the rules of node updates ask for the current date": "reconciler/nodes/x.ts: new Date()",
  },
  "no-restricted-globals": {
    "a pure folder reads the environment": "reconciler/budget/x.ts: process.env",
    "a pure folder fetches": "reconciler/scaling/x.ts: fetch",
    "a pure folder sets a timer": "reconciler/model/x.ts: setTimeout",
    "a pure file reads the environment": "infra/config/config.ts: process.env",
    "a pure file fetches": "infra/certs/decide-certificate.ts: fetch",
    "a pure file sets a timer": "infra/duration.ts: setInterval",
  },
};

/** What the same rules allow. */
export const ALLOWED: Readonly<Record<string, string>> = {
  "the rules of node updates ask budgets, checks and croner":
    "reconciler/nodes/x.ts: Cron from croner; decideEviction from reconciler/budget/decide.ts; dueAt from reconciler/checks/check.ts",
  "a capability imports the model": "reconciler/budget/x.ts: byName from reconciler/model/order.ts",
  "a capability imports its own files": "reconciler/budget/x.ts: y from reconciler/budget/y.ts",
  "the model takes shapes from infra": "reconciler/model/x.ts: type PodObject from infra/kubernetes/resources.ts",
  "a capability reads durations": "reconciler/budget/x.ts: parseGoDuration from infra/duration.ts",
  "a pure folder builds a date from a number": "reconciler/rollout/x.ts: new Date(0)",
  "a function imports a capability": "functions/x.ts: decideRollout from reconciler/rollout/decide.ts",
  "a pure file takes a type from what is not pure": "functions/status/view/page.ts: type Log from infra/log.ts",
  "a pure file reads certificates": "infra/certs/x.ts: X509Certificate from node:crypto",
  "a caller of the cluster takes the port and a kind":
    "reconciler/scaling/act/x.ts: type Cluster from infra/kubernetes/cluster.ts; pods from infra/kubernetes/resources.ts",
  "the connection uses the client": "infra/kubernetes/connection.ts: KubeConfig from @kubernetes/client-node",
  "checks read answers of Prometheus": "reconciler/checks/x.ts: readAnswer from infra/prometheus/answer.ts",
};
