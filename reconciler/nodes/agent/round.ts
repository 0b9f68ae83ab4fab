/**
 * One round of the agent: gather the facts -> decide -> act. Its memory only saves questions; all state is in the
 * shadow.
 */
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { absent } from "../../../infra/errors.ts";
import { bottlerocketShadows } from "../../../infra/kubernetes/custom-resources.ts";
import type { Log } from "../../../infra/log.ts";
import { readShadow, type Shadow } from "../node.ts";
import { shadowName, type ShadowStatus } from "../shadow.ts";
import { isIdle } from "../state-machine.ts";
import { type AgentSnapshot, type AgentStep, decideAgent, failStatus, reportHost } from "../decide-agent.ts";
import type { CallNodeApi, NodeApiAnswer, NodeApiRoute } from "./call-node-api.ts";
import { type HostTools, isStaged, refreshTarget, stageUpdate } from "./stage-update.ts";

export interface AgentTools extends HostTools {
  readonly cluster: Cluster;
  readonly callApi: CallNodeApi;
  readonly log: Log;
  readonly namespace: string;
  readonly nodeName: string;
  /** The boot that the host runs in. */
  readonly readBootId: () => Promise<string>;
  /** Milliseconds between two checks for updates. */
  readonly refreshMs: number;
  /** Milliseconds from the exclusion from load balancers to the drain; 0 leaves the exclusion out. */
  readonly exclusionMs: number;
  /** Milliseconds after which a reboot that was asked for has not happened. */
  readonly rebootMs: number;
  readonly memory: AgentMemory;
}

/** The memory from round to round; without it the next round asks again. */
interface AgentMemory {
  target?: string | undefined;
  /** On the monotonic clock. */
  refreshedAt?: number;
  /** The wanted state, by its time, for which the node was excluded from load balancers. */
  excludedFor?: string;
}

/** `changed`: the next round follows at once. A number: after as many milliseconds. `rebooting`: the process ends. */
export type RoundResult = "changed" | "idle" | "rebooting" | number;

/**
 * Rejects if the facts could not be gathered or a call was not answered: nothing is reported then, and the next round
 * tries again.
 */
export async function runRound(tools: AgentTools): Promise<RoundResult> {
  const snapshot = await gather(tools);
  return await act(tools, snapshot, decideAgent(snapshot));
}

async function gather(tools: AgentTools): Promise<AgentSnapshot> {
  const version = await tools.host.readVersion();
  const bootId = await tools.readBootId();
  const stored = await readOwnShadow(tools);
  if (stored?.problem !== undefined)
    tools.log.warn("the shadow cannot be read whole", { shadow: stored.name, problem: stored.problem });
  // While an update is under way, the host is not asked for another.
  if (!stored?.status || isIdle(stored)) await refresh(tools, version);
  const { target } = tools.memory;
  return {
    now: tools.clock.now(),
    shadow: stored,
    host: { version, bootId },
    target,
    rebootMs: tools.rebootMs,
  };
}

async function readOwnShadow({ cluster, namespace, nodeName }: AgentTools, call?: Call): Promise<Shadow | undefined> {
  const object = await cluster.get(bottlerocketShadows, { namespace, name: shadowName(nodeName) }, call).catch(absent);
  return object && readShadow(object);
}

async function refresh(tools: AgentTools, version: string): Promise<void> {
  const { memory, clock, refreshMs } = tools;
  if (memory.refreshedAt !== undefined && clock.monotonic() - memory.refreshedAt < refreshMs) return;
  memory.refreshedAt = clock.monotonic();
  memory.target = (await refreshTarget(tools, version)) ?? memory.target;
}

async function act(tools: AgentTools, snapshot: AgentSnapshot, step: AgentStep): Promise<RoundResult> {
  switch (step.step) {
    case "wait":
      return "idle";
    case "create":
      return await call(tools, "create");
    case "report":
      return await put(tools, step.status);
    case "uncordon":
      return await uncordon(tools, step.status);
    case "stage":
      return await stage(tools, snapshot, step.version);
    case "drain":
      return await drainAndReboot(tools, snapshot, step.version);
  }
}

async function put(tools: AgentTools, status: ShadowStatus, ifMatch?: string): Promise<RoundResult> {
  const answer = await tools.callApi("update", { status, ...(ifMatch !== undefined && { ifMatch }) });
  return judge(tools, "update", answer);
}

async function call(tools: AgentTools, route: NodeApiRoute): Promise<RoundResult> {
  return judge(tools, route, await tools.callApi(route));
}

const CONFLICT = 409;
/** Milliseconds until a refused call is worth another try, unless the API says when. */
const AGAIN_MS = 5000;

function judge({ log }: AgentTools, route: NodeApiRoute, { status, text, retryAfterMs }: NodeApiAnswer): RoundResult {
  if (status < 300) return "changed";
  log.warn("the node API refused", { route, status, answer: text.slice(0, 500) });
  return retryAfterMs ?? AGAIN_MS;
}

/**
 * The API does not change a node that is not Ready. The agent still reports that the node is back, and gives the node
 * back with the next state.
 */
async function uncordon(tools: AgentTools, status: ShadowStatus): Promise<RoundResult> {
  const answer = await tools.callApi("uncordon");
  const given = judge(tools, "uncordon", answer);
  const isBack = answer.status === CONFLICT && status.current_state === "RebootedIntoUpdate";
  return given === "changed" || isBack ? await put(tools, status) : given;
}

async function stage(tools: AgentTools, snapshot: AgentSnapshot, version: string): Promise<RoundResult> {
  const { log, stop, memory } = tools;
  const status = snapshot.shadow?.status;
  if (!status) return "idle";
  log.info("staging the update", { version });
  const failure = await stageUpdate(tools, version);
  if (stop.aborted) return "idle";
  if (failure !== undefined) {
    // The version that the host offers by now is reported with the failure: the next attempt is for that one.
    memory.target = (await refreshTarget(tools, snapshot.host.version)) ?? memory.target;
    return await fail(tools, snapshot, failure);
  }
  return await put(tools, { ...reportHost(snapshot, status), current_state: "StagedAndPerformedUpdate" });
}

async function fail(tools: AgentTools, snapshot: AgentSnapshot, reason: string): Promise<RoundResult> {
  const status = snapshot.shadow?.status;
  if (!status) return "idle";
  tools.log.error("the update failed", { reason });
  const { target = status.target_version } = tools.memory;
  return await put(tools, { ...failStatus(snapshot, status, reason), target_version: target });
}

/** One round of evictions; once the node is drained, the reboot. */
async function drainAndReboot(tools: AgentTools, snapshot: AgentSnapshot, version: string): Promise<RoundResult> {
  const staged = await isStaged(tools, version);
  if (staged === "busy") {
    tools.log.info("the host is busy", {});
    return tools.pollMs;
  }
  if (!staged) return await fail(tools, snapshot, `the host would not boot into ${version}`);
  const excluded = await exclude(tools, snapshot);
  if (excluded !== "changed") return excluded;
  const answer = await tools.callApi("cordonAndDrain");
  if (answer.status === 200) return await reboot(tools, snapshot, version);
  tools.log.info("the node is not drained yet", { status: answer.status, answer: answer.text.slice(0, 2000) });
  return answer.retryAfterMs ?? AGAIN_MS;
}

/** Excludes the node from load balancers once for each wanted state, and gives them time to react. */
async function exclude(tools: AgentTools, { shadow }: AgentSnapshot): Promise<RoundResult> {
  const { memory, exclusionMs, clock, stop } = tools;
  const wish = shadow?.spec.state_transition_timestamp ?? "";
  if (exclusionMs === 0 || memory.excludedFor === wish) return "changed";
  const result = await call(tools, "excludeFromLb");
  if (result !== "changed") return result;
  memory.excludedFor = wish;
  await clock.sleep(exclusionMs, stop);
  return stop.aborted ? "idle" : "changed";
}

/**
 * Announces the reboot with the version of the shadow as it is now, and reboots. If the shadow changes in between, the
 * announcement is refused; after it, nothing uncordons the node.
 */
async function reboot(tools: AgentTools, before: AgentSnapshot, version: string): Promise<RoundResult> {
  const { clock, log } = tools;
  const { host } = before;
  const stored = await readOwnShadow(tools);
  const now = clock.now();
  const next: AgentSnapshot = { ...before, now, shadow: stored };
  if (!stored?.status || decideAgent(next).step !== "drain" || tools.stop.aborted) return "changed";
  const at = new Date(now).toISOString();
  const status = { ...reportHost(next, stored.status), rebooting: { boot_id: host.bootId, at } };
  const announced = await put(tools, status, stored.resourceVersion);
  if (announced !== "changed") return announced;
  log.info("rebooting", { version, bootId: host.bootId });
  const begun = await tools.host.act("reboot").catch((error: unknown) => {
    log.info("the host did not answer to the reboot", { error });
    return "begun" as const;
  });
  if (begun === "begun") return "rebooting";
  return await fail(tools, next, begun === "busy" ? "reboot: the host is busy" : begun.refused);
}
