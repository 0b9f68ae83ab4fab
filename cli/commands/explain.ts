/** `zonewise explain`: may it go now, which rule says no, what blocks it, since when, and what would help (§18.5). */
import { absent } from "../../infra/errors.ts";
import { nodes, pods, statefulSets, type StatefulSet } from "../../infra/kubernetes/resources.ts";
import type { BudgetPod } from "../../reconciler/budget/budget-pod.ts";
import { readBudgetPod } from "../../reconciler/budget/budget-pod.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { readZone } from "../../reconciler/model/zone.ts";
import { allow, type Explanation } from "../decide/answer.ts";
import { explainGroup, explainPod, explainUnmanaged, explainZone } from "../decide/explain.ts";
import { explainNode } from "../decide/explain-node.ts";
import { explainPhased, explainPhasedPod, type Phased } from "../decide/explain-phased.ts";
import { EXIT, usageError } from "../exit.ts";
import { findKind, KINDS, type Kind } from "../kinds.ts";
import { findGroup, gatherGroups } from "../gather/groups.ts";
import { gatherNodeUpdate } from "../gather/node-update.ts";
import { gatherPhased } from "../gather/phased.ts";
import { createPodWorlds } from "../gather/pod-world.ts";
import { missing } from "../gather/suggest.ts";
import { gatherWorld } from "../gather/world.ts";
import { renderAnswers } from "../output/answers.ts";
import { print } from "../output/print.ts";
import type { Command, Session } from "../session.ts";

/** What was asked about, and the answers. */
interface Explained {
  readonly kind: string;
  readonly name: string;
  readonly answers: readonly Explanation[];
}

type Explain = (session: Session, name: string) => Promise<readonly Explained[] | undefined>;

export const explain: Command = {
  name: "explain",
  arguments: "<object>",
  summary:
    "May a pod, a statefulset, a group or a node go now; if not, which rule says no, what blocks, since when, what helps",
  flags: [],
  exits: { 0: "it may go, or has nothing to wait for", 1: "a rule says no" },
  completes: "objects",
  async run(session, { args: [object = ""] }) {
    const explained = await explainObject(session, object);
    print(session, explained, () =>
      explained.map((one) => renderAnswers(one, session.io.style, session.clock.now())).join("\n"),
    );
    return explained.every(({ answers }) => answers.every(({ allowed }) => allowed)) ? EXIT.ok : EXIT.no;
  },
};

const EXPLAIN: Readonly<Record<Kind, Explain>> = {
  group: async (session, name) => {
    const all = await gatherGroups(session, session.namespace);
    const state = all.find(({ group }) => group === name);
    if (!state) return undefined;
    return [{ kind: "group", name, answers: explainGroup(state, await gatherWorld(state, session)) }];
  },
  statefulset: async (session, name) => {
    const object = await session.cluster.get(statefulSets, { namespace: session.namespace, name }).catch(absent);
    if (!object) return undefined;
    const answers = [
      ...(await explainInGroup(session, object)),
      ...(await gatherPhasedOf(session, name)).map(explainPhased),
    ];
    return [{ kind: "statefulset", name, answers: answers.length > 0 ? answers : [explainUnmanaged(object)] }];
  },
  pod: async (session, name) => {
    const object = await session.cluster.get(pods, { namespace: session.namespace, name }).catch(absent);
    return object && [await explainOne(session, readBudgetPod(object), createPodWorlds(session))];
  },
  node: async (session, name) => {
    const node = await session.cluster.get(nodes, { name }).catch(absent);
    if (!node) return undefined;
    const query = {
      fieldSelector: `spec.nodeName=${name}`,
      ...(session.namespace !== "" && { namespace: session.namespace }),
    };
    const { items } = await readAll({ resource: pods, query, read: readBudgetPod }, session);
    const owned = items.filter(({ controller }) => controller?.kind === "StatefulSet");
    const worlds = createPodWorlds(session);
    const explained = await Promise.all(owned.map((pod) => explainOne(session, pod, worlds)));
    const facts = await gatherNodeUpdate(session, node);
    const update = facts && explainNode(facts);
    if (!update && explained.length === 0)
      return [{ kind: "node", name, answers: [allow("drain", "no pod of a StatefulSet is on it")] }];
    return [...(update ? [{ kind: "node", name, answers: [update] }] : []), ...explained];
  },
  phasedrollout: async (session, name) => {
    const found = (await gatherPhased(session)).filter(({ rollout }) => rollout.name === name);
    return found.length > 0 ? [{ kind: "phasedrollout", name, answers: found.map(explainPhased) }] : undefined;
  },
};

/** Nothing for a StatefulSet in no group. */
async function explainInGroup(session: Session, object: StatefulSet): Promise<readonly Explanation[]> {
  const { group, name } = readZone(object);
  if (object.metadata?.labels?.[LABELS.rolloutGroup] === undefined) return [];
  const state = await findGroup(session, session.namespace, group);
  const world = await gatherWorld(state, session);
  const zone = world.zones.find((one) => one.name === name);
  return zone ? explainZone(zone, state, world) : [];
}

async function gatherPhasedOf(session: Session, statefulSet: string): Promise<readonly Phased[]> {
  return (await gatherPhased(session)).filter(({ rollout }) => rollout.targetRef === statefulSet);
}

async function explainOne(
  session: Session,
  pod: BudgetPod,
  worlds: ReturnType<typeof createPodWorlds>,
): Promise<Explained> {
  const { world, state } = await worlds(pod);
  const answers = explainPod(pod, state, world);
  const phased =
    state || pod.controller?.kind !== "StatefulSet" ? [] : await gatherPhasedOf(session, pod.controller.name);
  return { kind: "pod", name: pod.name, answers: [...answers, ...phased.map((one) => explainPhasedPod(pod, one))] };
}

/** `pod/NAME`, or a name of whatever has it. */
async function explainObject(session: Session, object: string): Promise<readonly Explained[]> {
  if (session.namespace === "") throw usageError("explain needs one namespace: say -n");
  const { kinds, name } = readObject(object);
  for (const kind of kinds) {
    const explained = await EXPLAIN[kind](session, name);
    if (explained) return explained;
  }
  const [only] = kinds.length === 1 ? kinds : [];
  const message = `no ${kinds.join(", ")} ${JSON.stringify(name)} in namespace ${session.namespace}`;
  throw await missing(session, { what: only ? KINDS[only].completes : "objects", name, message });
}

function readObject(object: string): { readonly kinds: readonly Kind[]; readonly name: string } {
  const [first = "", second, more] = object.split("/");
  const all = Object.keys(KINDS) as Kind[];
  const kind = second === undefined ? undefined : findKind(first);
  const name = second ?? first;
  if (second !== undefined && !kind)
    throw usageError(`there is no kind ${JSON.stringify(first)}`, `the kinds are ${all.join(", ")}`);
  if (name === "" || more !== undefined)
    throw usageError(`${JSON.stringify(object)} names no object`, "say pod/NAME, or a name alone");
  return { kinds: kind ? [kind] : all, name };
}
