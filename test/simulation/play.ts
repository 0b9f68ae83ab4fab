/** One history: the seed draws a world, plays its troubled time, sets it right, and both oracles judge. */
import { createHash } from "node:crypto";
import { dig, type Fields, fieldsOf, textOf } from "../emulator/objects.ts";
import { createDeletionSafety } from "./deletions/safety.ts";
import { createBatchSafety } from "./batches/safety.ts";
import { createCertificateSafety } from "./certificates/safety.ts";
import { secretObject } from "./certificates/trust.ts";
import { createCheckSafety } from "./checks/safety.ts";
import { drawFrom } from "./draw.ts";
import { createDownscaleRecords } from "./downscale-records.ts";
import { createDownscaleReviews } from "./downscale-reviews.ts";
import { createFaults } from "./faults.ts";
import { createGroupClaims } from "./group-claims.ts";
import { createHeadroomOracle } from "./headroom.ts";
import { createLosses } from "./losses.ts";
import { setMistakes } from "./mistakes.ts";
import { callers } from "./network.ts";
import { setActions, setRight } from "./people.ts";
import { reduceShape, type Reduction, WHOLE_HISTORY } from "./reduction.ts";
import { seedPlatform } from "./platform.ts";
import { createQuiet } from "./quiet.ts";
import { createReadSafety } from "./reads.ts";
import { createReservationSafety } from "./reservations.ts";
import { createReviewSafety } from "./reviews.ts";
import { createRequestSafety } from "./requests/safety.ts";
import { createSafety } from "./safety.ts";
import { createScalingSafety } from "./scalings.ts";
import { createSchedule } from "./schedule.ts";
import { BUDGET, BUDGETS, NAMESPACE, ZONE_TRACKER } from "./names.ts";
import { createLifecycleSafety } from "./nodes/lifecycle-safety.ts";
import { createNodeAnswerSafety } from "./nodes/answer-safety.ts";
import { createFacts } from "./nodes/facts.ts";
import { createPassSafety } from "./nodes/pass-safety.ts";
import { createNodeSafety } from "./nodes/safety.ts";
import { createWindowSafety } from "./windows/safety.ts";
import { createLeaseSafety } from "./leases.ts";
import { createStatusSafety } from "./statuses.ts";
import { isCalm, misjudgedMs, type Shape } from "./shape.ts";
import { areZonesSettled, findLeasesOfTheDead, findUnsettled, isUnrest } from "./stability.ts";
import { drawWholeShape } from "./whole-shape.ts";
import { createWorld, type World } from "./world.ts";
import { createWriteSafety } from "./writes.ts";

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
/** A process stands still, and a call is on its way; and without faults. */
const [SLOWLY_DECIDED_MS, QUICKLY_DECIDED_MS] = [150_000, 15_000];
/** A reconciler dies or stands still, and the next one begins a minute later; and without that. */
const [SILENT_MS, CALMLY_SILENT_MS] = [240_000, 120_000];
/** Conditions of nodes are written in each pass. */
const UNSAID_MS = 60_000;
/** Statuses are written this much later at most: a budget's conditions have 30 s. */
const LATE_MS = 60_000;
/** So often a history that ends with its first violation looks whether there is one. */
const STRETCH_MS = 1000;
/** Evictions that are tried at the end are answered in so many stretches. */
const MAX_WAITS = 60;
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
  const { shape: drawn, nodeDraw, mistakeDraw } = drawWholeShape(seed, draw);
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
  const listPods = (set: string) =>
    world.store.list("pods", NAMESPACE).filter(({ metadata }) => metadata.labels?.["name"] === set);
  const deletions =
    shape.deletions &&
    createDeletionSafety({ shape: { ...shape, deletions: shape.deletions }, violated, now: schedule.now });
  const safety = createSafety({
    shape,
    isLetGo: deletions?.isLetGo,
    violated,
    now: schedule.now,
    decidedMs: (actor, zone) => decidedMs(actor, zone),
    leader: () => {
      const spec = fieldsOf(world.store.get("leases.coordination.k8s.io", NAMESPACE, "zonewise-reconciler")?.["spec"]);
      const holder = textOf(spec["holderIdentity"]);
      return holder ? { holder, sinceMs: schedule.now() - takenAt(spec) } : undefined;
    },
    isPrepared: (uid) => world.prepared.has(uid),
    leavingSince: (uid) => world.leaving.get(uid),
    reservations: () => fieldsOf(fieldsOf(world.store.get(BUDGETS, NAMESPACE, BUDGET)?.["status"])["disruptedPods"]),
    listPods,
  });
  const faults = createFaults({
    draw,
    shape,
    age: () => schedule.now() - startedAt,
    only: reduction.strikes && new Set(reduction.strikes),
    onStrike: (cell, id) => {
      tell("fault", `${cell} (${id})`);
      quiet.noteFault(cell);
      reads.onFault(cell);
    },
  });
  const quiet = createQuiet({ now: schedule.now, processes: () => world.processes() });
  const writes = createWriteSafety({ violated, now: schedule.now, suspends: shape.suspends });
  const isQuiet = (): boolean => isCalm(shape) || schedule.now() - calmAt > SLOWLY_DECIDED_MS;
  const statuses = createStatusSafety({
    violated,
    now: schedule.now,
    isQuiet,
    // A gate may hold a group whose zones have all that they should.
    areZonesSettled: () => shape.gate === undefined && areZonesSettled(world.store, shape.zones),
  });
  const leases = createLeaseSafety({
    violated,
    now: schedule.now,
    processes: () => world.processes(),
    isQuiet,
    mayBeStale: shape.faults.stale > 0 || shape.firstCalls !== undefined,
  });
  /** True of a process that has not stood still for long. */
  const hasGoneOn = (actor: string): boolean => {
    const process = world.processes().find(({ name }) => name === actor);
    return process?.stoodStillMs(schedule.now() - SLOWLY_DECIDED_MS) === 0;
  };
  const setOf = (zone: string) => world.store.get("statefulsets.apps", NAMESPACE, zone);
  const listBudgets = () => world.store.list(BUDGETS, NAMESPACE);
  const losses = createLosses({ zones: shape.zones, now: schedule.now, listPods });
  const records = createDownscaleRecords({
    zones: shape.zones,
    violated,
    now: schedule.now,
    setOf,
    listPods,
    isPrepared: (uid) => world.prepared.has(uid),
    trackedOf: (zone) => textOf(dig(world.store.get("configmaps", NAMESPACE, ZONE_TRACKER), "data", zone)),
    misjudgedMs: misjudgedMs(shape),
  });
  const { admittedBut } = records;
  const downscales = createDownscaleReviews({
    shape,
    violated,
    now: schedule.now,
    losses,
    setOf,
    listBudgets,
    admittedBut,
    isQuiet: (since) => quiet.isQuiet("webhooks", since),
  });
  const reads = createReadSafety({
    shape,
    violated,
    now: schedule.now,
    processes: () => world.processes(),
    listPods,
    losses,
    admittedBut,
  });
  const claims = createGroupClaims({ zones: shape.zones, violated, losses, reads });
  const scalings = createScalingSafety({
    shape,
    violated,
    now: schedule.now,
    losses,
    reads,
    setOf,
    listBudgets,
    admittedBut,
    isQuiet: (since) => quiet.isQuiet("reconciler", since),
  });
  /**
   * How many milliseconds ago what an actor does now may have been decided; of a reconciler that takes a pod of a zone
   * it is known what it had read.
   */
  const decidedMs = (actor: string, zone?: string): number => {
    const isSlow = !isCalm(shape) || !hasGoneOn(actor);
    const readMs = zone === undefined ? Infinity : schedule.now() - reads.decidedAt(actor, zone);
    return Math.min(readMs, isSlow ? SLOWLY_DECIDED_MS : QUICKLY_DECIDED_MS);
  };
  const headroom = createHeadroomOracle(violated);
  const reservations = createReservationSafety({
    shape,
    violated,
    now: schedule.now,
    podOf: (name) => world.store.get("pods", NAMESPACE, name),
    setOf: (name) => setOf(name),
  });
  const reviews = createReviewSafety({ shape, violated, now: schedule.now });
  const checks = createCheckSafety({
    shape,
    violated,
    now: schedule.now,
    listPods,
    decidedMs,
  });
  const nodeSafety =
    shape.nodes && createNodeSafety({ nodes: shape.nodes, violated, now: schedule.now, store: () => world.store });
  const facts = createFacts(shape, schedule.now);
  const ofNodes = { shape, facts, violated, now: schedule.now, store: () => world.store };
  const [nodeAnswers, passes] = [createNodeAnswerSafety(ofNodes), createPassSafety(ofNodes)];
  const lifecycle =
    nodeSafety &&
    shape.nodes?.lifecycle &&
    createLifecycleSafety({
      nodes: shape.nodes,
      violated,
      now: schedule.now,
      store: () => world.store,
      decidedMs,
      isSteady: (actor) => (isCalm(shape) || schedule.now() - calmAt > SLOWLY_DECIDED_MS) && hasGoneOn(actor),
      out: nodeSafety.out,
    });
  const batches =
    shape.accelerates && createBatchSafety({ shape, violated, now: schedule.now, setOf, listPods, decidedMs });
  const windows = shape.windows && createWindowSafety({ violated, now: schedule.now, setOf, decidedMs });
  const secret = shape.certificate && (await secretObject(shape.certificate, schedule.now()));
  const certificates = shape.certificate && createCertificateSafety({ violated, now: schedule.now });
  const requests =
    shape.requests &&
    createRequestSafety({
      shape,
      violated,
      now: schedule.now,
      store: () => world.store,
      decidedMs,
      keepsReservations: safety.keepsReservations,
    });
  const world: World = createWorld({
    onRefusal: (why) => requests?.onRefusal(why),
    secret,
    onHandshake: safety.onHandshake,
    schedule,
    draw,
    nodeDraw,
    shape,
    strikes: faults.strikes,
    onHost(told) {
      tell("host", `${told.node} ${told.what}`);
      nodeSafety?.onHost(told);
    },
    onNodeAnswer: nodeAnswers.onAnswer,
    onCall: (caller, { method, path, body }, status) => {
      calls++;
      tell(caller.actor, `${caller.call} -> ${status}`);
      deletions?.onAnswered(caller.actor, method, path, status);
      passes.onRead(caller, method, path);
      leases.onAnswered(caller, method, path, body.toString(), status);
      statuses.onAnswered(caller, method, path, status);
      scalings.onCall(caller, { method, path, body }, status);
      if (status >= 300) return;
      safety.onRequest(caller, method, path, body.toString());
      requests?.onRequest(caller, method, path);
      writes.onRequest(caller, method, path, body.toString());
      reads.onRequest(caller, method, path, body.toString());
      reviews.onRequest(caller, method, path);
      checks.onRequest(caller, method, path);
      passes.onRequest(caller, method, path, body.toString());
      nodeAnswers.onRequest(caller, method, path);
      downscales.onRequest(caller, method, path);
      if (lifecycle) lifecycle.onRequest(caller, method, path);
    },
    onSent(caller, { method, path, body }) {
      leases.onSent(caller, method, path, body.toString());
      statuses.onSent(caller, method, path, body.toString());
    },
    onReview(review) {
      safety.onReview(review);
      headroom.onReview(review);
      reviews.onReview(review);
      checks.onReview(review);
      downscales.onReview(review);
      deletions?.onReview(review);
    },
    onArrival(path, sent, server) {
      reservations.onArrival(path, sent);
      reviews.onArrival(path, sent, server);
      downscales.onArrival(path, sent);
      deletions?.onArrival(path, sent);
    },
    onUnanswered(path, sent) {
      safety.onUnanswered(path, sent);
      downscales.onUnanswered(path, sent);
      deletions?.onUnanswered(path, sent);
    },
    onAnswer: (told) => {
      tell("prometheus", `${told.expr} is ${told.verdict}`);
      checks.onAnswer(told);
    },
    onProcess(name, text) {
      tell(name, text);
      if (text === "is killed") quiet.noteDeath(name);
    },
  });
  for (const resource of [BUDGETS, "statefulsets.apps"])
    for (const object of world.store.list(resource, NAMESPACE)) reviews.onEvent({ type: "ADDED", resource, object });
  let unrest = "";
  facts.begin(world.store);
  world.store.subscribe((event) => {
    const caller = callers.getStore();
    const { name, uid, deletionTimestamp } = event.object.metadata;
    tell(
      "store",
      `${event.type} ${event.resource} ${name} ${uid.slice(0, 4)}${deletionTimestamp ? " terminating" : ""}`,
    );
    deletions?.onEvent(event);
    safety.onEvent(event, caller);
    leases.onEvent(event, caller);
    statuses.onEvent(event, caller);
    if (certificates) certificates.onEvent(event, caller);
    scalings.onEvent(event, caller);
    downscales.onEvent(event, caller);
    records.onEvent(event, caller);
    losses.onEvent(event);
    claims.onEvent(event, caller);
    reads.onEvent(event, caller);
    reviews.onEvent(event);
    reservations.onEvent(event, caller);
    checks.onEvent(event, caller);
    requests?.onEvent(event, caller);
    if (shape.nodes) {
      facts.onEvent(event);
      nodeAnswers.onEvent(event, caller);
      passes.onEvent(event, caller);
    }
    nodeSafety?.onEvent(event, caller);
    if (lifecycle) lifecycle.onEvent(event, caller);
    windows?.onEvent(event, caller);
    if (batches) batches.onEvent(event, caller);
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
  let events = 0;
  let calmAt = Infinity;
  const isOver = (): boolean => untilViolation && violations.length > 0;
  const runFor = async (ms: number): Promise<void> => {
    const end = schedule.now() + ms;
    while (schedule.now() < end && !isOver()) {
      events += await schedule.runUntil(Math.min(end, schedule.now() + STRETCH_MS));
      const silentMs =
        schedule.now() - calmAt > SLOWLY_DECIDED_MS ? CALMLY_SILENT_MS : isCalm(shape) ? SILENT_MS : undefined;
      if (silentMs === undefined) continue;
      requests?.look(silentMs);
      reservations.look(silentMs);
      if (lifecycle) lifecycle.look(silentMs === SILENT_MS ? SILENT_MS : UNSAID_MS);
    }
  };
  await runFor(shape.troubledMs);
  tell("world", "faults and people stop");
  isTroubled = false;
  calmAt = schedule.now();
  faults.calm();
  world.calm();
  let isRight = false;
  void Promise.all([ended(), mended()])
    .then(() => setRight(people))
    .then(() => (isRight = true));
  const end = schedule.now() + settleMs(shape);
  let unsettled: readonly string[] = [];
  const wanted = shape.nodes ? NODES_LOOKS : 1;
  let looks = wanted;
  do {
    await runFor(LOOK_MS);
    unsettled = isRight ? findUnsettled(world, shape, schedule.now()) : ["people still set things right"];
    looks = unsettled.length > 0 ? wanted : looks - 1;
  } while (looks > 0 && schedule.now() < end && !isOver());
  if (!isOver()) for (const what of unsettled) violated(`not settled: ${what}`);
  await runFor(LATE_MS + 1000 * (shape.gate?.soakSeconds ?? 0));
  unrest = "";
  await runFor(restMs);
  if (unrest !== "") violated(`not at rest: ${unrest}`);
  let isCompared = violations.length > 0;
  void headroom.look(world, shape.zones).then(() => (isCompared = true));
  for (let waits = 0; !isCompared && waits < MAX_WAITS; waits++) await runFor(STRETCH_MS);
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
