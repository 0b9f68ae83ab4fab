/** Rare moments of rollouts: templates that are taken back, windows that close, pods that do not come up. */
import { dig, listOf, textOf, timestamp } from "../../emulator/objects.ts";
import { NAMESPACE } from "../names.ts";
import {
  type Action,
  annotateZone,
  changeTemplate,
  PATIENCE_MS,
  pause,
  type People,
  PODS,
  setOf,
  until as waitUntil,
} from "../person.ts";
import { FREEZES } from "../windows/shape.ts";

export const SECOND = 1000;
const LOOK_MS = 500;

const podsOf = ({ world }: People, zone: string) =>
  world.store.list("pods", NAMESPACE).filter(({ metadata }) => metadata.labels?.["name"] === zone);
const imageOf = (people: People, zone: string): string =>
  textOf(dig(listOf(dig(setOf(people, zone), "spec", "template", "spec", "containers"))[0], "image")) ?? "";
const statusOf = (people: People, zone: string, field: string): unknown => dig(setOf(people, zone), "status", field);
export const newImage = ({ draw }: People): string => `app:${draw.between(1000, 9999)}`;

export async function roll(people: People, image = newImage(people), zones = people.shape.zones): Promise<void> {
  for (const zone of zones) await changeTemplate(people, zone, image);
}

/** Annotations of all zones. */
async function annotate(people: People, annotations: Readonly<Record<string, string | null>>): Promise<void> {
  for (const zone of people.shape.zones) await annotateZone(people, zone, annotations);
}

/** Resolves as it holds, or once that takes too long. */
export const until = (people: People, holds: () => boolean, ms = PATIENCE_MS): Promise<boolean> =>
  waitUntil(people, holds, { ms, stepMs: LOOK_MS });

/** Mostly begins once the others stop, who would be in the way. */
export async function undisturbed(people: People): Promise<void> {
  if (people.draw.chance(0.7)) await until(people, () => !people.isTroubled(), 900 * SECOND);
}

/** All zones get a template; once a pod of this zone has it, people begin to take it back. */
async function rollInto(people: People, zone: string): Promise<void> {
  await roll(people);
  const hasBegun = (): boolean => {
    const [updated, wanted] = [statusOf(people, zone, "updatedReplicas"), dig(setOf(people, zone), "spec", "replicas")];
    return (
      Number(updated) > 0 &&
      Number(updated) <= Number(wanted) &&
      statusOf(people, zone, "updateRevision") !== statusOf(people, zone, "currentRevision")
    );
  };
  await until(people, hasBegun, 240 * SECOND);
}

export const TAKEN_BACK: Readonly<Record<string, Action>> = {
  /** The template of a zone that has begun is taken back; a freeze holds the others, which may get a third one. */
  takenBack: async (people) => {
    await undisturbed(people);
    const { draw, shape, schedule } = people;
    const isSettled = (one: string): boolean =>
      statusOf(people, one, "updateRevision") === statusOf(people, one, "currentRevision") &&
      Number(statusOf(people, one, "updatedReplicas")) >= Number(dig(setOf(people, one), "spec", "replicas"));
    await until(people, () => shape.zones.every(isSettled), 400 * SECOND);
    const zone = draw.of(shape.zones.slice(0, 2));
    const [old, others] = [imageOf(people, zone), shape.zones.filter((one) => one !== zone)];
    await rollInto(people, zone);
    const isFrozen = draw.chance(0.7);
    const now = schedule.now();
    if (isFrozen) await annotate(people, { [FREEZES]: `${timestamp(now)}/${timestamp(now + 900 * SECOND)}` });
    // A pod that is not ready waits for no freeze.
    const isReady = (): boolean =>
      Number(statusOf(people, zone, "readyReplicas")) >= Number(dig(setOf(people, zone), "spec", "replicas"));
    if (isFrozen) await until(people, isReady, 30 * SECOND);
    await changeTemplate(people, zone, old);
    if (draw.chance(0.6)) await roll(people, draw.chance(0.3) ? old : newImage(people), others);
    await pause(people, draw.between(60, 150) * SECOND);
    if (isFrozen) await annotate(people, { [FREEZES]: null });
  },
  /** Nobody but a pod that was made meanwhile has seen the template. */
  takenBackAtOnce: async (people) => {
    await undisturbed(people);
    const { draw, shape, world } = people;
    const zone = draw.of(shape.zones);
    const old = imageOf(people, zone);
    const [pod] = podsOf(people, zone);
    const revision = statusOf(people, zone, "updateRevision");
    await changeTemplate(people, zone, newImage(people));
    await until(people, () => statusOf(people, zone, "updateRevision") !== revision, 5 * SECOND);
    if (pod) await world.ask("human", "DELETE", `${PODS}/${pod.metadata.name}`);
    await until(
      people,
      () => podsOf(people, zone).every(({ metadata }) => metadata.uid !== pod?.metadata.uid),
      5 * SECOND,
    );
    await pause(people, 300);
    await changeTemplate(people, zone, old);
  },
};

/** No freeze. */
export const rolloutsRight: Action = async (people) => {
  if (people.shape.windows === undefined) await annotate(people, { [FREEZES]: null });
};
