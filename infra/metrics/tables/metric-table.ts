/**
 * The metrics, one row each. Names and buckets equal the original's if the meaning does (§9); groups have a namespace
 * label as well.
 */
import type { MetricRow } from "../registry.ts";

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
    help: "Nodes that are being updated.",
    labels: [],
    foreign: true,
  },
  nodePhase: {
    name: "zonewise_node_update_phase_started_timestamp_seconds",
    type: "gauge",
    help: "Unix time at which a node that is being updated came into its phase.",
    labels: ["node", "phase"],
    foreign: true,
  },
  nodeDeadline: {
    name: "zonewise_node_update_phase_deadline_timestamp_seconds",
    type: "gauge",
    help: "Unix time at which the deadline of that phase ends, as the policy says.",
    labels: ["node", "phase"],
    foreign: true,
  },
  nodesFrozen: {
    name: "zonewise_node_updates_frozen",
    type: "gauge",
    help: "1 while nothing starts until a person clears the freeze, otherwise 0.",
    labels: [],
    foreign: true,
  },
  nodesSkipped: {
    name: "zonewise_node_updates_skipped",
    type: "gauge",
    help: "Nodes that have an update and do not start, by the reason.",
    labels: ["reason"],
    foreign: true,
  },
  nodeTransitions: {
    name: "zonewise_node_update_transitions_total",
    type: "counter",
    help: "Changes of the wanted state of nodes, with the version before and after; cumulative over runs.",
    labels: ["from", "to", "from_version", "to_version"],
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

const SECONDS_TO_10 = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SECONDS_TO_100 = [...SECONDS_TO_10, 25, 50, 100];
const BYTES = Array.from({ length: 15 }, (_, i) => 4 ** (i + 1));
const GROUP = ["namespace", "rollout_group"];
const ROUTE = ["method", "route"];

export const METRICS = {
  apiRequests: {
    name: "rollout_operator_kubernetes_api_client_request_duration_seconds",
    type: "histogram",
    help: "Time until the Kubernetes API answered, in seconds.",
    labels: ["path", "method", "status_code"],
    buckets: SECONDS_TO_100,
  },
  rateLimited: {
    name: "rollout_operator_kubernetes_api_client_rate_limited_requests_total",
    type: "counter",
    help: "Calls of the Kubernetes API that were not sent, for want of a token of the client-side rate limiter.",
    labels: ["api_group"],
  },
  podRequests: {
    name: "rollout_operator_pod_http_client_request_duration_seconds",
    type: "histogram",
    help: "Time until a pod answered, in seconds.",
    labels: ["path", "method", "status_code"],
    buckets: SECONDS_TO_100,
  },
  clusterRefused: {
    name: "rollout_operator_client_invalid_cluster_validation_label_requests_total",
    type: "counter",
    help: "Requests of ours that a server refused because it belongs to another cluster.",
    labels: ["method", "protocol", "request_cluster"],
  },
  failurePolicy: {
    name: "kube_validating_webhook_failure_policy",
    type: "gauge",
    help: "1 for the failure policy in force of a webhook, 0 for the other.",
    kept: "alone",
    labels: ["type", "webhook", "policy"],
  },
  certificateExpiry: {
    name: "zonewise_certificate_expiry_timestamp_seconds",
    type: "gauge",
    help: "Unix time at which the webhooks' certificate expires; its successor is made after two thirds of its time.",
    kept: "alone",
    labels: ["namespace"],
  },
  groupReconciles: {
    name: "rollout_operator_group_reconciles_total",
    type: "counter",
    help: "Reconciles of a rollout group that were started.",
    labels: GROUP,
  },
  groupFailures: {
    name: "rollout_operator_group_reconciles_failed_total",
    type: "counter",
    help: "Reconciles of a rollout group that failed.",
    labels: GROUP,
  },
  groupDuration: {
    name: "rollout_operator_group_reconcile_duration_seconds",
    type: "histogram",
    help: "Time that a reconcile of a rollout group took, in seconds.",
    labels: GROUP,
    buckets: SECONDS_TO_10,
  },
  groupSuccess: {
    name: "rollout_operator_last_successful_group_reconcile_timestamp_seconds",
    type: "gauge",
    help: "Unix time of the last reconcile of a rollout group that succeeded.",
    labels: GROUP,
  },
  ticks: {
    name: "zonewise_ticks_total",
    type: "counter",
    help: "Ticks of the reconciler by their result.",
    kept: "alone",
    labels: ["result"],
  },
  podsReplaced: {
    name: "zonewise_pods_replaced_total",
    type: "counter",
    help: "Pods of a rollout group that were deleted to be replaced.",
    labels: GROUP,
  },
  groupHeld: {
    name: "zonewise_group_held",
    type: "gauge",
    help: "1 for the reason why a rollout group waits, at most one a group.",
    labels: [...GROUP, "reason"],
  },
  lastTick: {
    name: "zonewise_last_tick_timestamp_seconds",
    type: "gauge",
    help: "Unix time at which the last tick that read the cluster began.",
    labels: [],
    foreign: true,
  },
  groupPhase: {
    name: "zonewise_group_phase",
    type: "gauge",
    help: "1 for the phase of a rollout group, as in the status of its RolloutGroup.",
    labels: [...GROUP, "phase"],
    foreign: true,
  },
  lastStep: {
    name: "zonewise_rollout_last_step_timestamp_seconds",
    type: "gauge",
    help: "Unix time of the last step of a rollout group that is not ready, unless it waits as a user asked.",
    labels: GROUP,
    foreign: true,
  },
  progressDeadline: {
    name: "zonewise_rollout_progress_deadline_seconds",
    type: "gauge",
    help: "Seconds without a step after which a rollout group that is not ready counts as stalled, by its RolloutGroup; beside its last step.",
    labels: GROUP,
    foreign: true,
  },
  stepsLeft: {
    name: "zonewise_rollout_steps_left",
    type: "gauge",
    help: "Pods to replace and zones to record until the rollout of a group is done.",
    labels: GROUP,
    foreign: true,
  },
  rolloutDuration: {
    name: "zonewise_rollout_duration_seconds",
    type: "gauge",
    help: "Seconds from the begin of a group's rollout to its end, or to the last tick while it is under way; of the last rollout until the next one.",
    labels: GROUP,
    foreign: true,
  },
  zonePods: {
    name: "zonewise_zone_pods",
    type: "gauge",
    help: "Pods of a zone by state: wanted, existing, updated, ready.",
    labels: [...GROUP, "zone", "state"],
    foreign: true,
  },
  gatesBypassed: {
    name: "zonewise_gates_bypassed_until_timestamp_seconds",
    type: "gauge",
    help: "Unix time until which a zone may begin without its gates, while a bypass of them counts.",
    labels: [...GROUP, "zone"],
    foreign: true,
  },
  windowOpen: {
    name: "zonewise_rollout_window_open",
    type: "gauge",
    help: "1 while the rollout window of a zone is open, 0 while it is closed; of zones that have a window or a freeze.",
    labels: [...GROUP, "zone"],
    foreign: true,
  },
  windowOpens: {
    name: "zonewise_rollout_window_opens_timestamp_seconds",
    type: "gauge",
    help: "Unix time at which the rollout window of a zone opens, while it is closed; absent if it never opens again.",
    labels: [...GROUP, "zone"],
    foreign: true,
  },
  requests: {
    name: "rollout_operator_request_duration_seconds",
    type: "histogram",
    help: "Time to serve an inbound request, in seconds.",
    labels: [...ROUTE, "status_code", "ws"],
    buckets: SECONDS_TO_100,
  },
  requestBytes: {
    name: "rollout_operator_request_message_bytes",
    type: "histogram",
    help: "Size of the body of an inbound request.",
    labels: ROUTE,
    buckets: BYTES,
  },
  responseBytes: {
    name: "rollout_operator_response_message_bytes",
    type: "histogram",
    help: "Size of the body of the answer to an inbound request.",
    labels: ROUTE,
    buckets: BYTES,
  },
  requestsInFlight: {
    name: "rollout_operator_inflight_requests",
    type: "gauge",
    help: "Inbound requests being served.",
    labels: ROUTE,
  },
  webhookAnswers: {
    name: "zonewise_webhook_answers_total",
    type: "counter",
    help: "Answers of the admission webhooks, by result and reason.",
    labels: ["webhook", "result", "reason"],
  },
  evictions: {
    name: "rollout_operator_zpdb_eviction_requests_total",
    type: "counter",
    help: "Decisions of disruption budgets, for evictions and for the rollout.",
    kept: "shared",
    labels: ["reason", "status"],
  },
  evictionsInFlight: {
    name: "rollout_operator_zpdb_inflight_eviction_requests",
    type: "gauge",
    help: "Decisions of disruption budgets that are being made.",
    labels: [],
  },
  budgetsObserved: {
    name: "rollout_operator_zpdb_configurations_observed_total",
    type: "counter",
    help: "Disruption budgets that were read.",
    kept: "alone",
    labels: ["result"],
  },
  budgetProtecting: {
    name: "zonewise_disruption_budget_protecting",
    type: "gauge",
    help: "1 while a disruption budget protects its pods, 0 while it does not or that is not seen; with the reason, as in its status.",
    labels: ["namespace", "budget", "reason"],
    foreign: true,
  },
  ...NODE_METRICS,
} as const satisfies Readonly<Record<string, MetricRow>>;
