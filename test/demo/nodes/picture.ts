/**
 * A node as a row: its version, its pods, what happens to it; a pure function of what is stored of it.
 *
 *     node-2  1.0.0  ● ● ✕  is being drained, cordoned
 */
import type { ShadowSpec, ShadowStatus } from "../../../reconciler/nodes/shadow.ts";

export interface DrawnNode {
  readonly name: string;
  readonly ready: boolean;
  readonly cordoned: boolean;
  /** Undefined before the agent has reported. */
  readonly shadow: { readonly spec: ShadowSpec; readonly status: ShadowStatus | undefined } | undefined;
  /** Its pods but the agent's, in order. */
  readonly pods: readonly ("ready" | "unready" | "terminating")[];
}

const PODS = { ready: "●", unready: "○", terminating: "✕" } as const;

/** By wanted and reported state, as docs/reference/node-policy.md lists them. */
const ACTIVITIES: Readonly<Record<string, (status: ShadowStatus, pods: number) => string>> = {
  "Idle Idle": ({ current_version, target_version }) =>
    current_version === target_version ? "up to date" : `waits, ${target_version} is there`,
  "StagedAndPerformedUpdate Idle": ({ target_version }) => `stages ${target_version}`,
  "StagedAndPerformedUpdate StagedAndPerformedUpdate": () => "staged: would a drain succeed?",
  "RebootedIntoUpdate StagedAndPerformedUpdate": ({ rebooting, current_version, target_version }, pods) => {
    if (current_version === target_version) return "is back";
    if (rebooting) return "reboots";
    return pods > 0 ? "is being drained" : "is drained";
  },
  "RebootedIntoUpdate RebootedIntoUpdate": () => "is back",
  "MonitoringUpdate RebootedIntoUpdate": () => "is back",
  "MonitoringUpdate MonitoringUpdate": () => "checking that its pods are back",
  "Idle MonitoringUpdate": () => "is done",
};

function describeActivity({ ready, shadow, pods }: DrawnNode): string {
  if (!ready) return "is down";
  if (!shadow?.status) return "its agent has not reported";
  const { spec, status } = shadow;
  return ACTIVITIES[`${spec.state} ${status.current_state}`]?.(status, pods.length) ?? "failed";
}

export const isUpdated = ({ shadow, cordoned }: DrawnNode, wanted: string): boolean =>
  !cordoned &&
  shadow?.spec.state === "Idle" &&
  shadow.status?.current_state === "Idle" &&
  shadow.status.current_version === wanted;

export function drawNode(node: DrawnNode): string {
  const { name, shadow, pods, cordoned } = node;
  const activity = `${describeActivity(node)}${cordoned ? ", cordoned" : ""}`;
  const marks = pods.map((pod) => PODS[pod]).join(" ");
  return [name, shadow?.status?.current_version ?? "?", marks, activity].filter((part) => part !== "").join("  ");
}
