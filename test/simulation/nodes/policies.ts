/** What the status of a policy says of nodes. */
import { dig, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";

/** A node with a slot. */
export interface Entry {
  readonly node: string;
  readonly nodeUid: string;
  readonly startedAt: string;
  readonly bootId: string;
  readonly zone?: string;
  readonly phase: string;
  readonly waitsFor?: string;
  readonly ending?: { readonly reason: string };
}
type Attempt = Pick<Entry, "node" | "startedAt">;

/** The reason in a policy's list of nodes that wait: a person has cleared the freeze that they caused. */
const RELEASED = "ReleasedByHand";

export const entriesOf = (policy: KubeObject | undefined): readonly Entry[] =>
  listOf(dig(policy, "status", "active")) as readonly Entry[];

interface Recorded extends Attempt {
  readonly reason: string;
  /** How often its attempts came to nothing, of one that is deferred. */
  readonly count?: number;
}

export const recordsOf = (policy: KubeObject, list: "failed" | "deferred"): readonly Recorded[] =>
  listOf(dig(policy, "status", list)) as readonly Recorded[];

export const isSame = (a: Attempt, b: Attempt): boolean => a.node === b.node && a.startedAt === b.startedAt;

export const isReleased = (policy: KubeObject, node: string): boolean =>
  recordsOf(policy, "deferred").some((one) => one.node === node && one.reason === RELEASED);

export const frozenId = (policy: KubeObject): string | undefined => textOf(dig(policy, "status", "frozen", "id"));

/** True if a person has named its freeze as one to clear. */
export const isCleared = (policy: KubeObject): boolean =>
  frozenId(policy) !== undefined && dig(policy, "spec", "unfreeze") === frozenId(policy);

/** True if it is frozen, and no person has cleared that. */
export const isFrozen = (policy: KubeObject): boolean => frozenId(policy) !== undefined && !isCleared(policy);
