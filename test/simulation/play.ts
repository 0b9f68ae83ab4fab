/** One history: the seed draws a world, plays its troubled time, sets it right, and both oracles judge. */
import { createHash } from "node:crypto";
import { type Fields, fieldsOf, textOf } from "../emulator/objects.ts";
import { drawFrom } from "./draw.ts";
import { callers } from "./network.ts";
import { setActions, setRight } from "./people.ts";
import { seedPlatform } from "./platform.ts";
import { createSafety } from "./safety.ts";
import { createSchedule } from "./schedule.ts";
import { drawShape, NAMESPACE, type Shape } from "./shape.ts";
import { findUnsettled, isUnrest } from "./stability.ts";
import { createWorld, type World } from "./world.ts";

const takenAt = (spec: Fields): number => Date.parse(textOf(spec["acquireTime"]) ?? "");

export interface History {
  readonly seed: number;
  readonly shape: Shape;
  /** What must not have happened, in words; empty for a good history. */
  readonly violations: readonly string[];
  /** Of all that happened, in order: the same for the same seed. */
  readonly digest: string;
  readonly simulatedMs: number;
  readonly events: number;
  readonly calls: number;
  /** Fault and call site of each fault that happened, counted. */
  readonly reached: ReadonlyMap<string, number>;
}

export interface PlayOptions {
  /** Receives each line of the history. */
  readonly trace?: (line: string) => void;
  /** Milliseconds in which a settled world is watched; ten minutes by default. */
  readonly restMs?: number;
}

/** In this time everything settles once the trouble has ended; it is looked at every `LOOK_MS`. */
const SETTLE_MS = 900_000;
const LOOK_MS = 20_000;
/** Statuses are written this much later at most: a budget's conditions have 30 s. */
const LATE_MS = 60_000;
/** Settled, it stays so. */
const REST_MS = 600_000;

export async function play(seed: number, options: PlayOptions = {}): Promise<History> {
  const draw = drawFrom(seed);
  const restore = seedPlatform(draw);
  try {
    return await playSeeded(seed, draw, options);
  } finally {
    restore();
  }
}

async function playSeeded(
  seed: number,
  draw: ReturnType<typeof drawFrom>,
  { trace, restMs = REST_MS }: PlayOptions,
): Promise<History> {
  const schedule = createSchedule();
  const shape = drawShape(draw);
  const digest = createHash("sha256");
  const violations: string[] = [];
  const reached = new Map<string, number>();
  const startedAt = schedule.now();
  let calls = 0;
  const tell = (actor: string, text: string): void => {
    const line = `${((schedule.now() - startedAt) / 1000).toFixed(3).padStart(9)} ${actor.padEnd(13)} ${text}`;
    digest.update(line);
    trace?.(line);
  };
  const violated = (what: string): void => {
    violations.push(what);
    tell("VIOLATION", what);
  };
  tell("world", JSON.stringify(shape));
  const safety = createSafety({
    shape,
    violated,
    now: schedule.now,
    leader: () => {
      const spec = fieldsOf(world.store.get("leases.coordination.k8s.io", NAMESPACE, "zonewise-reconciler")?.["spec"]);
      const holder = textOf(spec["holderIdentity"]);
      return holder ? { holder, sinceMs: schedule.now() - takenAt(spec) } : undefined;
    },
    isPrepared: (uid) => world.prepared.has(uid),
    listPods: (zone) =>
      world.store.list("pods", NAMESPACE).filter(({ metadata }) => metadata.labels?.["name"] === zone),
  });
  const world: World = createWorld({
    schedule,
    draw,
    shape,
    onCall: (caller, { method, path, body }, status) => {
      calls++;
      tell(caller.actor, `${caller.call} -> ${status}`);
      if (status < 300) safety.onRequest(caller, method, path, body.toString());
    },
    onReview: safety.onReview,
    onProcess: tell,
    onFault: (fault, site) => {
      const cell = `${fault} at ${site}`;
      reached.set(cell, (reached.get(cell) ?? 0) + 1);
      tell("fault", cell);
    },
  });
  let unrest = "";
  world.store.subscribe((event) => {
    const caller = callers.getStore();
    const { name, uid, deletionTimestamp } = event.object.metadata;
    tell(
      "store",
      `${event.type} ${event.resource} ${name} ${uid.slice(0, 4)}${deletionTimestamp ? " terminating" : ""}`,
    );
    safety.onEvent(event, caller);
    if (isUnrest(event)) unrest = `${event.type} ${event.resource} ${name} by ${caller?.actor ?? "a controller"}`;
  });
  const people = { schedule, draw, shape, world };
  const ended = setActions(people, (name) => tell("people", name));
  let events = await schedule.runUntil(startedAt + shape.troubledMs);
  tell("world", "faults and people stop");
  world.calm();
  let isRight = false;
  void ended()
    .then(() => setRight(people))
    .then(() => (isRight = true));
  const end = schedule.now() + SETTLE_MS;
  let unsettled: readonly string[] = [];
  do {
    events += await schedule.runUntil(schedule.now() + LOOK_MS);
    unsettled = isRight ? findUnsettled(world, shape) : ["people still set things right"];
  } while (unsettled.length > 0 && schedule.now() < end);
  for (const what of unsettled) violated(`not settled: ${what}`);
  events += await schedule.runUntil(schedule.now() + LATE_MS);
  unrest = "";
  events += await schedule.runUntil(schedule.now() + restMs);
  if (unrest !== "") violated(`not at rest: ${unrest}`);
  world.stop();
  return {
    seed,
    shape,
    violations,
    digest: digest.digest("hex").slice(0, 16),
    simulatedMs: schedule.now() - startedAt,
    events,
    calls,
    reached,
  };
}
