/**
 * The agent of a node with its host and the node API, as a pure function over a value: what its next step makes of the
 * shadow's status, of our cordon and of the host. The agent decides as the product does (`decideAgent`); what comes of
 * the decision is held against the real process (test/reconciler/nodes/agent/agent-step.test.ts).
 *
 *   wanted StagedAndPerformedUpdate: staged -> reported
 *   wanted RebootedIntoUpdate: cordoned -> no pod left: the reboot is announced -> `boot` -> taken back -> uncordoned, reported
 */
import { decideAgent, failStatus, reportHost } from "../../../reconciler/nodes/decide-agent.ts";
import type { ShadowSpec, ShadowStatus } from "../../../reconciler/nodes/shadow.ts";
import { timestamp } from "../objects.ts";

/** A node as its agent finds it. */
export interface AgentNode {
  readonly spec: ShadowSpec;
  /** Undefined before the first report. */
  readonly status: ShadowStatus | undefined;
  readonly host: { readonly version: string; readonly bootId: string };
  /** The version that the host is offered. */
  readonly target: string;
  /** Our cordon is on it. */
  readonly cordoned: boolean;
}

/** What disturbs the step. */
interface AgentTrouble {
  /** Pods that have to leave stay on the node. */
  readonly blocked?: boolean;
  /** What the agent does to its host fails. */
  readonly fails?: boolean;
}

/** Milliseconds after which a reboot that was announced has not happened. */
const REBOOT_MS = 600_000;

/** The node after the agent's next step at `now`; the same value if there is nothing to do. */
export function agentStep(
  node: AgentNode,
  now: number,
  { blocked = false, fails = false }: AgentTrouble = {},
): AgentNode {
  const { spec, status, host, target } = node;
  const shadow = { spec, status };
  const step = decideAgent({ now, shadow, host, target, rebootMs: REBOOT_MS });
  const report = (next: ShadowStatus): AgentNode => ({ ...node, status: stored(next, status, now) });
  switch (step.step) {
    case "create":
    case "wait":
      return node;
    case "report":
      return report(step.status);
    case "uncordon":
      return { ...report(step.status), cordoned: false };
    case "stage":
      if (!status) return node;
      if (fails) return report(failStatus({ now, host }, status, "it failed"));
      return report({ ...reportHost({ host }, status), current_state: "StagedAndPerformedUpdate" });
    case "drain":
      if (!status || (blocked && node.cordoned)) return node;
      if (!node.cordoned) return { ...node, cordoned: true };
      if (fails) return report(failStatus({ now, host }, status, "it failed"));
      return report({ ...reportHost({ host }, status), rebooting: { boot_id: host.bootId, at: timestamp(now) } });
  }
}

/** The node after the reboot that was announced: in the version that was staged, unless the boot loader goes back. */
export function boot(node: AgentNode, bootId: string, rollsBack = false): AgentNode {
  const isStaged = node.status?.current_state === "StagedAndPerformedUpdate";
  const version = isStaged && !rollsBack ? (node.spec.version ?? node.host.version) : node.host.version;
  return { ...node, host: { version, bootId } };
}

export const isAnnounced = ({ status, host }: AgentNode): boolean => status?.rebooting?.boot_id === host.bootId;

/** Plays the agent until there is nothing left to do at once, its host's reboots included. */
export function playAgent(node: AgentNode, now: number, bootId: string): AgentNode {
  const next = isAnnounced(node) ? boot(node, bootId) : agentStep(node, now);
  return next === node ? node : playAgent(next, now, bootId);
}

/** The API adds when a boot was reported first, and forgets the drain of an attempt that is over. */
function stored(next: ShadowStatus, before: ShadowStatus | undefined, now: number): ShadowStatus {
  const since = next.boot_id === before?.boot_id ? before?.boot_reported_at : timestamp(now);
  const { rebooting, ...rest } = next;
  return {
    ...rest,
    ...(since !== undefined && { boot_reported_at: since }),
    ...(rebooting && { rebooting }),
    ...(before?.drain && next.current_state !== "Idle" && { drain: before.drain }),
  };
}
