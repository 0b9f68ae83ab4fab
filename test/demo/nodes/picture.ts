/**
 * The picture of node updates as lines of styled spans; a pure function of what is stored of the nodes.
 *
 *     node updates   2 of 3 nodes updated   18.4 s                  title
 *
 *     node-1   1.1.0   ● ● ●   up to date                           one row a node: its version, its pods, what happens to it
 *     node-2   1.0.0           rebooting                cordoned
 *
 *     node-2: the update from 1.0.0 to 1.1.0 starts                 the last Event
 */
import type { ShadowSpec, ShadowStatus } from "../../../reconciler/nodes/shadow.ts";
import { formatSeconds, type Line, type Picture, type Span, type Style } from "../picture.ts";

export interface DrawnNode {
  readonly name: string;
  readonly ready: boolean;
  readonly cordoned: boolean;
  /** Undefined before the agent has reported. */
  readonly shadow: { readonly spec: ShadowSpec; readonly status: ShadowStatus | undefined } | undefined;
  /** Its pods but the agent's, in order. */
  readonly pods: readonly ("ready" | "unready" | "terminating")[];
}

interface NodesPicture {
  readonly nodes: readonly DrawnNode[];
  /** The version that the hosts offer. */
  readonly wanted: string;
  readonly message: string;
  /** Milliseconds since the first update was offered. */
  readonly elapsedMs: number;
}

const PODS = {
  ready: { text: "● ", style: "good" },
  unready: { text: "○ ", style: "busy" },
  terminating: { text: "✕ ", style: "bad" },
} as const satisfies Record<string, Span>;

type Activity = readonly [text: string, style: Style];

/** By wanted and reported state, as docs/reference/node-policy.md lists them. */
const ACTIVITIES: Readonly<Record<string, (status: ShadowStatus, pods: number) => Activity>> = {
  "Idle Idle": ({ current_version, target_version }) =>
    current_version === target_version ? ["up to date", "good"] : [`waits, ${target_version} is there`, "faint"],
  "StagedAndPerformedUpdate Idle": ({ target_version }) => [`stages ${target_version}`, "busy"],
  "StagedAndPerformedUpdate StagedAndPerformedUpdate": () => ["staged: would a drain succeed?", "busy"],
  "RebootedIntoUpdate StagedAndPerformedUpdate": ({ rebooting, current_version, target_version }, pods) => {
    if (current_version === target_version) return ["is back", "busy"];
    if (rebooting) return ["reboots", "bad"];
    return [pods > 0 ? "is being drained" : "is drained", "busy"];
  },
  "RebootedIntoUpdate RebootedIntoUpdate": () => ["is back", "busy"],
  "MonitoringUpdate RebootedIntoUpdate": () => ["is back", "busy"],
  "MonitoringUpdate MonitoringUpdate": () => ["checking that its pods are back", "busy"],
  "Idle MonitoringUpdate": () => ["is done", "good"],
};

function describeActivity({ ready, shadow, pods }: Pick<DrawnNode, "ready" | "shadow" | "pods">): Activity {
  if (!ready) return ["is down", "bad"];
  if (!shadow?.status) return ["its agent has not reported", "faint"];
  const { spec, status } = shadow;
  return ACTIVITIES[`${spec.state} ${status.current_state}`]?.(status, pods.length) ?? ["failed", "bad"];
}

export const isUpdated = ({ shadow, cordoned }: DrawnNode, wanted: string): boolean =>
  !cordoned &&
  shadow?.spec.state === "Idle" &&
  shadow.status?.current_state === "Idle" &&
  shadow.status.current_version === wanted;

export function drawNodes({ nodes, wanted, message, elapsedMs }: NodesPicture): Picture {
  const updated = nodes.filter((node) => isUpdated(node, wanted)).length;
  const done: Span = {
    text: `${updated} of ${nodes.length} nodes updated`,
    style: updated === nodes.length ? "good" : "busy",
  };
  return {
    title: [
      { text: "node updates", style: "strong" },
      { text: "   " },
      done,
      { text: `   ${formatSeconds(elapsedMs)}` },
    ],
    rows: nodes.map((node) => drawRow(node, wanted, Math.max(...nodes.map(({ pods }) => pods.length)))),
    message: [{ text: message, style: "faint" }],
  };
}

function drawRow(node: DrawnNode, wanted: string, most: number): Line {
  const version = node.shadow?.status?.current_version ?? "?";
  const [text, style] = describeActivity(node);
  return [
    { text: node.name, style: "strong" },
    { text: "  " },
    { text: version, style: version === wanted ? "strong" : "faint" },
    { text: "   " },
    ...node.pods.map((pod) => PODS[pod]),
    { text: "  ".repeat(most - node.pods.length + 1) },
    { text: node.cordoned ? text.padEnd(32) : text, style },
    ...(node.cordoned ? [{ text: "cordoned", style: "busy" as const }] : []),
  ];
}
