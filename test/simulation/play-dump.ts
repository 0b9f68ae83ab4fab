/** Plays on from a dump of a real cluster: the same processes as in a history, without faults and people. */
import { dig, listOf, textOf } from "../emulator/objects.ts";
import { nameOfGroup } from "../../reconciler/group-status/name.ts";
import { drawFrom } from "./draw.ts";
import { type Dump, loadDump } from "./from-dump.ts";
import { NAMESPACE, ROLLOUT_GROUPS } from "./names.ts";
import { callers } from "./network.ts";
import { seedPlatform } from "./platform.ts";
import { createSchedule } from "./schedule.ts";
import { CALM, type Shape } from "./shape.ts";
import { createWorld } from "./world.ts";

export interface DumpPlayed {
  /** The phase of the group at the end, and its sentence. */
  readonly phase: string;
  readonly message: string;
  readonly isReady: boolean;
  readonly simulatedMs: number;
  /** Names of the pods that the reconciler deleted, in order. */
  readonly replaced: readonly string[];
}

export interface PlayDumpOptions {
  readonly seed?: number;
  readonly forMs?: number;
  /** Receives what is done and said, line by line. */
  readonly tell: (line: string) => void;
  /** Also the calls and the lines of logs. */
  readonly all?: boolean;
}

const FOR_MS = 4 * 3_600_000;
/** A group that is ready stays so for so long, and is read so often. */
const REST_MS = 60_000;
const LOOK_MS = 10_000;

/** Nothing of a group of its own, and no fault. */
const EMPTY: Shape = {
  zones: [],
  replicas: 0,
  maxUnavailable: 1,
  accelerates: false,
  budget: undefined,
  partitioned: false,
  followers: false,
  mirrored: undefined,
  tracker: false,
  prepared: false,
  secondsBetween: 0,
  webhookServers: 1,
  skewMs: 0,
  suspends: false,
  pageSize: undefined,
  readyAfterMs: 0,
  exitAfterMs: 0,
  gate: undefined,
  phased: undefined,
  certificate: undefined,
  ignore: false,
  nodes: undefined,
  windows: undefined,
  deletions: undefined,
  requests: undefined,
  mistakes: undefined,
  unreadable: undefined,
  incidents: undefined,
  ...CALM,
  actions: 0,
  bursts: [],
  troubledMs: 0,
};

/** Until the group is ready and stays so, or the time is over. */
export async function playDump(
  dump: Dump,
  { seed = 0, forMs = FOR_MS, tell, all }: PlayDumpOptions,
): Promise<DumpPlayed> {
  const draw = drawFrom(seed);
  const restore = seedPlatform(draw);
  try {
    const loaded = loadDump(dump);
    const schedule = createSchedule(loaded.takenAt);
    const say = (actor: string, text: string): void =>
      tell(`${((schedule.now() - loaded.takenAt) / 1000).toFixed(3).padStart(9)} ${actor.padEnd(13)} ${text}`);
    for (const note of loaded.notes) say("note", note);
    const replaced: string[] = [];
    const world = createWorld({
      schedule,
      draw,
      nodeDraw: draw,
      shape: EMPTY,
      loaded,
      secret: undefined,
      strikes: () => false,
      onHandshake() {},
      onHost() {},
      onReview() {},
      onArrival() {},
      onUnanswered() {},
      onAnswer() {},
      onCall: (caller, _, status) => all && say(caller.actor, `${caller.call} -> ${status}`),
      onProcess: (name, text) => all && say(name, text),
    });
    world.calm();
    world.store.subscribe(({ type, resource, object }) => {
      const actor = callers.getStore()?.actor;
      const { name, deletionTimestamp } = object.metadata;
      if (resource === "events" && type === "ADDED")
        say("event", `${String(object["reason"])}: ${String(object["message"])}`);
      if (resource !== "pods" || actor === undefined || deletionTimestamp === undefined || type !== "MODIFIED") return;
      replaced.push(name);
      say(actor, `deletes pod ${name}`);
    });
    const statusOf = () => world.store.get(ROLLOUT_GROUPS, NAMESPACE, nameOfGroup(loaded.group))?.["status"];
    const isReady = (): boolean =>
      listOf(dig(statusOf(), "conditions")).some(
        (one) => dig(one, "type") === "Ready" && dig(one, "status") === "True",
      );
    const end = loaded.takenAt + forMs;
    let readySince = Infinity;
    while (schedule.now() < end && schedule.now() - readySince < REST_MS) {
      await schedule.runUntil(Math.min(end, schedule.now() + LOOK_MS));
      readySince = isReady() ? Math.min(readySince, schedule.now()) : Infinity;
    }
    const status = statusOf();
    world.stop();
    return {
      phase: textOf(dig(status, "phase")) ?? "none",
      message: textOf(dig(status, "message")) ?? "",
      isReady: isReady(),
      simulatedMs: schedule.now() - loaded.takenAt,
      replaced,
    };
  } finally {
    restore();
  }
}
