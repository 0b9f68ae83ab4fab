/**
 * A drill from its first object to its last: watched all the time, every stage within its time.
 *
 *   make -> start -> refusals -> drains -> rollout -> kept -> downscale -> remove
 *             after a stage that fails or is not over in time comes the next one, but after a failed start none
 *
 * A stage resolves with true once it is over, and with false if its condition was not reached.
 */
import { firstOfSignals } from "../../infra/clock.ts";
import { messageOf } from "../../infra/errors.ts";
import type { Patch } from "../../infra/kubernetes/cluster.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import { disruptionBudgets } from "../../infra/kubernetes/custom-resources.ts";
import { runPods, statefulSets } from "../../infra/kubernetes/resources.ts";
import { drain, type Drill, evict, evictAtRandom, statusOf } from "./evict.ts";
import { followPods } from "./follow-pods.ts";
import type { PodFact } from "./history.ts";
import {
  buildBudget,
  buildZone,
  DRAIN,
  DURING_ROLLOUT,
  LABEL,
  REFUSALS,
  REPLICAS,
  REPLICAS_LEFT,
  setName,
  STAGES,
  TEMPLATE,
  ZONES,
  type StageName,
} from "./plan.ts";

type Stage = (drill: Drill) => Promise<boolean>;

const upIn = ({ history }: Drill, zone: string): PodFact[] =>
  [...history.pods.values()].filter((pod) => pod.zone === zone && pod.state === "up");

/** True if every zone has `replicas` pods, and all are up. */
const isWhole = (drill: Drill, replicas = REPLICAS): boolean =>
  drill.history.pods.size === replicas * ZONES.length &&
  ZONES.every((zone) => upIn(drill, setName(drill.run.name, zone)).length === replicas);

const untilWhole = async (drill: Drill, replicas?: number): Promise<boolean> =>
  await drill.history.until(() => isWhole(drill, replicas), drill.signal);

const start: Stage = async (drill) => {
  const { cluster, clock, run } = drill;
  const { namespace } = run;
  await cluster.create(disruptionBudgets, { namespace, body: buildBudget(run, clock.now()) });
  for (const zone of ZONES) await cluster.create(statefulSets, { namespace, body: buildZone(run, zone, clock.now()) });
  return await untilWhole(drill);
};

const refusals: Stage = async (drill) => {
  for (const zone of ZONES) if (!(await refuseBeside(drill, setName(drill.run.name, zone)))) return false;
  return true;
};

/** Evicts a pod of the zone, and tries to evict pods of the others until it is back. */
async function refuseBeside(drill: Drill, zone: string): Promise<boolean> {
  const { clock, history, random, signal } = drill;
  const [first] = upIn(drill, zone);
  if (!first || !(await evictSoon(drill, first))) return false;
  const isBack = (): boolean => isWhole(drill);
  await history.until(() => history.pods.get(first.name)?.state !== "up", signal);
  for (let i = 0; i < REFUSALS.tries && !isBack() && !signal.aborted; i++) {
    const others = [...history.pods.values()].filter((pod) => pod.zone !== zone && pod.state === "up");
    const other = others[Math.floor(random() * others.length)];
    if (other) await evict(drill, other);
    await clock.sleep(REFUSALS.pauseMs, signal);
  }
  return await untilWhole(drill);
}

/** Retries the eviction: a budget may count a pod as unavailable a moment longer than the drill sees it. */
async function evictSoon(drill: Drill, pod: PodFact): Promise<boolean> {
  for (let i = 0; i < DRAIN.tries && !drill.signal.aborted; i++) {
    if ((await evict(drill, pod)) === 201) return true;
    await drill.clock.sleep(DRAIN.pauseMs, drill.signal);
  }
  return false;
}

const drains: Stage = async (drill) => {
  const zones = ZONES.slice(1).map((zone) => setName(drill.run.name, zone));
  const drained = await Promise.all(zones.map(async (zone) => await drain(drill, zone, DRAIN)));
  return drained.every(Boolean) && (await untilWhole(drill));
};

const rollout: Stage = async (drill) => {
  const { history, run, signal } = drill;
  const before = new Map([...history.pods.values()].map(({ zone, revision }) => [zone, revision]));
  const body = { spec: { template: { metadata: { annotations: { [TEMPLATE]: "2" } } } } };
  for (const zone of ZONES) await patch(drill, { name: setName(run.name, zone), body });
  const over = new AbortController();
  const isNew = ({ zone, revision }: PodFact): boolean => before.get(zone) !== revision;
  // The rollout replaces the other pods.
  const evicting = evictAtRandom(drill, { ...DURING_ROLLOUT, over: over.signal }, isNew);
  const isDone = (): boolean => isWhole(drill) && [...history.pods.values()].every(isNew);
  const done = await history.until(isDone, signal);
  over.abort();
  await evicting;
  return done && (await untilWhole(drill));
};

const kept: Stage = async (drill) => {
  const name = setName(drill.run.name, ZONES[0] ?? "");
  const body = { spec: { replicas: REPLICAS_LEFT } };
  const isAllowed = [
    await scale(drill, "a change of the StatefulSet", { name, body }),
    await scale(drill, "its scale", { name, body, subresource: "scale" }),
  ].some(Boolean);
  if (isAllowed) await patch(drill, { name, body: { spec: { replicas: REPLICAS } } });
  return !isAllowed;
};

const downscale: Stage = async (drill) => {
  const name = setName(drill.run.name, ZONES[0] ?? "");
  await patch(drill, { name, body: { metadata: { labels: { "grafana.com/no-downscale": null } } } });
  const isAllowed = await scale(drill, "its leader", { name, body: { spec: { replicas: REPLICAS_LEFT } } });
  return isAllowed && (await untilWhole(drill, REPLICAS_LEFT));
};

/** The reason why the pods are not up, if one of them reports it. */
async function explainStart({ cluster, history, run }: Drill): Promise<string> {
  const up = [...history.pods.values()].filter(({ state }) => state === "up").length;
  const query = { namespace: run.namespace, labelSelector: `${LABEL}=${run.name}` };
  const found = await collect(cluster.list(runPods, query)).catch(() => []);
  const said = found.flatMap(({ status = {} }) => [
    ...(status.containerStatuses ?? []).map(({ state }) => state?.waiting?.message ?? state?.waiting?.reason),
    ...(status.conditions ?? []).filter((one) => one.status === "False").map((one) => one.message),
  ]);
  const why = said.find((text) => text) ?? (found.length === 0 ? "none was created: kubectl get events" : "no reason");
  return `${up} of ${REPLICAS * ZONES.length} pods are up: ${why}`;
}

type Change = Pick<Patch, "name" | "body" | "subresource">;

const patch = async ({ cluster, run, signal }: Drill, change: Change): Promise<string> =>
  await cluster.patch(
    statefulSets,
    { namespace: run.namespace, type: "merge", fieldManager: "zonewise-drill", ...change },
    { signal },
  );

async function scale(drill: Drill, by: string, change: Change): Promise<boolean> {
  const { history } = drill;
  try {
    await patch(drill, change);
    history.add({ what: "scaled", by, status: 200, message: "" });
    return true;
  } catch (error) {
    const status = statusOf(error);
    history.add({ what: "scaled", by, status, message: messageOf(error) });
    return false;
  }
}

const PLAYS: Readonly<Record<StageName, Stage>> = { start, refusals, drains, rollout, kept, downscale };

/**
 * Resolves once all stages are over, or the signal has fired. Rejects if the objects cannot be made. `tell` receives a
 * line for each step.
 */
export async function runDrill(drill: Drill, tell: (text: string) => void): Promise<void> {
  const watched = new AbortController();
  const following = followPods({ ...drill, signal: firstOfSignals(drill.signal, watched.signal) });
  try {
    for (const stage of Object.keys(STAGES) as StageName[]) {
      if (drill.signal.aborted) return;
      const isOver = await runStage(drill, stage, tell);
      if (stage === "start" && !isOver) return;
    }
  } finally {
    watched.abort();
    await following;
  }
}

async function runStage(drill: Drill, stage: StageName, tell: (text: string) => void): Promise<boolean> {
  const { clock, history } = drill;
  const { says, limitMs } = STAGES[stage];
  const over = new AbortController();
  const signal = firstOfSignals(drill.signal, over.signal);
  void clock.sleep(limitMs, signal).then(() => over.abort());
  history.add({ what: "stage", stage, state: "begins" });
  tell(`${stage}: ${says}`);
  const isOver = await PLAYS[stage]({ ...drill, signal }).catch((error: unknown) => {
    if (stage === "start") throw error;
    tell(`${stage}: ${messageOf(error)}`);
    return false;
  });
  over.abort();
  if (stage === "start" && !isOver && !drill.signal.aborted) tell(`start: ${await explainStart(drill)}`);
  history.add({ what: "stage", stage, state: isOver ? "ends" : "overdue" });
  return isOver;
}
