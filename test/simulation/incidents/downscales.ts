/** Zones that shrink while another one is in trouble that lasts, or while others have a say in it. */
import { put } from "../../emulator/objects.ts";
import { GROUP, NAMESPACE } from "../names.ts";
import { replicasOf } from "../oracles/stored.ts";
import { configurationOfOthers, OTHERS, type OfOthers } from "../others.ts";
import { type Action, annotatePod, pause, type People, recreate, scaleZone, SETS, TEMPLATES_PATH } from "../person.ts";
import { type Shape, zoneObject } from "../shape.ts";
import type { Area } from "./incident.ts";

const TROUBLED_MS = 240_000;
const CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1";

const sizeOf = (people: People, zone: string): number =>
  replicasOf(people.world.store.get("statefulsets.apps", NAMESPACE, zone));
const afterwards = (people: People, least = 5000): Promise<void> =>
  pause(people, people.draw.between(least, people.draw.of([20_000, 60_000])));

/** Two zones: one that is in trouble, and another one. Followers shrink after the first one. */
function twoZones({ shape, draw }: People): { readonly ill: string; readonly other: string } {
  const ill = shape.followers || draw.chance(0.5) ? (shape.zones.at(-1) ?? "") : draw.of(shape.zones);
  const others = shape.zones.filter((zone) => zone !== ill);
  return { ill, other: others.length > 0 ? draw.of(others) : ill };
}

/** A zone is to have fewer pods: by a person, its leader or the template. */
async function shrink(people: People, zone: string, { by = 1, least = 1 } = {}): Promise<void> {
  const { shape, world, draw } = people;
  const first = shape.followers && draw.chance(0.7) ? (shape.zones[0] ?? zone) : zone;
  const replicas = Math.max(least, sizeOf(people, first) - by);
  if (!shape.mirrored) return await scaleZone(people, first, replicas, draw.between(1, 3));
  await world.ask("autoscaler", "PATCH", `${TEMPLATES_PATH}/${GROUP}/scale`, { spec: { replicas } });
}

/** Meanwhile others judge downscales of a zone, too. */
async function withOthers(people: People, others: OfOthers, act: () => Promise<unknown>): Promise<void> {
  const { plural, object } = configurationOfOthers(others);
  await recreate(people, `${CONFIGURATIONS}/${plural}`, object);
  await act();
  await people.world.ask("human", "DELETE", `${CONFIGURATIONS}/${plural}/zz-${OTHERS}`);
}

/** Annotations of the last pods of a zone, for a while. */
async function withPods(people: People, zone: string, annotations: Readonly<Record<string, string>>, act: Action) {
  const size = sizeOf(people, zone);
  const pods = Array.from({ length: Math.min(2, size) }, (_, i) => `${zone}-${size - 1 - i}`);
  for (const pod of pods) await annotatePod(people, pod, annotations);
  await act(people);
  const none = Object.fromEntries(Object.keys(annotations).map((key) => [key, null]));
  for (const pod of pods) await annotatePod(people, pod, none);
}

const incidents: Readonly<Record<string, Action>> = {
  /** What is admitted is refused by others, now or again and again; meanwhile another zone wants to shrink. */
  othersRefuse: (people) => {
    const { draw } = people;
    const { ill, other } = twoZones(people);
    const others = { zone: ill, ms: draw.of([1, 3000, 15_000]) };
    return withOthers(people, others, async () => {
      const tried = scaleZone(people, ill, Math.max(1, sizeOf(people, ill) - 1), draw.of([1, 1, 3, 12]));
      await pause(people, draw.of([2000, 20_000, 50_000, 75_000]) + draw.below(12_000));
      await shrink(people, other);
      await tried;
      await pause(people, draw.of([1000, 90_000]));
    });
  },
  /** Others give a zone another number than was asked for, or leave it as it is. */
  othersChange: (people) => {
    const { draw, shape } = people;
    const [first = "", ...others] = shape.zones;
    const zone = draw.of(shape.followers && others.length > 0 ? others : shape.zones);
    const size = sizeOf(people, zone);
    const replicas = draw.chance(0.4) ? size : Math.max(1, size - 1);
    return withOthers(people, { zone, ms: draw.of([1, 1000]), replicas }, async () => {
      await shrink(people, shape.followers ? first : zone, { by: 2, least: 0 });
      await pause(people, draw.between(5000, 20_000));
    });
  },
  /** Pods refuse their preparation. */
  refusingPods: (people) => {
    const { other: zone } = twoZones(people);
    return withPods(people, zone, { "sim/refuses": "true" }, async () => {
      await shrink(people, zone);
      await pause(people, people.draw.between(10_000, 70_000));
    });
  },
  /** The Service of a zone's pods has a name that is no label of a host. */
  wrongService: async (people) => {
    const { world, shape } = people;
    const { other: zone } = twoZones(people);
    const make = async (serviceName: string): Promise<void> => {
      await world.ask("human", "DELETE", `${SETS}/${zone}`, { propagationPolicy: "Orphan" });
      await recreate(people, SETS, put(zoneObject(shape, zone), ["spec", "serviceName"], serviceName));
    };
    await make("elsewhere.example");
    await pause(people, 2000);
    await shrink(people, zone);
    await afterwards(people, 20_000);
    await make(zone);
  },
};

export const DOWNSCALES_AREA: Area = {
  shape: (shape, draw) => {
    if (shape.nodes) return undefined;
    const by = draw.of(["people", "leader", "template"]);
    const prepared = draw.chance(0.5);
    const followers = by === "leader";
    const faults = Object.fromEntries(Object.keys(shape.faults).map((fault) => [fault, 0])) as Shape["faults"];
    return {
      downscales: { asOriginal: draw.chance(0.6) },
      replicas: draw.between(2, 4),
      followers,
      prepared,
      accelerates: false,
      mirrored: by === "template" ? { delayMs: draw.of([0, 60_000, 60_000]) } : undefined,
      secondsBetween: (followers && prepared) || draw.chance(0.4) ? 60 : 0,
      budget: draw.chance(0.5) ? 1 : undefined,
      gate: undefined,
      windows: undefined,
      certificate: undefined,
      ignore: false,
      skewMs: 0,
      firstCalls: undefined,
      answers: undefined,
      watches: undefined,
      faults: draw.chance(0.7) ? faults : shape.faults,
      actions: Math.min(shape.actions, draw.of([0, 3, 8])),
      troubledMs: Math.max(shape.troubledMs, TROUBLED_MS),
    };
  },
  incidents,
};
