/**
 * Decides the agent's next step for the wanted state (`spec`) and the reported one (`status`), by `state-machine.ts`.
 * The first rule with an opinion wins.
 *
 * The boot that an update began in is in the status: a host that came back in a wrong version is not drained again
 *.
 */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { firstOf, type Rule } from "../../infra/rules.ts";
import { MAX_CRASHES, type ShadowSpec, type ShadowStatus } from "./shadow.ts";
import { type AgentAction, moveFor } from "./state-machine.ts";

export interface AgentSnapshot {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Undefined if there is none. */
  readonly shadow: { readonly spec: ShadowSpec; readonly status: ShadowStatus | undefined } | undefined;
  readonly host: { readonly version: string; readonly bootId: string };
  /** The version that the host chose at its last check for updates; undefined if that is not known. */
  readonly target: string | undefined;
  /** Milliseconds after which a reboot that was asked for has not happened. */
  readonly rebootMs: number;
}

export type AgentStep =
  | { readonly step: "create" }
  /** Nothing to do until the shadow or the host changes. */
  | { readonly step: "wait" }
  | { readonly step: "report"; readonly status: ShadowStatus }
  | { readonly step: "stage"; readonly version: string }
  | { readonly step: "drain"; readonly version: string }
  /** Give the node back, then report. */
  | { readonly step: "uncordon"; readonly status: ShadowStatus };

/** A snapshot with a status. */
interface Reported extends AgentSnapshot {
  readonly spec: ShadowSpec;
  readonly status: ShadowStatus;
}

type AgentRule = Rule<[Reported], AgentStep>;

const wait: AgentStep = { step: "wait" };

/** The status after an attempt has failed: it counts, and the controller starts the next one after a back-off. */
export function failStatus(
  { now, host }: Pick<AgentSnapshot, "now" | "host">,
  status: ShadowStatus,
  reason: string,
): ShadowStatus {
  return {
    ...reportHost({ host }, status),
    current_state: "ErrorReset",
    crash_count: Math.min(status.crash_count + 1, MAX_CRASHES),
    state_transition_failure_timestamp: formatTimestamp(now),
    failure_reason: reason,
    rebooting: null,
  };
}

/** The status with the facts of the host, without the fields that the API writes. */
export function reportHost({ host }: Pick<AgentSnapshot, "host">, stored: ShadowStatus): ShadowStatus {
  const { drain: _, boot_reported_at: __, ...status } = stored;
  return { ...status, current_version: host.version, boot_id: host.bootId };
}

const hasRebooted = ({ status, host }: Reported): boolean =>
  typeof status.boot_id === "string" && status.boot_id !== host.bootId;
const isWantedVersion = ({ spec, host }: Reported): boolean => host.version === spec.version;

/** A reboot was announced, and may come at any moment. */
const reboots: AgentRule = ({ status, host, now, rebootMs }) => {
  const { rebooting } = status;
  if (!rebooting || rebooting.boot_id !== host.bootId) return undefined;
  return now < (parseTimestamp(rebooting.at) ?? 0) + rebootMs ? wait : undefined;
};

/** The boot loader went back, or the host was rebooted into something else. */
const rolledBack: AgentRule = (facts) => {
  const { status, spec, host } = facts;
  const isUnderWay = status.current_state === "StagedAndPerformedUpdate" && spec.state !== "Idle";
  if (!isUnderWay || !hasRebooted(facts) || isWantedVersion(facts)) return undefined;
  return {
    step: "report",
    status: failStatus(
      facts,
      status,
      `the host came back in ${host.version} instead of ${spec.version ?? "its update"}`,
    ),
  };
};

/** The announcement is taken back before anything else: until then the node is not given back. */
const returned: AgentRule = (facts) => {
  const { status, host, spec } = facts;
  const isOver = status.rebooting && (status.rebooting.boot_id !== host.bootId || spec.state !== "RebootedIntoUpdate");
  return isOver ? { step: "report", status: { ...reportHost(facts, status), rebooting: null } } : undefined;
};

/** A status that is reached is kept up to date. */
const reached: AgentRule = (facts) => {
  const { status, spec, target } = facts;
  if (status.current_state !== spec.state) return undefined;
  const { current_version: before, target_version: targetBefore, boot_id: bootBefore } = status;
  const fresh = reportHost(facts, status);
  const next = spec.state === "Idle" ? { ...fresh, target_version: target ?? targetBefore } : fresh;
  const isSame = next.current_version === before && next.target_version === targetBefore && next.boot_id === bootBefore;
  return isSame ? wait : { step: "report", status: next };
};

type Act = (facts: Reported) => AgentStep;

/** The node is given back, and the wanted state reported then. */
const giveBack: Act = (facts) => ({
  step: "uncordon",
  status: { ...reportHost(facts, facts.status), current_state: facts.spec.state },
});

/** The update is over and counts as a success; any other way to Idle keeps the count of failures. */
const recover: Act = (facts) => {
  const status = reportHost(facts, facts.status);
  const target = facts.target ?? status.target_version;
  const isSuccess = status.current_state === "MonitoringUpdate";
  const cleared = isSuccess && { crash_count: 0, state_transition_failure_timestamp: null, failure_reason: null };
  return { step: "uncordon", status: { ...status, ...cleared, target_version: target, current_state: "Idle" } };
};

const stage: Act = ({ spec }) => (spec.version ? { step: "stage", version: spec.version } : wait);

const reboot: Act = (facts) => {
  if (isWantedVersion(facts)) return giveBack(facts);
  return facts.spec.version ? { step: "drain", version: facts.spec.version } : wait;
};

const ACTIONS: Readonly<Record<AgentAction, Act>> = { stage, reboot, giveBack, recover };

const act: AgentRule = (facts) => {
  const move = moveFor(facts.spec.state, facts.status.current_state);
  return move.by === "agent" ? ACTIONS[move.action](facts) : wait;
};

const decideReported = firstOf<[Reported], AgentStep>([reboots, rolledBack, returned, reached, act]);

/** The next step of the agent; the same snapshot always gives the same step. */
export function decideAgent(snapshot: AgentSnapshot): AgentStep {
  const { shadow, host, target } = snapshot;
  if (!shadow) return { step: "create" };
  const { spec, status } = shadow;
  if (status) return decideReported({ ...snapshot, spec, status }) ?? wait;
  const first = {
    current_version: host.version,
    target_version: target ?? host.version,
    current_state: "Idle",
    crash_count: 0,
  } as const;
  return { step: "report", status: { ...first, boot_id: host.bootId } };
}
