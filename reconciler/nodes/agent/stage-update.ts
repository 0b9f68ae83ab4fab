/**
 * Brings the host to a staged update, action by action. It may be ended at any moment: the next call continues from what
 * the host reports.
 */
import type { Clock } from "../../../infra/clock.ts";
import type { HostApi } from "./host-api.ts";
import { type HostAction, nextHostStep, type UpdateStatus, whyFailed } from "../host-updates.ts";

export interface HostTools {
  readonly host: HostApi;
  readonly clock: Clock;
  /** Milliseconds between two reads of a busy host. */
  readonly pollMs: number;
  /** Milliseconds that one action may take, such as a slow download. */
  readonly actionMs: number;
  readonly stop: AbortSignal;
}

/** Refresh, deactivate, prepare, activate, and a margin for actions of others in between. */
const MAX_ACTIONS = 8;

/**
 * Resolves with the reason of the failure, or with undefined once `wanted` boots next; rejects if the host does not
 * answer.
 */
export async function stageUpdate(tools: HostTools, wanted: string): Promise<string | undefined> {
  let asked: HostAction | undefined;
  for (let actions = 0; actions < MAX_ACTIONS && !tools.stop.aborted; actions++) {
    const result = await takeAction(tools, wanted, asked);
    if ("end" in result) return result.end;
    asked = result.asked;
  }
  return tools.stop.aborted ? "the agent was stopped" : `the update was not staged after ${MAX_ACTIONS} actions`;
}

/** The end of the staging, with the reason if it failed; or the action that has begun. */
type Taken = { readonly end: string | undefined } | { readonly asked: HostAction | undefined };

/** Reads how the last action has ended, and begins the next one. */
async function takeAction(tools: HostTools, wanted: string, asked: HostAction | undefined): Promise<Taken> {
  const status = await awaitStatus(tools);
  if (status === "busy") return { end: `the host has been busy for ${tools.actionMs / 1000} s` };
  const failure = asked && whyFailed(asked, status);
  if (failure !== undefined) return { end: failure };
  const step = nextHostStep(status, wanted);
  if ("done" in step) return { end: undefined };
  if ("fail" in step) return { end: step.fail };
  const begun = await tools.host.act(step.act);
  if (typeof begun === "object") return { end: begun.refused };
  return { asked: begun === "begun" ? step.act : undefined };
}

/**
 * The version that the host chooses after a check for updates, the one that runs if it chooses none; undefined if it was
 * busy or did not find out.
 */
export async function refreshTarget(tools: HostTools, running: string): Promise<string | undefined> {
  if ((await tools.host.act("refresh")) !== "begun") return undefined;
  const status = await awaitStatus(tools);
  return status === undefined || status === "busy" || whyFailed("refresh", status) !== undefined
    ? undefined
    : (status.chosen_update?.version ?? running);
}

/** True if `wanted` boots next; `busy` while an action runs, perhaps another client's. */
export async function isStaged({ host }: Pick<HostTools, "host">, wanted: string): Promise<boolean | "busy"> {
  const status = await host.readUpdates();
  return status === "busy" ? status : status !== undefined && "done" in nextHostStep(status, wanted);
}

async function awaitStatus({
  host,
  clock,
  pollMs,
  actionMs,
  stop,
}: HostTools): Promise<UpdateStatus | "busy" | undefined> {
  const start = clock.monotonic();
  for (;;) {
    const status = await host.readUpdates();
    if (status !== "busy" || clock.monotonic() - start >= actionMs || stop.aborted) return status;
    await clock.sleep(pollMs, stop);
  }
}
