/** The names of the group's objects, and of their kinds. */
export const NAMESPACE = "zonewise";
export const GROUP = "ingester";
export const BUDGET = "ingester";
export const BUDGETS = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
