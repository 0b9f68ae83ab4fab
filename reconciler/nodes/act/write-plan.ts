/**
 * Writes a plan. The policy's status takes the slots, with the resourceVersion that was read first; only then are
 * shadows written, each with its own. A process may die in between: the next pass finds the slots taken, and repeats
 * the step.
 */
import type { Actor } from "../../../infra/kubernetes/actor.ts";
import { bottlerocketShadows } from "../../../infra/kubernetes/custom-resources.ts";
import type { NodePlan, ShadowWrite } from "../plan-pass.ts";
import type { TransitionCount } from "../policy-status.ts";

/** A shadow that could not be written, and the error. */
interface MissedShadow {
  readonly write: ShadowWrite;
  readonly error: unknown;
}

interface Written {
  readonly written: readonly ShadowWrite[];
  readonly missed: readonly MissedShadow[];
}

/** Writes the shadows; a failure is reported and does not stop the others. Throws `LeaseLost`. */
export async function writeShadows({ writes }: NodePlan, actor: Actor): Promise<Written> {
  const written: ShadowWrite[] = [];
  const missed: MissedShadow[] = [];
  for (const write of writes) {
    const call = actor.fence.write();
    try {
      await writeSpec(write, actor, call);
      written.push(write);
    } catch (error) {
      missed.push({ write, error });
    }
  }
  return { written, missed };
}

/** Writes the wanted state of a shadow with the version that was read; rejects with `Conflict` if it has changed. */
export async function writeSpec(
  { node: { shadow }, spec }: ShadowWrite,
  { cluster }: Pick<Actor, "cluster">,
  call: ReturnType<Actor["fence"]["write"]>,
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

/** The counts with one more of each transition that was written (NR22). */
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
