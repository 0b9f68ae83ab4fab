/** All oracles of one history: what each is told, in one order. None knows another's rules. */
import { dig } from "../../emulator/objects.ts";
import type { StoreEvent } from "../../emulator/store.ts";
import { createDeletionSafety } from "../deletions/safety.ts";
import { createDryRunSafety } from "./dry-runs.ts";
import { createLeaseSafety } from "./leases.ts";
import { NAMESPACE, OTHER_GROUP, TWIN } from "../names.ts";
import type { Caller, NetworkOptions } from "../network.ts";
import { createNodeSafety } from "../nodes/safety.ts";
import { createSafety } from "./safety.ts";
import { isCalm, type Shape } from "../shape.ts";
import { reservationsOf } from "./stored.ts";
import { createTemplateSafety } from "./templates.ts";
import { twinShape } from "../wider.ts";
import type { World, WorldOptions } from "../world.ts";
import { createWriteSafety } from "./writes.ts";

export interface OraclesOptions {
  readonly shape: Shape;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly world: () => World;
}

/** What an oracle may be told. */
interface Oracle {
  /** Of an object that is stored; without a caller by a controller of the cluster. */
  readonly onEvent?: (event: StoreEvent, caller: Caller | undefined) => void;
  /** A request leaves a process. */
  readonly onSent?: (caller: Caller, method: string, path: string) => void;
  /** The API server answers a request, also by a refusal. */
  readonly onAnswered?: (caller: Caller, method: string, path: string, body: string, status: number) => void;
  /** A request took effect. */
  readonly onRequest?: (caller: Caller, method: string, path: string, body: string) => void;
  readonly onReview?: NetworkOptions["onReview"];
  readonly onArrival?: NetworkOptions["onArrival"];
  readonly onUnanswered?: NetworkOptions["onUnanswered"];
}

/** A process stands still, and a call is on its way; and without faults. */
const [SLOWLY_DECIDED_MS, QUICKLY_DECIDED_MS] = [150_000, 15_000];

/** Calls `violated` with what happened, in words. */
export function createOracles({ shape, violated, now, world }: OraclesOptions) {
  const listPods = (set: string) =>
    world()
      .store.list("pods", NAMESPACE)
      .filter(({ metadata }) => metadata.labels?.["name"] === set);
  const deletions =
    shape.deletions && createDeletionSafety({ shape: { ...shape, deletions: shape.deletions }, violated, now });
  const safety = createSafety({
    shape,
    isLetGo: deletions?.isLetGo,
    violated,
    now,
    decidedMs: (actor) => decidedMs(actor),
    isPrepared: (uid) => world().prepared.has(uid),
    leavingSince: (uid) => world().leaving.get(uid),
    reservations: () => reservationsOf(world().store),
    listPods,
  });
  /** The second namespace is judged by itself. */
  const twin =
    shape.twin &&
    createSafety({
      shape: twinShape(shape),
      namespace: TWIN,
      violated: (what) => violated(`in ${TWIN}: ${what}`),
      now,
      decidedMs: (actor) => decidedMs(actor),
      isPrepared: () => false,
      leavingSince: () => undefined,
      reservations: () => reservationsOf(world().store, TWIN),
      listPods: (set) =>
        world()
          .store.list("pods", TWIN)
          .filter(({ metadata }) => metadata.labels?.["name"] === set),
    });
  /** True of a process that has not stood still for long. */
  const hasGoneOn = (actor: string): boolean => {
    const process = world()
      .processes()
      .find(({ name }) => name === actor);
    return process?.stoodStillMs(now() - SLOWLY_DECIDED_MS) === 0;
  };
  /** How many milliseconds ago what an actor does now may have been decided. */
  const decidedMs = (actor: string): number =>
    !isCalm(shape) || !hasGoneOn(actor) ? SLOWLY_DECIDED_MS : QUICKLY_DECIDED_MS;
  const nodeSafety = shape.nodes && createNodeSafety({ nodes: shape.nodes, violated, now, store: () => world().store });
  const templates = createTemplateSafety({ zones: shape.zones, violated, now, decidedMs });
  const all: readonly Oracle[] = [
    deletions,
    safety,
    createLeaseSafety({ violated, now, suspends: shape.suspends }),
    createWriteSafety({ violated }),
    createDryRunSafety({ violated, now }),
    templates,
    nodeSafety,
  ].filter((oracle) => oracle !== undefined);

  const isOfTwin = (review: string): boolean =>
    shape.twin !== undefined && dig(JSON.parse(review), "request", "namespace") === TWIN;

  return {
    onEvent(event: StoreEvent, caller: Caller | undefined): void {
      // What the oracles know of a group are the zones of the shape.
      if (event.object.metadata.labels?.["app"] === OTHER_GROUP) return;
      if (event.object.metadata.namespace === TWIN) return twin?.onEvent(event, caller);
      for (const { onEvent } of all) onEvent?.(event, caller);
    },
    onSent(caller, { method, path }) {
      for (const { onSent } of all) onSent?.(caller, method, path);
    },
    onCall(caller, { method, path, body }, status) {
      const text = body.toString();
      for (const { onAnswered } of all) onAnswered?.(caller, method, path, text, status);
      if (status < 300) for (const { onRequest } of all) onRequest?.(caller, method, path, text);
    },
    onReview(review) {
      if (isOfTwin(review.sent)) return twin?.onReview(review);
      for (const { onReview } of all) onReview?.(review);
    },
    onArrival(path, sent, server) {
      if (isOfTwin(sent)) return;
      for (const { onArrival } of all) onArrival?.(path, sent, server);
    },
    onUnanswered(path, sent) {
      if (isOfTwin(sent)) return twin?.onUnanswered(path, sent);
      for (const { onUnanswered } of all) onUnanswered?.(path, sent);
    },
    onHandshake: safety.onHandshake,
    onHost: (told) => nodeSafety?.onHost(told),
  } satisfies Partial<WorldOptions> & Readonly<Record<string, unknown>>;
}
