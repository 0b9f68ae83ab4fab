/** Rare moments of gates: expressions that nobody can answer, results of wrong clocks, gates that come and go. */
import { dig, type Fields, fieldsOf, listOf, timestamp } from "../../emulator/objects.ts";
import { drawGate, GATE, gateObject, GATES, type GateShape } from "../checks/objects.ts";
import { GATES_PATH, gatePath } from "../checks/people.ts";
import type { Draw } from "../draw.ts";
import { NAMESPACE } from "../names.ts";
import { type Action, insist, pause, type People, recreate, SETS } from "../person.ts";
import { CALM, type Shape, zoneObject } from "../shape.ts";
import type { Area } from "./incident.ts";
import { newImage, roll, rolloutsRight, SECOND, TAKEN_BACK, undisturbed, until } from "./rollouts.ts";

const BOTH = ["BeforeFirstZone", "BetweenZones"];

const gateStatus = ({ world }: People): Fields => fieldsOf(dig(world.store.get(GATES, NAMESPACE, GATE), "status"));
const specOf = (gate: GateShape, expr?: string): Fields => fieldsOf(gateObject(gate, expr)["spec"]);

/** For so long the gate has another spec. */
async function asGate(people: People, spec: Fields, act: () => Promise<unknown>): Promise<void> {
  const { gate } = people.shape;
  if (!gate) return;
  await insist(people, gatePath, { spec });
  await act();
  const absent = Object.fromEntries(Object.keys(spec).map((field) => [field, null]));
  await insist(people, gatePath, { spec: { ...absent, ...specOf(gate) } });
}

/** The times of a gate's status as a process would have written them whose clock was ahead by so much. */
const ahead = (time: unknown, ms: number): string => timestamp(Date.parse(String(time)) + ms);

const OF_GATES: Readonly<Record<string, Action>> = {
  wrongTimes: async (people) => {
    const { draw } = people;
    await roll(people);
    const stages = (): readonly Fields[] => listOf(gateStatus(people)["stages"]).map(fieldsOf);
    await until(people, () => stages().some(({ state, checks }) => state !== "Failed" && listOf(checks).length > 0));
    const status = gateStatus(people);
    if (stages().length === 0) return;
    const what = draw.of(["all", "all", "results", "stage", "rollout"]);
    const hours = 10_800 * SECOND;
    const shifted = stages().map((stage) => ({
      ...stage,
      ...(what === "all" && { since: ahead(stage["since"], hours) }),
      ...(what === "stage" && { since: timestamp(people.schedule.now() + 45 * SECOND) }),
      ...((what === "all" || what === "results") && {
        checks: listOf(stage["checks"]).map((check) => ({
          ...fieldsOf(check),
          lastTime: ahead(dig(check, "lastTime"), hours),
        })),
      }),
    }));
    const startTime =
      what === "all"
        ? ahead(status["startTime"], hours)
        : what === "rollout"
          ? timestamp(people.schedule.now() + 45 * SECOND)
          : status["startTime"];
    await insist(people, `${gatePath}/status`, { status: { startTime, stages: shifted } });
  },
  /** Another group's name, by mistake. */
  otherGroup: async (people) => {
    const { draw } = people;
    await roll(people);
    const hasResults = (): boolean =>
      listOf(gateStatus(people)["stages"]).some((one) => listOf(dig(one, "checks")).length > 0);
    await until(people, hasResults);
    await asGate(people, { group: "other" }, () => pause(people, draw.between(10, 40) * SECOND));
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

const setRight: Action = async (people) => {
  await rolloutsRight(people);
  await people.world.ask("human", "DELETE", `${GATES_PATH}/soak`);
};

export const GATES_AREA: Area = { shape, incidents: { ...TAKEN_BACK, ...OF_GATES }, setRight };
