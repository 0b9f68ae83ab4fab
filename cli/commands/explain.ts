/**
 * `zonewise explain`: may the object go now, which rule says no, what blocks it, since when, and what would help
 * (§18.5).
 */
import { absent, hasCode } from "../../infra/errors.ts";
import { disruptionBudgets, rolloutGates } from "../../infra/kubernetes/custom-resources.ts";
import { nodes, pods, type Resource, statefulSets, type StatefulSet } from "../../infra/kubernetes/resources.ts";
import { BUDGET_KIND, parseBudget } from "../../reconciler/budget/zpdb.ts";
import { isReadable, readGate } from "../../reconciler/gates/gate.ts";
import { type Pod, readPod } from "../../reconciler/model/pod.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { nameOfGroup } from "../../reconciler/group-status/status.ts";
import { nameImages, readZone } from "../../reconciler/model/zone.ts";
import type { World } from "../../reconciler/plan/world.ts";
import {
  allow,
  type Blocker,
  deny,
  denyUnguarded,
  denyWithoutTick,
  type Explanation,
  STOPPED,
} from "../decide/answer.ts";
import { edit } from "../decide/doctor/check.ts";
import {
  addAnswer,
  explainBypasses,
  explainGroup,
  explainOrphans,
  explainPod,
  explainRefusals,
  explainUnmanaged,
  explainZone,
} from "../decide/explain-group.ts";
import { explainDrain, explainNode } from "../decide/explain-node.ts";
import { explainPhased, explainPhasedPod, type Phased } from "../decide/explain-phased.ts";
import { holdsOf, lostGroup, withOrphans } from "../decide/group-state.ts";
import { denyUnbudgeted, findUnbudgeted } from "../decide/unbudgeted.ts";
import { EXIT, usageError } from "../exit.ts";
import { KINDS, type Kind, readObject } from "../kinds.ts";
import { askEviction, createGuards, gatherGuard, type Guards } from "../gather/guard.ts";
import { findGroup, gatherAllGroups, gatherGroupStates } from "../gather/groups.ts";
import { findOrphanedZone, gatherOrphans } from "../gather/orphans.ts";
import { gatherNodeUpdate } from "../gather/node-update.ts";
import { gatherPhased } from "../gather/phased.ts";
import { createPodBudgets, createPodWorlds, type PodBudgets } from "../gather/pod-world.ts";
import { gatherRefusals } from "../gather/refusals.ts";
import { markOld } from "../gather/ticking.ts";
import { missing } from "../gather/suggest.ts";
import { gatherScene } from "../gather/world.ts";
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
  summary: "Why a group, StatefulSet, pod or node waits, and what helps",
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
  completes: "objects",
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
const BY_TICKS: ReadonlySet<string> = new Set<Kind>([
  "group",
  "statefulset",
  "phasedrollout",
  "rolloutgate",
  "zoneawarepoddisruptionbudget",
]);

const EXPLAIN: Readonly<Record<Kind, Explain>> = {
  group: async (session, name) => {
    const all = await gatherGroupStates(session, session.namespace);
    const found = all.find(({ group }) => group === name || nameOfGroup(group) === name);
    if (!found) return undefined;
    const known = markOld(found, session.noTicks);
    const world = await gatherScene(known, session);
    const state = withOrphans(known, world.orphans, world.now);
    const answers = explainGroup(state, world);
    const refusals = explainRefusals(await gatherRefusals(session, world.zones), answers, world);
    return [
      {
        kind: "group",
        name,
        answers: withImages([...answers, ...refusals, ...explainBypasses(world.zones, world)], world),
      },
    ];
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
    const pod = readPod(object);
    const tools = createPodTools(session);
    const found = await explainOne(session, pod, tools);
    return [{ ...found, answers: await askApiServer(session, pod, { answers: found.answers, tools }) }];
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
    const tools = createPodTools(session);
    const explained = await Promise.all(owned.map((pod) => explainOne(session, pod, tools)));
    const evictions = explained.flatMap(({ name: pod, answers: [eviction] }) =>
      eviction ? [[pod, eviction] as const] : [],
    );
    const facts = await gatherNodeUpdate(session, node);
    const update = facts && explainNode(facts);
    return [{ kind: "node", name, answers: [...(update ? [update] : []), ...explainDrain(evictions)] }];
  },
  phasedrollout: async (session, name) => {
    const found = (await gatherPhased(session)).filter(({ rollout }) => rollout.name === name);
    return found.length > 0 ? [{ kind: "phasedrollout", name, answers: found.map(explainPhased) }] : undefined;
  },
  rolloutgate: explainByGroups({
    kind: "RolloutGate",
    resource: rolloutGates,
    editAs: "rolloutgate",
    reason: "GateInvalid",
    findProblem(object) {
      const gate = readGate(object);
      return gate && isReadable(gate) ? undefined : "its spec cannot be read";
    },
  }),
  zoneawarepoddisruptionbudget: explainByGroups({
    kind: BUDGET_KIND,
    resource: disruptionBudgets,
    editAs: "zpdb",
    reason: "BudgetInvalid",
    findProblem(object) {
      const budget = parseBudget({ kind: BUDGET_KIND, ...object });
      return "problem" in budget ? `every eviction of its pods is refused: ${budget.problem}` : undefined;
    },
  }),
};

/** A kind of objects that explain itself names as the cause of a wait. */
interface Cause<T> {
  readonly kind: string;
  readonly resource: Resource<T>;
  /** Its name in the command that corrects it. */
  readonly editAs: string;
  /** That of an object that cannot be read. */
  readonly reason: "GateInvalid" | "BudgetInvalid";
  readonly findProblem: (object: T) => string | undefined;
}

/** Explains a cause by what makes it unreadable, and by the groups that wait for it. */
function explainByGroups<T extends object>({ kind, resource, editAs, reason, findProblem }: Cause<T>): Explain {
  return async (session, name, isGuess) => {
    const ref = { namespace: session.namespace, name };
    const object = await session.cluster.get(resource, ref).catch(isGuess ? absentOrForbidden : absent);
    if (object === FORBIDDEN) return FORBIDDEN;
    if (!object) return undefined;
    const isNamed = (one: Blocker): boolean => one.kind === kind && one.name === name;
    const groups = await gatherGroupStates(session, session.namespace);
    const waiting = groups.filter((state) => holdsOf(state).some(({ objects }) => objects.some(isNamed)));
    const explained = await Promise.all(waiting.map(async ({ group }) => await EXPLAIN.group(session, group, false)));
    const answers = explained.flatMap((found) => (found === FORBIDDEN ? [] : (found ?? [])));
    const message = findProblem(object);
    if (message === undefined && answers.length > 0) return answers;
    const own =
      message === undefined
        ? allow("wait", "no rollout group waits for it", "Groups")
        : deny({
            question: "valid",
            reason,
            rule: "its spec is valid",
            message,
            objects: [],
            remedy: edit(ref, editAs),
          });
    return [{ kind: kind.toLowerCase(), name, answers: [own] }, ...answers];
  };
}

/** The answers, and that of the API server where it has no effect: our webhook has answered a probe, or there is none. */
async function askApiServer(
  session: Session,
  pod: Pod,
  { answers, tools }: { readonly answers: readonly Explanation[]; readonly tools: PodTools },
): Promise<readonly Explanation[]> {
  if (!answers[0]?.allowed) return answers;
  const { reason } = await tools.guards(pod.namespace);
  if (reason !== "Guarded" && reason !== "NoWebhook") return answers;
  return addAnswer(answers, await askEviction(session, pod), { pod, scene: (await tools.worlds(pod)).world });
}

const absentOrForbidden = (error: unknown): typeof FORBIDDEN | undefined =>
  hasCode(error, "Forbidden") ? FORBIDDEN : absent(error);

/** Adds the images of revisions: nobody knows a template by its hash. */
const withImages = (answers: readonly Explanation[], { zones }: Pick<World, "zones">): Explanation[] =>
  answers.map((answer) => ({ ...answer, message: nameImages(answer.message, zones) }));

/** Empty for a StatefulSet in no group. */
async function explainInGroup(session: Session, object: StatefulSet): Promise<readonly Explanation[]> {
  const { group, name } = readZone(object);
  if (object.metadata?.labels?.[LABELS.rolloutGroup] === undefined) return [];
  const known = markOld(await findGroup(session, session.namespace, group), session.noTicks);
  const world = await gatherScene(known, session);
  const state = withOrphans(known, world.orphans, world.now);
  const zone = world.zones.find((one) => one.name === name);
  if (!zone) return [];
  const answers = explainZone(zone, state, world);
  const refusals = explainRefusals(await gatherRefusals(session, [zone]), answers, world);
  return withImages([...answers, ...refusals, ...explainBypasses([zone], world)], world);
}

/** What only pods tell of, as their StatefulSet is gone. */
async function explainLeft(session: Session, kinds: readonly Kind[], name: string): Promise<Explained | undefined> {
  const orphaned = kinds.includes("statefulset") ? await explainOrphanedZone(session, name) : undefined;
  return orphaned ?? (kinds.includes("group") ? await explainLostGroup(session, name) : undefined);
}

/** A StatefulSet that is gone, or has none of the pods that it has made. */
async function explainOrphanedZone(session: Session, name: string): Promise<Explained | undefined> {
  const found = await findOrphanedZone(name, session).catch(absentOrForbidden);
  if (!found || found === FORBIDDEN) return undefined;
  const scene = { namespace: session.namespace, group: found.group, zones: [], budgets: [] };
  return { kind: "statefulset", name, answers: [explainOrphans(found.orphan, scene, session.clock.now())] };
}

/** A group that has pods, and no StatefulSet any more. */
async function explainLostGroup(session: Session, name: string): Promise<Explained | undefined> {
  const all = await gatherAllGroups(session, session.namespace);
  const lost = all.filter(({ group, zones }) => zones.length === 0 && [group, nameOfGroup(group)].includes(name));
  const [found] = await gatherOrphans(lost, session);
  const now = session.clock.now();
  const state = found && lostGroup(found, found.orphans, now);
  return state && { kind: "group", name, answers: explainGroup(state, await gatherScene(state, session)) };
}

async function gatherPhasedOf(session: Session, statefulSet: string): Promise<readonly Phased[]> {
  return (await gatherPhased(session)).filter(({ rollout }) => rollout.targetRef === statefulSet);
}

/** Tools that share their reads for several pods. */
interface PodTools {
  readonly worlds: ReturnType<typeof createPodWorlds>;
  readonly guards: Guards;
  readonly podBudgets: PodBudgets;
}

const createPodTools = (session: Session): PodTools => ({
  worlds: createPodWorlds(session),
  guards: createGuards(session),
  podBudgets: createPodBudgets(session),
});

async function explainOne(session: Session, pod: Pod, tools: PodTools): Promise<Explained> {
  const { world, state, group } = await tools.worlds(pod);
  const guard = await gatherGuard(tools.guards, pod, world);
  const found = withImages(explainPod(pod, state, world), world);
  const unbudgeted =
    group === undefined || guard
      ? undefined
      : findUnbudgeted({ pod, world, group }, await tools.podBudgets(pod.namespace));
  const answers = guard
    ? denyUnguarded(found, guard, { kind: "Pod", name: pod.name })
    : unbudgeted
      ? denyUnbudgeted(found, unbudgeted, { pod, world })
      : found;
  const phased =
    state || pod.controller?.kind !== "StatefulSet" ? [] : await gatherPhasedOf(session, pod.controller.name);
  return { kind: "pod", name: pod.name, answers: [...answers, ...phased.map((one) => explainPhasedPod(pod, one))] };
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
  const left = await explainLeft(session, kinds, name);
  if (left) return [left];
  const unread = forbidden.map((kind) => `; ${KINDS[kind].completes} may not be read`).join("");
  const what = isGuess ? "nothing named" : `no ${only}`;
  const message = `${what} ${JSON.stringify(name)} found in namespace ${session.namespace}${unread}`;
  throw await missing(session, { what: only && !isGuess ? KINDS[only].completes : "objects", name, message });
}
