/**
 * An Eviction of Kubernetes' declarative eviction API (KEP-4563, `lifecycle.k8s.io/v1alpha1`), as far as a responder reads
 * it. The kind and its rules are those of Kubernetes 1.37: staging/src/k8s.io/api/lifecycle/v1alpha1/types.go and
 * pkg/apis/lifecycle/validation/validation.go (§19).
 */
import * as z from "zod";
import { parseTimestamp } from "../../infra/timestamp.ts";
import { readIdentity } from "../model/identity.ts";

/** Our name in `spec.evictionResponders` of a pod. */
export const RESPONDER = "zonewise.dev/responder";

/**
 * The controller gives an Eviction a label with the name of each of its responders as the key; the value says whether the
 * same party has requested it as well.
 */
export const OURS = RESPONDER;

/** Times are RFC 3339. */
export interface ResponderStatus {
  readonly name: string;
  /** When the controller has made it active. */
  readonly startTime?: string;
  readonly heartbeatTime?: string;
  readonly expectedCompletionTime?: string;
  readonly completionTime?: string;
  readonly message?: string;
}

/** The declarative object, not the subresource `pods/eviction`. */
export interface Eviction {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Undefined for a target of a later version of the API. */
  readonly pod: { readonly name: string; readonly uid: string } | undefined;
  /** The requesters, without withdrawn requests. */
  readonly requesters: readonly string[];
  /** It is our turn: the controller has made us active and has not heard that we are done. */
  readonly isOurTurn: boolean;
  /** The controller has given up on us, as no heartbeat came within its deadline. */
  readonly wasInterrupted: boolean;
  readonly own: ResponderStatus;
  /** `status.responders` as stored: a patch replaces the list. */
  readonly responders: readonly ResponderStatus[];
}

const time = z.string().refine((text) => parseTimestamp(text) !== undefined);

const RESPONDER_STATUS = z.looseObject({
  name: z.string(),
  startTime: time.nullish(),
  heartbeatTime: time.nullish(),
  expectedCompletionTime: time.nullish(),
  completionTime: time.nullish(),
  message: z.string().nullish(),
});

/** Absent lists are empty ones. */
function listOf<T extends z.ZodType>(item: T) {
  return z
    .array(item)
    .nullish()
    .transform((items) => items ?? []);
}

const EVICTION = z.object({
  spec: z.object({ target: z.object({ pod: z.object({ name: z.string(), uid: z.string() }).nullish() }) }),
  status: z.object({
    conditions: listOf(z.object({ type: z.string(), status: z.string() })),
    requesters: listOf(z.object({ name: z.string(), intent: z.string() })),
    targetResponders: listOf(z.object({ name: z.string(), state: z.string() })),
    responders: listOf(RESPONDER_STATUS),
  }),
});

/** Conditions that end an Eviction. */
const ENDS: ReadonlySet<string> = new Set(["TargetEvicted", "Failed"]);

/** Undefined if the object does not name us, has not been prepared for us yet, or cannot be read. */
export function readEviction(object: { readonly metadata: Parameters<typeof readIdentity>[0] }): Eviction | undefined {
  const { data } = EVICTION.safeParse(object);
  if (!data) return undefined;
  const { conditions, requesters, targetResponders, responders } = data.status;
  const target = targetResponders.find(({ name }) => name === RESPONDER);
  const statuses = responders.map(withoutNulls);
  const own = statuses.find(({ name }) => name === RESPONDER);
  if (!target || !own) return undefined;
  const isOver = conditions.some(({ type, status }) => ENDS.has(type) && status === "True");
  const isRunning = own.startTime !== undefined && own.completionTime === undefined;
  return {
    ...readIdentity(object.metadata),
    pod: data.spec.target.pod ?? undefined,
    requesters: requesters.filter(({ intent }) => intent === "Eviction").map(({ name }) => name),
    isOurTurn: target.state === "Active" && !isOver && isRunning,
    wasInterrupted: target.state === "Interrupted" && !isOver,
    own,
    responders: statuses,
  };
}

const withoutNulls = (status: z.output<typeof RESPONDER_STATUS>): ResponderStatus =>
  Object.fromEntries(Object.entries(status).filter(([, value]) => value !== null)) as object as ResponderStatus;
