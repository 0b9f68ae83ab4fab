/**
 * The metrics of node updates, one row each; the first two are the original's. The node API shows all but the last from
 * the stored objects.
 */
export const NODE_METRICS = {
  hostsVersion: {
    name: "brupop_hosts_version",
    type: "gauge",
    help: "Nodes by the version of their operating system.",
    labels: ["bottlerocket_version"],
    foreign: true,
  },
  hostsState: {
    name: "brupop_hosts_state",
    type: "gauge",
    help: "Nodes by the state that their agents report.",
    labels: ["state"],
    foreign: true,
  },
  hostsCrashes: {
    name: "zonewise_node_update_crash_count",
    type: "gauge",
    help: "Failed attempts in a row of a node whose last attempt failed.",
    labels: ["node"],
    foreign: true,
  },
  nodesActive: {
    name: "zonewise_node_updates_active",
    type: "gauge",
    help: "Nodes of a policy that are being updated.",
    labels: ["policy"],
    foreign: true,
  },
  nodePhase: {
    name: "zonewise_node_update_phase_started_timestamp_seconds",
    type: "gauge",
    help: "Unix time at which a node that is being updated came into its phase.",
    labels: ["policy", "node", "phase"],
    foreign: true,
  },
  nodeDeadline: {
    name: "zonewise_node_update_phase_deadline_timestamp_seconds",
    type: "gauge",
    help: "Unix time at which the deadline of that phase ends, as the policy says.",
    labels: ["policy", "node", "phase"],
    foreign: true,
  },
  nodesFrozen: {
    name: "zonewise_node_updates_frozen",
    type: "gauge",
    help: "1 while a policy starts nothing until a person clears it, otherwise 0.",
    labels: ["policy"],
    foreign: true,
  },
  nodesSkipped: {
    name: "zonewise_node_updates_skipped",
    type: "gauge",
    help: "Nodes of a policy that have an update and do not start, by the reason.",
    labels: ["policy", "reason"],
    foreign: true,
  },
  nodeTransitions: {
    name: "zonewise_node_update_transitions_total",
    type: "counter",
    help: "Changes of the wanted state of nodes, with the version before and after; cumulative over runs.",
    labels: ["policy", "from", "to", "from_version", "to_version"],
    foreign: true,
  },
  nodesLastPass: {
    name: "zonewise_node_updates_last_pass_timestamp_seconds",
    type: "gauge",
    help: "Unix time of the last pass over the nodes.",
    labels: [],
    kept: "alone",
  },
} as const;
