/** Rare moments of gates: gates that come and go, and templates that are taken back. */
import { dig, fieldsOf, listOf } from "../../emulator/objects.ts";
import { drawGate, GATE, gateObject, GATES } from "../checks/objects.ts";
import { GATES_PATH, gatePath } from "../checks/people.ts";
import type { Draw } from "../draw.ts";
import { GROUP, NAMESPACE } from "../names.ts";
import { type Action, insist, pause, recreate, SETS } from "../person.ts";
import { CALM, type Shape, zoneObject } from "../shape.ts";
import type { Area } from "./incident.ts";
import { newImage, roll, rolloutsRight, SECOND, TAKEN_BACK, undisturbed, until } from "./rollouts.ts";

const BOTH = ["BeforeFirstZone", "BetweenZones"];

const OF_GATES: Readonly<Record<string, Action>> = {
  /** Another group's name, by mistake. */
  otherGroup: async (people) => {
    const { draw, world } = people;
    await roll(people);
    const stages = (): readonly unknown[] => listOf(dig(world.store.get(GATES, NAMESPACE, GATE), "status", "stages"));
    await until(people, () => stages().some((one) => listOf(dig(one, "checks")).length > 0));
    await insist(people, gatePath, { spec: { group: "other" } });
    await pause(people, draw.between(10, 40) * SECOND);
    await insist(people, gatePath, { spec: { group: GROUP } });
  },
  /** A zone is made anew around its pods with another template, and its gate as well. */
  madeAnew: async (people) => {
    await undisturbed(people);
    const { draw, shape, world } = people;
    const zone = draw.of(shape.zones);
    await world.ask("human", "DELETE", gatePath);
    await world.ask("human", "DELETE", `${SETS}/${zone}`, { propagationPolicy: "Orphan" });
    await pause(people, draw.between(1, 5) * SECOND);
    const { spec, ...rest } = zoneObject(shape, zone);
    const template = fieldsOf(dig(spec, "template"));
    const containers = [{ name: "main", image: newImage(people) }];
    const renewed = { ...template, spec: { ...fieldsOf(template["spec"]), containers } };
    await recreate(people, SETS, { ...rest, spec: { ...fieldsOf(spec), template: renewed } });
    if (shape.gate) await recreate(people, GATES_PATH, gateObject(shape.gate));
  },
};

/** Each has a gate and zones that are not replaced at once, and half of them no fault of the network. */
function shape({ gate, prepared, replicas, maxUnavailable }: Shape, draw: Draw): Partial<Shape> {
  return {
    maxUnavailable: Math.min(maxUnavailable, Math.max(1, replicas - 1)),
    gate: gate ?? { ...drawGate(draw), when: BOTH, ...(prepared && { last: "good" as const }) },
    ...(draw.chance(0.5) && CALM),
  };
}

export const GATES_AREA: Area = {
  shape,
  incidents: { ...TAKEN_BACK, ...OF_GATES },
  setRight: rolloutsRight,
};
