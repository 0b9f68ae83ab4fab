/**
 * Writes a plan. The policy's status takes the slots, with the resourceVersion that was read first; only then are
 * shadows written, each with its own. A process may die in between: the next pass finds the slots taken, and repeats
 * the step.
 */
import type { Actor } from "../../../infra/kubernetes/context.ts";
import { bottlerocketShadows } from "../../../infra/kubernetes/custom-resources.ts";
import type { NodePlan, ShadowWrite } from "../plan-pass.ts";
import type { TransitionCount } from "../policy.ts";
import { hasCode } from "../../../infra/errors.ts";
import { nodes } from "../../../infra/kubernetes/resources.ts";
import { newShadow } from "../shadow.ts";
import type { Upkeep } from "../upkeep.ts";

/** A write, and its error; undefined if it was done, or had been done by somebody else. */
interface Taken<T> {
  readonly write: T;
  readonly error: unknown;
}

/** Writes the shadows; a failure is returned and does not stop the others. Throws `LeaseLost`. */
export const writeShadows = ({ writes }: NodePlan, actor: Actor): Promise<Taken<ShadowWrite>[]> =>
  takeEach(writes, actor, (write, call) => writeSpec(write, actor, call));

/** Carries out the upkeep; a failure is returned and does not stop the others. Throws `LeaseLost`. */
export const takeUpkeep = (list: readonly Upkeep[], namespace: string, actor: Actor): Promise<Taken<Upkeep>[]> =>
  takeEach(list, actor, (upkeep, call) =>
    takeOne(upkeep, namespace, { ...actor, call }).catch((error: unknown) => {
      if (!hasCode(error, "NotFound", "AlreadyExists")) throw error;
    }),
  );

type WriteCall = ReturnType<Actor["fence"]["write"]>;

async function takeEach<T>(
  writes: readonly T[],
  { fence }: Actor,
  take: (write: T, call: WriteCall) => Promise<void>,
): Promise<Taken<T>[]> {
  const taken: Taken<T>[] = [];
  for (const write of writes) {
    const call = fence.write();
    const error = await take(write, call).then(
      () => undefined,
      (error: unknown) => error,
    );
    taken.push({ write, error });
  }
  return taken;
}

/** Writes the wanted state of a shadow with the version that was read; rejects with `Conflict` if it has changed. */
async function writeSpec(
  { node: { shadow }, spec }: ShadowWrite,
  { cluster }: Pick<Actor, "cluster">,
  call: WriteCall,
): Promise<void> {
  if (!shadow) return;
  const { namespace, name, resourceVersion } = shadow;
  await cluster.patch(
    bottlerocketShadows,
    { namespace, name, type: "merge", body: { metadata: { resourceVersion }, spec } },
    call,
  );
}

/** At most as many kinds of transitions are counted, the newest. */
const MAX_TRANSITIONS = 200;

/** The counts with one more of each transition that was written. */
export function countTransitions(
  before: readonly TransitionCount[],
  written: readonly ShadowWrite[],
): TransitionCount[] {
  const counts = new Map(before.map((one) => [keyOf(one), one]));
  for (const one of written.map(transitionOf).filter(({ from, to }) => from !== to)) {
    const earlier = counts.get(keyOf(one));
    counts.delete(keyOf(one));
    counts.set(keyOf(one), { ...one, count: (earlier?.count ?? 0) + 1 });
  }
  return [...counts.values()].slice(-MAX_TRANSITIONS);
}

type Transition = Omit<TransitionCount, "count">;

const keyOf = ({ from, to, fromVersion, toVersion }: Transition): string =>
  [from, to, fromVersion, toVersion].join(" ");

function transitionOf({ node: { shadow }, spec }: ShadowWrite): Transition {
  const { current_version: fromVersion = "" } = shadow?.status ?? {};
  return { from: shadow?.spec.state ?? "", to: spec.state, fromVersion, toVersion: spec.version ?? fromVersion };
}

async function takeOne(
  upkeep: Upkeep,
  namespace: string,
  { cluster, call }: Actor & { readonly call: WriteCall },
): Promise<void> {
  const { node } = upkeep;
  switch (upkeep.action) {
    case "createShadow":
      await cluster.create(bottlerocketShadows, { namespace, body: newShadow(node, namespace) }, call);
      return;
    case "deleteShadow": {
      const { name, uid, resourceVersion } = upkeep.shadow;
      await cluster.remove(bottlerocketShadows, { namespace, name, preconditions: { uid, resourceVersion } }, call);
      return;
    }
    case "resetShadow":
      return await writeSpec(upkeep, { cluster }, call);
    case "uncordon":
    case "protect":
    case "unprotect":
      await cluster.patch(nodes, { name: node.name, type: "merge", body: upkeep.patch }, call);
      return;
    default:
      return upkeep satisfies never;
  }
}
