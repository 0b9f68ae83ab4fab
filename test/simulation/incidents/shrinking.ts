/** What incidents of downscales are made of: two zones, one of which is in trouble while the other is to shrink. */
import { GROUP } from "../names.ts";
import { configurationOfOthers, OTHERS, type OfOthers } from "../others.ts";
import { type Action, annotatePod, pause, type People, recreate, scaleZone, setOf, TEMPLATES_PATH } from "../person.ts";
import { replicasOf } from "../oracles/stored.ts";

const CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1";

export const sizeOf = (people: People, zone: string): number => replicasOf(setOf(people, zone));
export const afterwards = (people: People, least = 5000): Promise<void> =>
  pause(people, people.draw.between(least, people.draw.of([20_000, 60_000])));

/** Two zones: one that is in trouble, and another one. Followers shrink after the first one. */
export function twoZones({ shape, draw }: People): { readonly ill: string; readonly other: string } {
  const ill = shape.followers || draw.chance(0.5) ? (shape.zones.at(-1) ?? "") : draw.of(shape.zones);
  const others = shape.zones.filter((zone) => zone !== ill);
  return { ill, other: others.length > 0 ? draw.of(others) : ill };
}

/** A zone is to have fewer pods: by a person, its leader or the template. */
export async function shrink(people: People, zone: string, { by = 1, least = 1 } = {}): Promise<void> {
  const { shape, world, draw } = people;
  const first = shape.followers && draw.chance(0.7) ? (shape.zones[0] ?? zone) : zone;
  const replicas = Math.max(least, sizeOf(people, first) - by);
  if (!shape.mirrored) return await scaleZone(people, first, replicas, draw.between(1, 3));
  await world.ask("autoscaler", "PATCH", `${TEMPLATES_PATH}/${GROUP}/scale`, { spec: { replicas } });
}

/** Meanwhile others judge downscales of a zone, too. */
export async function withOthers(people: People, others: OfOthers, act: () => Promise<unknown>): Promise<void> {
  const { plural, object } = configurationOfOthers(others);
  await recreate(people, `${CONFIGURATIONS}/${plural}`, object);
  await act();
  await people.world.ask("human", "DELETE", `${CONFIGURATIONS}/${plural}/zz-${OTHERS}`);
}

/** Annotations of the last pods of a zone, for a while. */
export async function withPods(
  people: People,
  zone: string,
  annotations: Readonly<Record<string, string>>,
  act: Action,
) {
  const size = sizeOf(people, zone);
  const pods = Array.from({ length: Math.min(2, size) }, (_, i) => `${zone}-${size - 1 - i}`);
  for (const pod of pods) await annotatePod(people, pod, annotations);
  await act(people);
  const none = Object.fromEntries(Object.keys(annotations).map((key) => [key, null]));
  for (const pod of pods) await annotatePod(people, pod, none);
}

/** A zone is to have so many pods, by whoever scales. */
const resize = (people: People, zone: string, replicas: number): Promise<unknown> =>
  people.shape.mirrored
    ? people.world.ask("autoscaler", "PATCH", `${TEMPLATES_PATH}/${GROUP}/scale`, { spec: { replicas } })
    : scaleZone(people, zone, replicas, 3);

/** While the zone is to have fewer pods. */
export async function shrunk(people: People, zone: string, act: () => Promise<unknown>, by = 1): Promise<void> {
  const { shape } = people;
  const first = shape.followers ? (shape.zones[0] ?? zone) : zone;
  const replicas = sizeOf(people, first);
  await shrink(people, zone, { by });
  await act();
  await resize(people, first, replicas);
}
