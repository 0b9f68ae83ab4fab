/**
 * `zonewise explain`: may the object go now, which rule says no, what blocks it, since when, and what would help
 * (§18.5).
 */
import { absent, hasCode } from "../../infra/errors.ts";
import { nodes, pods, statefulSets, type StatefulSet } from "../../infra/kubernetes/resources.ts";
import { type Pod, readPod } from "../../reconciler/model/pod.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { nameOfGroup } from "../../reconciler/group-status/status.ts";
import { nameImages, readZone } from "../../reconciler/model/zone.ts";
import type { World } from "../../reconciler/plan/world.ts";
import { denyUnguarded, denyWithoutTick, type Explanation, STOPPED } from "../decide/answer.ts";
import {
  addAnswer,
  explainBypasses,
  explainGroup,
  explainPod,
  explainUnmanaged,
  explainZone,
} from "../decide/explain-group.ts";
import { explainDrain, explainNode } from "../decide/explain-node.ts";
import { explainPhased, explainPhasedPod, type Phased } from "../decide/explain-phased.ts";
import { denyUnbudgeted } from "../decide/unbudgeted.ts";
import { EXIT, usageError } from "../exit.ts";
import { KINDS, type Kind, readObject } from "../kinds.ts";
import { askEviction } from "../gather/guard.ts";
import { findGroup, gatherGroups, gatherLost } from "../gather/groups.ts";
import { gatherNodeUpdate, gatherPhased } from "../gather/records.ts";
import { missing } from "../gather/suggest.ts";
import { createPodViews, gatherNow, type PodView } from "../gather/world.ts";
import { renderAnswers } from "../output/answers.ts";
import { print } from "../output/print.ts";
import type { Command, Session } from "../session.ts";

/** The object that was asked about, and the answers. */
interface Explained {
  readonly kind: string;
  readonly name: string;
  readonly answers: readonly Explanation[];
}

/** The caller may not get objects of the kind. */
const FORBIDDEN = "forbidden";

/** Undefined if there is no such object. `isGuess`: the name may be that of an object of another kind. */
type Explain = (
  session: Session,
  name: string,
  isGuess: boolean,
) => Promise<readonly Explained[] | typeof FORBIDDEN | undefined>;

export const explain: Command = {
  name: "explain",
  arguments: "<object>",
  group: "Look",
  summary: "Why a group, StatefulSet, pod or node waits, and the fix",
  examples: [
    ["explain GROUP", "why does it wait?"],
    ["explain pod/POD", "may it be evicted, replaced, deleted by hand?"],
    ["explain node/NODE", "may it be drained, is it updated?"],
  ],
  flags: [],
  exits: {
    0: "it may go, or has nothing to wait for",
    1: "a rule says no",
    4: "not known: the reconciler does not run, no such object, or the cluster cannot be read",
  },
  async run(session, { args: [object = ""] }) {
    const stopped = session.noTicks.find(({ state }) => state === "stopped");
    const found = await explainObject(session, object);
    const explained = found.map((one) => ({
      ...one,
      answers: one.answers.map((answer) => denyWithoutTick(answer, stopped)),
    }));
    print(session, explained, () =>
      explained.map((one) => renderAnswers(one, session.io, session.clock.now())).join("\n"),
    );
    const denials = explained.flatMap(({ answers }) => answers.filter(({ allowed }) => !allowed));
    if (denials.some(({ reason }) => reason !== STOPPED)) return EXIT.no;
    const isOld = stopped !== undefined && explained.some(({ kind }) => BY_TICKS.has(kind));
    return denials.length > 0 || isOld ? EXIT.unknown : EXIT.ok;
  },
};

/** Kinds that ticks alone bring forward, or whose answer comes from what ticks have recorded. */
const BY_TICKS: ReadonlySet<string> = new Set<Kind>(["group", "statefulset", "phasedrollout"]);

const EXPLAIN: Readonly<Record<Kind, Explain>> = {
  group: async (session, name) => {
    const all = await gatherGroups(session, session.namespace);
    const found = all.find(({ group }) => group === name || nameOfGroup(group) === name);
    const [known = found] = found ? [] : await gatherLost(session, name);
    if (!known) return undefined;
    const { state, world } = await gatherNow(known, session);
    return [{ kind: "group", name, answers: addBypasses(explainGroup(state, world), { world }) }];
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
    if (!object) return undefined;
    const view = await createPodViews(session)(readPod(object));
    return [{ kind: "pod", name, answers: await askApiServer(session, view, await explainView(session, view)) }];
  },
  node: async (session, name, isGuess) => {
    const node = await session.cluster.get(nodes, { name }).catch(isGuess ? absentOrForbidden : absent);
    if (!node || node === FORBIDDEN) return node;
    const query = {
      fieldSelector: `spec.nodeName=${name}`,
      ...(session.namespace !== "" && { namespace: session.namespace }),
    };
    const { items } = await readAll({ resource: pods, query, read: readPod }, session);
    const owned = items.filter(({ controller, madeBy }) => controller?.kind === "StatefulSet" || madeBy !== undefined);
    const viewPod = createPodViews(session);
    const explainEviction = async (pod: Pod) => {
      const [eviction] = await explainView(session, await viewPod(pod));
      return eviction ? [[pod.name, eviction] as const] : [];
    };
    const [facts, evictions] = await Promise.all([
      gatherNodeUpdate(session, node),
      Promise.all(owned.map(explainEviction)),
    ]);
    const update = facts && explainNode(facts);
    return [{ kind: "node", name, answers: [...(update ? [update] : []), ...explainDrain(evictions.flat())] }];
  },
  phasedrollout: async (session, name) => {
    const found = (await gatherPhased(session)).filter(({ rollout }) => rollout.name === name);
    return found.length > 0 ? [{ kind: "phasedrollout", name, answers: found.map(explainPhased) }] : undefined;
  },
};

/** The answers, and that of the API server where it has no effect: our webhook has answered a probe, or there is none. */
async function askApiServer(
  session: Session,
  { pod, seen, world }: PodView,
  answers: readonly Explanation[],
): Promise<readonly Explanation[]> {
  if (!answers[0]?.allowed || (seen.reason !== "Guarded" && seen.reason !== "NoWebhook")) return answers;
  return addAnswer(answers, await askEviction(session, pod), { pod, scene: world });
}

const absentOrForbidden = (error: unknown): typeof FORBIDDEN | undefined =>
  hasCode(error, "Forbidden") ? FORBIDDEN : absent(error);

/** Adds the images of revisions: nobody knows a template by its hash. */
const withImages = (answers: readonly Explanation[], { zones }: Pick<World, "zones">): Explanation[] =>
  answers.map((answer) => ({ ...answer, message: nameImages(answer.message, zones) }));

/** The answers about these zones, with their bypasses. */
const addBypasses = (
  answers: readonly Explanation[],
  { world, zones = world.zones }: { readonly world: World; readonly zones?: World["zones"] },
): readonly Explanation[] => withImages([...answers, ...explainBypasses(zones, world)], world);

/** Empty for a StatefulSet in no group. */
async function explainInGroup(session: Session, object: StatefulSet): Promise<readonly Explanation[]> {
  const { group, name } = readZone(object);
  if (object.metadata?.labels?.[LABELS.rolloutGroup] === undefined) return [];
  const { state, world } = await gatherNow(await findGroup(session, group), session);
  const zone = world.zones.find((one) => one.name === name);
  return zone ? addBypasses(explainZone(zone, state, world), { world, zones: [zone] }) : [];
}

async function gatherPhasedOf(session: Session, statefulSet: string): Promise<readonly Phased[]> {
  return (await gatherPhased(session)).filter(({ rollout }) => rollout.targetRef === statefulSet);
}

async function explainView(session: Session, view: PodView): Promise<readonly Explanation[]> {
  const { pod, world, state, guard, unbudgeted } = view;
  const found = withImages(explainPod(pod, state, world), world);
  const answers = guard
    ? denyUnguarded(found, guard, { kind: "Pod", name: pod.name })
    : unbudgeted
      ? denyUnbudgeted(found, unbudgeted, { pod, world })
      : found;
  const isAlone = !state && pod.controller?.kind === "StatefulSet";
  const phased = isAlone ? await gatherPhasedOf(session, pod.controller?.name ?? "") : [];
  return [...answers, ...phased.map((one) => explainPhasedPod(pod, one))];
}

/** `pod/NAME`, or a name alone, of objects of any kind. */
async function explainObject(session: Session, object: string): Promise<readonly Explained[]> {
  if (session.namespace === "") throw usageError("explain needs one namespace: add -n");
  const { kinds, name } = readObject(object);
  const [only, ...others] = kinds;
  const isGuess = others.length > 0;
  const forbidden: Kind[] = [];
  for (const kind of kinds) {
    const explained = await EXPLAIN[kind](session, name, isGuess);
    if (explained === FORBIDDEN) forbidden.push(kind);
    else if (explained) return explained;
  }
  const unread = forbidden.map((kind) => `; ${KINDS[kind].plural} may not be read`).join("");
  const what = isGuess ? "nothing named" : `no ${only}`;
  const message = `${what} ${JSON.stringify(name)} found in namespace ${session.namespace}${unread}`;
  throw await missing(session, { what: only && !isGuess ? KINDS[only].plural : "objects", name, message });
}
