/**
 * What must never happen to deletions of pods where our webhook judges them: a pod that serves is deleted by hand without
 * a question, or a controller is kept from deleting. What the budget says of a deletion is judged in
 * `../oracles/safety.ts`, as of an eviction. Judged from the store, the reviews and the answers of the API server.
 */
import { dig, fieldsOf, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { CONTROLLERS } from "../accounts.ts";
import type { Caller, Review } from "../network.ts";
import type { Shape } from "../shape.ts";
import { BY_HAND, CONFIGURATION, CONFIGURATIONS, type DeletionsShape } from "./shape.ts";

export interface DeletionSafetyOptions {
  readonly shape: Pick<Shape, "ignore" | "certificate"> & { readonly deletions: DeletionsShape };
  readonly violated: (what: string) => void;
  readonly now: () => number;
}

interface DeletionSafety {
  readonly onEvent: (event: StoreEvent) => void;
  readonly onReview: (review: Pick<Review, "path" | "sent" | "status" | "answer">) => void;
  /** A review that the API server gets no answer to. */
  readonly onUnanswered: (path: string, sent: string) => void;
  /** The API server answers a request of this actor. */
  readonly onAnswered: (caller: Caller, method: string, path: string, body: string, status: number) => void;
  /** True if the webhook has let this pod go, which begins to end; to be asked of each such event once. */
  readonly isLetGo: (event: StoreEvent, caller: Caller) => boolean;
}

const DELETION = "/admission/pod-deletion";
/** Longer than a deletion is under admission. */
const IN_FLIGHT_MS = 45_000;
/** Of a pod that goes meanwhile, of another one of its name, and of nothing. */
const FINE: ReadonlySet<number> = new Set([404, 409]);
const RECONCILER = /^system:serviceaccount:[^:]+:zonewise-reconciler$/;

const nameIn = (request: unknown): string => textOf(dig(request, "oldObject", "metadata", "name")) ?? "";
const uidIn = (request: unknown): string => textOf(dig(request, "oldObject", "metadata", "uid")) ?? "";
const isDryRun = (request: unknown): boolean => dig(request, "dryRun") === true;
const requestOf = (sent: string): unknown => dig(JSON.parse(sent), "request");

export function createDeletionSafety({ shape, violated, now }: DeletionSafetyOptions): DeletionSafety {
  /** By UID, when the webhook last let each pod go: a later pod of its name needs a yes of its own. */
  const allowedAt = new Map<string, number>();
  /** Since when it is registered; the world begins with it. */
  let guardedSince: number | undefined = -Infinity;
  const { conditions } = shape.deletions;

  /** The API server asks about each deletion, or refuses it. */
  const isAlwaysAsked = (): boolean =>
    guardedSince !== undefined &&
    now() - guardedSince > IN_FLIGHT_MS &&
    !shape.ignore &&
    shape.certificate === undefined;

  return {
    onEvent({ resource, type, object }) {
      if (resource !== CONFIGURATIONS || object.metadata.name !== CONFIGURATION) return;
      if (type === "DELETED") guardedSince = undefined;
      else guardedSince ??= now();
    },
    onReview({ path, sent, status, answer }) {
      if (path !== DELETION || status !== 200) return;
      const request = requestOf(sent);
      const isAllowed = dig(JSON.parse(answer), "response", "allowed") === true;
      if (isAllowed && !isDryRun(request)) allowedAt.set(uidIn(request), now());
      if (isAllowed) return;
      if (isFree(request)) violated(`${userOf(request)} may not delete ${nameIn(request)}: ${answer}`);
    },
    onUnanswered(path, sent) {
      if (path !== DELETION) return;
      const request = requestOf(sent);
      // A deletion that was allowed before may still take effect, whatever becomes of a dry run.
      if (!isDryRun(request)) allowedAt.delete(uidIn(request));
    },
    onAnswered({ actor }, method, path, _, status) {
      const isStopped = status >= 400 && !FINE.has(status) && method === "DELETE" && /\/pods\//.test(path);
      if (isStopped && conditions && Object.hasOwn(CONTROLLERS, actor))
        violated(`${actor} cannot delete ${path}: ${status}`);
    },
    isLetGo({ object, previous }, { actor, call }) {
      if (actor !== "human" || !call.startsWith("DELETE") || !previous || !isJudged(previous)) return false;
      const { name, uid } = object.metadata;
      const isAllowed = now() - (allowedAt.get(uid) ?? -Infinity) < IN_FLIGHT_MS;
      if (!isAllowed && isAlwaysAsked()) violated(`${name} is deleted by hand, and no webhook was asked`);
      return isAllowed;
    },
  };
}

const userOf = (request: unknown): string => textOf(dig(request, "userInfo", "username")) ?? "";

/** Of a user who deletes without a question. */
function isFree(request: unknown): boolean {
  const username = userOf(request);
  const groups = listOf(dig(request, "userInfo", "groups"));
  return (
    Object.values(CONTROLLERS).some((user) => user.username === username) ||
    groups.includes("system:nodes") ||
    RECONCILER.test(username)
  );
}

/** A pod of a zone that nobody has let go by its annotation. */
const isJudged = ({ metadata: { labels = {}, annotations = {}, ...metadata } }: KubeObject): boolean =>
  labels["rollout-group"] !== undefined &&
  annotations[BY_HAND] !== "true" &&
  listOf(metadata.ownerReferences).some((owner) => fieldsOf(owner)["kind"] === "StatefulSet");
