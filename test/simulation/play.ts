/** One history: the seed draws a world, plays its troubled time, sets it right, and both oracles judge. */
import { createHash } from "node:crypto";
import { secretObject } from "./certificates/trust.ts";
import { drawFrom } from "./draw.ts";
import { createFaults } from "./faults.ts";
import { setIncidents } from "./incidents/incidents.ts";
import { setMistakes } from "./mistakes.ts";
import { callers } from "./network.ts";
import { TWIN } from "./names.ts";
import { ONE_SHOT_MINUTES } from "./nodes/shape.ts";
import { createOracles } from "./oracles/oracles.ts";
import { setActions, setRight } from "./people.ts";
import { seedPlatform } from "./platform.ts";
import { reduceShape, type Reduction, WHOLE_HISTORY } from "./reduction.ts";
import { createSchedule } from "./schedule.ts";
import { delayMs, type Shape } from "./shape.ts";
import { findLeasesOfTheDead, findUnsettled, isUnrest } from "./oracles/stability.ts";
import { drawWholeShape } from "./whole-shape.ts";
import { setTwin } from "./twin.ts";
import { createWorld, type World } from "./world.ts";

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
  /** "fault at call site" of each fault that could happen, and how often it did. */
  readonly cells: ReadonlyMap<string, number>;
  /** Ids of the faults that happened. */
  readonly strikes: readonly string[];
  /** Positions of the actions that people began. */
  readonly actions: readonly number[];
}

export interface PlayOptions {
  /** Receives each line of the history. */
  readonly trace?: (line: string) => void;
  /** Milliseconds in which a settled world is watched; ten minutes by default. */
  readonly restMs?: number;
  /** What of the history is left out. */
  readonly reduction?: Reduction;
  /** Ends the history with its first violation. */
  readonly untilViolation?: boolean;
}

/** In this time everything settles once the trouble has ended; it is looked at every `LOOK_MS`. */
const SETTLE_MS = 1_500_000;
const LOOK_MS = 20_000;
/**
 * Nodes are updated one after the other, and those that fail again and again wait for longer and longer; each drain
 * may take its whole time beside that.
 */
const NODES_SETTLE_MS = 7_200_000;
/** It is settled so often in a row: a node may wait for good, and what its policy says of it may be a tick old. */
const NODES_LOOKS = 3;
/** A window is open for two minutes of five. */
const WINDOWS_TAKE = 3;
const settleMs = ({ nodes, zones, windows }: Shape): number =>
  (nodes ? NODES_SETTLE_MS + nodes.drain.timeoutSeconds * 1000 * zones.length * nodes.perZone : SETTLE_MS) *
  (windows ? WINDOWS_TAKE : 1);
/** Statuses are written this much later at most: a budget's conditions have 30 s. */
const LATE_MS = 60_000;
/** So often a history that ends with its first violation looks whether there is one. */
const STRETCH_MS = 1000;
/** Settled, it stays so. */
const REST_MS = 600_000;
/** Characters that are digested at once: line by line takes longer. */
const DIGESTED_CHARS = 65_536;

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
  { trace, restMs = REST_MS, reduction = WHOLE_HISTORY, untilViolation = false }: PlayOptions,
): Promise<History> {
  const schedule = createSchedule();
  const { shape: drawn, nodeDraw, mistakeDraw, incidentDraws } = drawWholeShape(seed, draw);
  const shape = reduceShape(drawn, reduction.shape);
  const digest = createHash("sha256");
  /** Lines that are not in the digest yet. */
  let told = "";
  const violations: string[] = [];
  const actions: number[] = [];
  const startedAt = schedule.now();
  let calls = 0;
  const tell = (actor: string, text: string): void => {
    const line = `${((schedule.now() - startedAt) / 1000).toFixed(3).padStart(9)} ${actor.padEnd(13)} ${text}`;
    told += line;
    if (told.length > DIGESTED_CHARS) {
      digest.update(told);
      told = "";
    }
    trace?.(line);
  };
  const violated = (what: string): void => {
    violations.push(what);
    tell("VIOLATION", what);
  };
  tell("world", JSON.stringify(shape));
  const oracles = createOracles({ shape, violated, now: schedule.now, world: () => world });
  const faults = createFaults({
    draw,
    shape,
    age: () => schedule.now() - startedAt,
    only: reduction.strikes && new Set(reduction.strikes),
    onStrike: (cell, id) => {
      tell("fault", `${cell} (${id})`);
    },
  });
  const world: World = createWorld({
    ...oracles,
    secret: shape.certificate && (await secretObject(shape.certificate, schedule.now())),
    schedule,
    draw,
    nodeDraw,
    shape,
    strikes: faults.strikes,
    onHost(host) {
      tell("host", `${host.node} ${host.what}`);
      oracles.onHost(host);
    },
    onCall(caller, sent, status) {
      calls++;
      tell(caller.actor, `${caller.call} -> ${status}`);
      oracles.onCall(caller, sent, status);
    },
    onProcess(name, text) {
      tell(name, text);
    },
  });
  let unrest = "";
  world.store.subscribe((event) => {
    const caller = callers.getStore();
    const { namespace, uid, deletionTimestamp } = event.object.metadata;
    const name = `${namespace === TWIN ? "twin/" : ""}${event.object.metadata.name}`;
    tell(
      "store",
      `${event.type} ${event.resource} ${name} ${uid.slice(0, 4)}${deletionTimestamp ? " terminating" : ""}`,
    );
    oracles.onEvent(event, caller);
    if (isUnrest(event, shape))
      unrest = `${event.type} ${event.resource} ${name} by ${caller?.actor ?? "a controller"}`;
  });
  let isTroubled = true;
  const people = { schedule, draw, shape, world, isTroubled: () => isTroubled, wanted: new Map<string, number>() };
  const ended = setActions(people, {
    drawn,
    only: reduction.actions && new Set(reduction.actions),
    onAction: (position, name) => {
      actions.push(position);
      tell("people", `${name} (${position})`);
    },
  });
  const mended = setMistakes({ ...people, draw: mistakeDraw }, (text) => tell("people", `mistake: ${text}`));
  const twinEnded = setTwin(people, seed);
  const incidents = setIncidents(people, {
    draws: incidentDraws,
    onIncident: (text) => tell("people", `incident: ${text}`),
  });
  let events = 0;
  const isOver = (): boolean => untilViolation && violations.length > 0;
  const runFor = async (ms: number): Promise<void> => {
    const end = schedule.now() + ms;
    while (schedule.now() < end && !isOver()) {
      events += await schedule.runUntil(Math.min(end, schedule.now() + STRETCH_MS));
    }
  };
  await runFor(shape.troubledMs);
  tell("world", "faults and people stop");
  isTroubled = false;
  faults.calm();
  world.calm();
  let isRight = false;
  void Promise.all([ended(), mended(), twinEnded(), incidents.ended()])
    .then(() => setRight(people))
    .then(() => incidents.setRight())
    .then(() => (isRight = true));
  const end = schedule.now() + settleMs(shape);
  let unsettled: readonly string[] = [];
  // A drain may wait for as long as the peers of its pods must have been ready, and a node for the next one-shot.
  const waitMs = 2 * delayMs(shape) + (shape.nodes?.oneShot ? ONE_SHOT_MINUTES * 60_000 : 0);
  const wanted = shape.nodes ? NODES_LOOKS + Math.ceil(waitMs / LOOK_MS) : 1;
  let looks = wanted;
  do {
    await runFor(LOOK_MS);
    unsettled = isRight ? findUnsettled(world, shape, schedule.now()) : ["people still set things right"];
    looks = unsettled.length > 0 ? wanted : looks - 1;
  } while (looks > 0 && schedule.now() < end && !isOver());
  if (!isOver()) for (const what of unsettled) violated(`not settled: ${what}`);
  await runFor(LATE_MS + 2 * delayMs(shape) + 1000 * (shape.gate?.soakSeconds ?? 0));
  unrest = "";
  await runFor(restMs);
  if (unrest !== "") violated(`not at rest: ${unrest}`);
  const alive = world.processes().map(({ name }) => name);
  // A holder may have been ahead by its clock.
  if (!isOver())
    for (const what of findLeasesOfTheDead(world.store, alive, schedule.now() + shape.skewMs)) violated(what);
  world.stop();
  return {
    seed,
    shape,
    violations,
    digest: digest.update(told).digest("hex").slice(0, 16),
    simulatedMs: schedule.now() - startedAt,
    events,
    calls,
    cells: faults.cells,
    strikes: faults.struck,
    actions,
  };
}
