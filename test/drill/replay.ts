/**
 * Replays a history of pods and evictions: which pods were taken, and which others were away at that moment. It shares
 * no rule with the product, and uses only the API server's order of the pods' changes. Pure.
 *
 *   up --deleted, evicted--> taken: away until a pod of its name is up
 *   up --not ready by itself--> failed: away until it is up
 */
import type { Entry, PodFact } from "./history.ts";
import type { StageName } from "./plan.ts";

/** A pod that was up and is not. */
export interface Away {
  readonly name: string;
  readonly zone: string;
  /** The time when it went away, milliseconds since the drill began. */
  readonly since: number;
  /** Somebody has deleted or evicted it; otherwise it failed. */
  readonly taken: boolean;
}

/** A pod that was up is taken. */
export interface Taking {
  readonly at: number;
  readonly stage: StageName;
  readonly pod: PodFact;
  /** The pods that are away already. */
  readonly others: readonly Away[];
}

export interface Asked {
  readonly at: number;
  readonly stage: StageName;
  readonly pod: Pick<PodFact, "name" | "zone" | "uid">;
  /** Undefined if the drill did not wait for the answer; 0 if none came. */
  readonly status: number | undefined;
  readonly message: string;
  /** A pod of another zone was away from before it was sent until after it was answered, as the drill saw it. */
  readonly whileAway: boolean;
}

export interface Replay {
  readonly takings: readonly Taking[];
  readonly asked: readonly Asked[];
  /** The number of gaps, in which changes were not seen. */
  readonly gaps: number;
  /** The pods as the drill saw them at the end. */
  readonly pods: readonly PodFact[];
}

interface State {
  readonly pods: Map<string, PodFact>;
  readonly away: Map<string, Away>;
  /** The evictions without an answer, and the pods that were away in other zones when they were sent. */
  readonly open: Map<number, { readonly asked: Asked; readonly awayThen: readonly Away[] }>;
  readonly takings: Taking[];
  readonly asked: Asked[];
  stage: StageName;
  gaps: number;
}

/**
 * `staying`: the number of pods of each zone that stay; from the downscale's stage on, further pods do not come back.
 */
export function replay(entries: readonly Entry[], staying: number): Replay {
  const state: State = {
    pods: new Map(),
    away: new Map(),
    open: new Map(),
    takings: [],
    asked: [],
    stage: "start",
    gaps: 0,
  };
  for (const entry of entries) follow(state, entry, staying);
  const unanswered = [...state.open.values()].map(({ asked }) => asked);
  const { takings, gaps } = state;
  return { takings, gaps, asked: [...state.asked, ...unanswered], pods: [...state.pods.values()] };
}

function follow(state: State, entry: Entry, staying: number): void {
  switch (entry.what) {
    case "stage":
      state.stage = entry.stage;
      return;
    case "pods":
      return relist(state, entry);
    case "pod":
      return change(state, entry, staying);
    case "asked":
      return ask(state, entry);
    case "answered":
      return answer(state, entry);
    case "scaled":
  }
}

type EntryOf<W extends Entry["what"]> = Extract<Entry, { readonly what: W }>;

/** After a gap it is unknown why a pod is away: it counts as failed at this moment, and the gap is counted. */
function relist(state: State, { at, pods, gap }: EntryOf<"pods">): void {
  if (gap) state.gaps++;
  const found = new Map(pods.map((pod) => [pod.name, pod]));
  for (const before of state.pods.values())
    if (!found.has(before.name)) found.set(before.name, { ...before, state: "gone" });
  for (const pod of found.values()) {
    const before = state.pods.get(pod.name);
    if (pod.state === "up") state.away.delete(pod.name);
    else if (before?.state === "up")
      state.away.set(pod.name, { name: pod.name, zone: pod.zone, since: at, taken: false });
    keep(state, pod);
  }
}

const keep = ({ pods }: State, pod: PodFact): void =>
  void (pod.state === "gone" ? pods.delete(pod.name) : pods.set(pod.name, pod));

function change(state: State, { at, pod }: EntryOf<"pod">, staying: number): void {
  const before = state.pods.get(pod.name);
  const others = [...state.away.values()].filter(({ name }) => name !== pod.name);
  const taken = before && isTaken(before, pod);
  if (taken) state.takings.push({ at, stage: state.stage, pod: before, others });
  if (taken || before?.state === "up")
    state.away.set(pod.name, { name: pod.name, zone: pod.zone, since: at, taken: taken === true });
  if (pod.state === "up" || isDismissed(state, pod, staying)) state.away.delete(pod.name);
  keep(state, pod);
}

const isTaken = (before: PodFact, now: PodFact): boolean =>
  before.state === "up" && (now.uid !== before.uid || now.state === "leaving" || now.state === "gone");

/** True if the pod was removed by the downscale, so that its return is not expected. */
const isDismissed = ({ stage }: State, { state, ordinal }: PodFact, staying: number): boolean =>
  state === "gone" && stage === "downscale" && ordinal >= staying;

const elsewhere = ({ away }: State, zone: string): Away[] => [...away.values()].filter((one) => one.zone !== zone);

function ask(state: State, { at, id, pod }: EntryOf<"asked">): void {
  const awayThen = elsewhere(state, pod.zone);
  const { stage } = state;
  const asked = { at, stage, pod, status: undefined, message: "", whileAway: false };
  state.open.set(id, { asked, awayThen });
}

function answer(state: State, { id, status, message }: EntryOf<"answered">): void {
  const found = state.open.get(id);
  if (!found) return;
  state.open.delete(id);
  const { awayThen, asked } = found;
  const still = elsewhere(state, asked.pod.zone);
  const whileAway = awayThen.some((one) => still.some(({ name, since }) => name === one.name && since === one.since));
  state.asked.push({ ...asked, status, message, whileAway });
}
