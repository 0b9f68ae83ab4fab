/** What befalls a StatefulSet that a PhasedRollout rolls, and the PhasedRollout, in the middle of a release. */
import { dig, type Draft, fieldsOf, numberOf, timestamp } from "../../emulator/objects.ts";
import {
  drawPhased,
  PHASED,
  PHASED_REPLICAS,
  PHASED_ROLLOUTS,
  phasedObject,
  type PhasedShape,
  phasedSet,
} from "../checks/objects.ts";
import { PHASED_PATH, phasedPath, podTemplate, promoteStep, setPath } from "../checks/people.ts";
import { HELD } from "../checks/phased-set.ts";
import { BUDGETS_PATH } from "../budgets.ts";
import { NAMESPACE } from "../names.ts";
import {
  type Action,
  freezeReconcilers,
  insist,
  pause,
  type People,
  recreate,
  scale as scaleSet,
  setOf as zoneOf,
  SETS,
  until as waitUntil,
  without,
} from "../person.ts";
import { CALM } from "../shape.ts";
import type { Area } from "./incident.ts";

const GUARD = ["mutatingwebhookconfigurations", "raise-partition-zonewise"] as const;
const [CLAIM, ORIGINAL] = ["sts.plus/phasedRollout", "sts.plus/original-partition"];
/** Another PhasedRollout of the same StatefulSet, and a budget that selects that one alone: it lets no pod go. */
const [RIVAL, BUDGET] = [`${PHASED}-rival`, PHASED];
const LOOK_MS = 500;
const PATIENCE_MS = 60_000;
const SETTLE_MS = 20_000;
/** So long the trouble lasts at least, with so few other actions: an incident takes a minute. */
const [TROUBLED_MS, ACTIONS] = [240_000, 8];
const HOUR_MS = 3_600_000;

const setOf = (people: People) => zoneOf(people, PHASED);
const statusOf = ({ world }: People) => fieldsOf(world.store.get(PHASED_ROLLOUTS, NAMESPACE, PHASED)?.["status"]);
const partitionOf = (people: People): number =>
  numberOf(dig(setOf(people), "spec", "updateStrategy", "rollingUpdate", "partition")) ?? 0;

/** Until it is so, or nobody waits for it any longer. */
const until = (people: People, isSo: () => boolean, ms = PATIENCE_MS): Promise<boolean> =>
  waitUntil(people, () => isSo() || !people.isTroubled(), { ms, stepMs: LOOK_MS });

export const write = (people: People, spec: object): Promise<void> => insist(people, setPath, { spec });
const scale = (people: People, replicas: number) => scaleSet(people, PHASED, replicas);
export const roll = (people: People, crashes = false): Promise<void> =>
  write(people, { template: podTemplate(`db:${people.draw.between(100, 999)}`, crashes) });

/** Nothing rolls, or nobody waits for that any longer. */
export const settle = (people: People): Promise<boolean> =>
  until(
    people,
    () => statusOf(people)["phase"] === "Updated" && dig(setOf(people), "status", "readyReplicas") === PHASED_REPLICAS,
    SETTLE_MS,
  );

/** Another template, whose steps a person promotes until so many pods have it. */
export async function release(people: People, pods: number, crashes = false): Promise<void> {
  await roll(people, crashes);
  await promote(people, pods);
}

/** A person promotes steps until so many pods are released. */
export async function promote(people: People, pods: number): Promise<void> {
  const isReleased = (): boolean => partitionOf(people) <= PHASED_REPLICAS - pods;
  const end = people.schedule.now() + PATIENCE_MS;
  while (!isReleased() && people.schedule.now() < end && people.isTroubled()) {
    await promoteStep(people);
    await pause(people, LOOK_MS);
  }
}

/** The patch that brings the template back that the StatefulSet has now. */
export function templateNow(people: People): object {
  const template = fieldsOf(dig(setOf(people), "spec", "template"));
  const annotations = dig(template, "metadata", "annotations") as object | undefined;
  return {
    template: {
      metadata: { annotations: annotations ? { "sim/crash": null, ...annotations } : null },
      spec: template["spec"],
    },
  };
}

export const unguarded = (people: People, act: () => Promise<unknown>): Promise<void> => without(people, GUARD, act);

/** While a budget selects the pods of this one StatefulSet: it knows of no other zone, and lets none go. */
async function underBudget(people: People, act: () => Promise<unknown>): Promise<void> {
  await recreate(people, BUDGETS_PATH, {
    apiVersion: "rollout-operator.grafana.com/v1",
    kind: "ZoneAwarePodDisruptionBudget",
    metadata: { name: BUDGET, namespace: NAMESPACE },
    spec: { maxUnavailable: 1, selector: { matchLabels: { app: PHASED } } },
  });
  await act();
  await people.world.ask("human", "DELETE", `${BUDGETS_PATH}/${BUDGET}`);
}

/** Until the checks of a step have passed that a budget holds. */
const hold = (people: People, act: () => Promise<unknown>): Promise<void> =>
  underBudget(people, async () => {
    await roll(people);
    await until(people, () => isPassed(people), 2 * PATIENCE_MS);
    await act();
  });

/** The step that waits has all successes that it asks for. */
const isPassed = (people: People): boolean =>
  (numberOf(dig(statusOf(people), "rollingPodStatus", "consecutiveSuccessfulChecks")) ?? 0) >=
  (people.shape.phased?.successThreshold ?? 1);

const annotate = (people: People, path: string, annotations: object): Promise<void> =>
  insist(people, path, { metadata: { annotations } });

/** It is deleted without its pods, and made again around them, before anybody has seen that it was away. */
async function recreateSet(people: People, manifest: Draft): Promise<void> {
  const { world, draw } = people;
  const stored = setOf(people);
  // What was its current revision could never be ready.
  if (!stored || dig(stored, "spec", "template", "metadata", "annotations", "sim/crash") !== undefined) return;
  if (draw.chance(0.8)) freezeReconcilers(people, draw.between(3000, 8000));
  await world.ask("human", "DELETE", setPath, { propagationPolicy: "Orphan" });
  await recreate(people, SETS, manifest);
  await until(people, () => dig(setOf(people), "status", "currentRevision") !== undefined);
}

export const anotherSet = ({ draw }: People, phased: PhasedShape): Draft =>
  phasedSet(phased, draw.between(100, 999), draw.of([0, PHASED_REPLICAS, HELD]));

/** Its pods are updated, but for some, by a template that is taken back. */
async function revert(people: People, crashes: boolean): Promise<void> {
  const { draw } = people;
  const before = templateNow(people);
  await release(people, crashes ? 1 : draw.between(1, 2), crashes);
  await pause(people, draw.between(1, 3000));
  if (draw.chance(0.3)) freezeReconcilers(people, draw.between(2000, 10_000));
  if (draw.chance(0.4)) await unguarded(people, () => write(people, before));
  else await write(people, before);
}

export const withPhased =
  (act: (people: People, phased: PhasedShape) => Promise<unknown>): Action =>
  (people) => {
    const { phased } = people.shape;
    return phased ? act(people, phased) : Promise.resolve();
  };

const INCIDENTS: Readonly<Record<string, Action>> = {
  /** Pods that come with the latest template, before anybody has seen more replicas. */
  scaleOut: async (people) => {
    const { draw } = people;
    await release(people, draw.between(1, 2));
    if (draw.chance(0.6)) freezeReconcilers(people, draw.of([1000, 6000, 20_000]));
    await scale(people, PHASED_REPLICAS + draw.between(1, 3));
    await pause(people, draw.between(5000, 90_000));
    await scale(people, PHASED_REPLICAS);
  },
  /** A budget holds a pod whose checks have passed, for longer than they count. */
  holdLong: (people) => hold(people, () => pause(people, people.draw.between(60_000, 130_000))),
  /** And somebody pauses as the budget goes. */
  holdAndPause: async (people) => {
    await hold(people, () => annotate(people, phasedPath, { "sts.plus/pause": "true" }));
    await pause(people, people.draw.between(10_000, 60_000));
    await annotate(people, phasedPath, { "sts.plus/pause": null });
  },
  /** And somebody lowers the partition, of which no webhook is told. */
  holdAndLower: (people) =>
    hold(people, () =>
      unguarded(people, () =>
        write(people, { updateStrategy: { rollingUpdate: { partition: people.draw.between(0, 1) } } }),
      ),
    ),
  revert: async (people) => {
    const { draw } = people;
    await revert(people, draw.chance(0.4));
    await pause(people, draw.between(1, 20_000));
  },
  /** A budget lets none of its pods go. */
  revertUnderBudget: async (people) => {
    const { draw } = people;
    const before = templateNow(people);
    await release(people, draw.between(1, 2));
    await underBudget(people, async () => {
      await (draw.chance(0.5) ? unguarded(people, () => write(people, before)) : write(people, before));
      await pause(people, draw.between(10_000, 40_000));
    });
  },
  /** Its PhasedRollout is made anew in the middle of that. */
  revertAndReplace: withPhased(async (people, phased) => {
    await revert(people, false);
    await people.world.ask("human", "DELETE", phasedPath);
    await recreate(people, PHASED_PATH, phasedObject(phased));
  }),
  thirdTemplate: async (people) => {
    await release(people, people.draw.between(1, 2));
    await unguarded(people, () => roll(people));
  },
  /** What others write again, without the partition and the claim that it has by now; other ordinals they only try. */
  applyAgain: withPhased(async (people, phased) => {
    const { draw, world } = people;
    await release(people, 1);
    const partition = draw.between(0, 1);
    const template = dig(setOf(people), "spec", "template");
    const manifest = phasedSet(phased, 1, partition);
    const spec = { ...(manifest["spec"] as object), template };
    if (draw.chance(0.5)) await world.ask("gitops", "PUT", setPath, { ...manifest, spec });
    else await write(people, { updateStrategy: { rollingUpdate: { partition } } });
    await world.ask("gitops", "PATCH", `${setPath}?dryRun=All`, { spec: { ordinals: { start: 1 } } });
  }),
  /** In the middle of a release, with the template that it has. */
  recreateAlike: withPhased(async (people, phased) => {
    await release(people, 1);
    await until(people, () => dig(statusOf(people), "rollingPodStatus", "lastAttemptTime") !== undefined);
    await recreateSet(people, { ...phasedSet(phased), spec: setOf(people)?.["spec"] });
  }),
  /** And grows before its pods have the template. */
  recreateAndScale: withPhased(async (people, phased) => {
    await recreateSet(people, anotherSet(people, phased));
    await until(people, () => statusOf(people)["rollingPodStatus"] !== undefined, 20_000);
    await scale(people, PHASED_REPLICAS + people.draw.between(1, 2));
    await pause(people, people.draw.between(10_000, 40_000));
    await scale(people, PHASED_REPLICAS);
  }),
  /** Around its pods, and a template that does not serve comes and goes before these are replaced. */
  recreateAndRevert: withPhased(async (people, phased) => {
    await recreateSet(people, anotherSet(people, phased));
    await until(people, () => statusOf(people)["rollingPodStatus"] !== undefined, 20_000);
    await revert(people, true);
  }),
  /** As somebody had held it who is gone by now: so it is given back. */
  heldBefore: withPhased(async (people, phased) => {
    const { world, draw } = people;
    await world.ask("human", "DELETE", phasedPath);
    await until(people, () => !world.store.get(PHASED_ROLLOUTS, NAMESPACE, PHASED));
    await write(people, { updateStrategy: { rollingUpdate: { partition: HELD } } });
    await recreate(people, PHASED_PATH, phasedObject(phased));
    await until(people, () => setOf(people)?.metadata.annotations?.[CLAIM] === PHASED);
    await pause(people, draw.between(1, 20_000));
    await world.ask("human", "DELETE", phasedPath);
    await recreate(people, PHASED_PATH, phasedObject(phased));
  }),
  /** Without its claim, or with that of a PhasedRollout which is gone. */
  loseClaim: (people) =>
    annotate(people, setPath, { [CLAIM]: people.draw.of([null, `${PHASED}-gone`]), [ORIGINAL]: null }),
  /** Two of them for one StatefulSet. */
  rival: withPhased(async (people, phased) => {
    const { world, draw } = people;
    const object = phasedObject(phased);
    await recreate(people, PHASED_PATH, { ...object, metadata: { ...object.metadata, name: RIVAL } });
    await pause(people, draw.between(5000, 40_000));
    await world.ask("human", "DELETE", `${PHASED_PATH}/${RIVAL}`);
    await until(people, () => !world.store.get(PHASED_ROLLOUTS, NAMESPACE, RIVAL), 10 * PATIENCE_MS);
  }),
  /** As a reconciler has written them whose clock was wrong. */
  timesAhead: async (people) => {
    await roll(people);
    await until(people, () => statusOf(people)["rollingPodStatus"] !== undefined);
    const time = timestamp(people.schedule.now() + HOUR_MS);
    const rollingPodStatus = { stepStartTime: time, analisysStartTime: time };
    await insist(people, `${phasedPath}/status`, { status: { rollingPodStatus } });
  },
};

/** Each begins once nothing rolls. */
export const onceSettled = (incidents: Readonly<Record<string, Action>>): Area["incidents"] =>
  Object.fromEntries(
    Object.entries(incidents).map(([name, act]): [string, Action] => [
      name,
      (people) => settle(people).then(() => act(people)),
    ]),
  );

/** Checks are soon over; most of the releases are a person's. */
export const PHASED_AREA: Area = {
  shape: ({ phased, troubledMs, actions, faults, firstCalls, answers }, draw) => {
    const own = { ...(phased ?? drawPhased(draw)), initialDelaySeconds: 0, periodSeconds: 5 };
    const isCalm = draw.chance(0.5);
    return {
      phased: { ...own, successThreshold: draw.between(1, 2), readyAfterMs: draw.of([300, 3000, 8000]) },
      troubledMs: Math.max(troubledMs, TROUBLED_MS),
      actions: Math.min(actions, ACTIONS),
      ...(isCalm ? CALM : { faults, firstCalls, answers }),
    };
  },
  incidents: onceSettled(INCIDENTS),
};
