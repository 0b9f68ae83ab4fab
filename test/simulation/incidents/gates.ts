/** Rare moments of gates: expressions that nobody can answer, results of wrong clocks, gates that come and go. */
import { dig, type Draft, type Fields, fieldsOf, listOf, textOf, timestamp } from "../../emulator/objects.ts";
import { mendBudget } from "../budgets.ts";
import { BASELINE_CHECK, drawGate, GATE, GATE_CHECK, gateObject, GATES, type GateShape } from "../checks/objects.ts";
import { bypass, BYPASS, DAY_MS, GATES_PATH, gatePath } from "../checks/people.ts";
import type { Draw } from "../draw.ts";
import { BUDGET, BUDGETS, NAMESPACE } from "../names.ts";
import { type Action, changeTemplate, insist, pause, type People, PODS, recreate, SETS } from "../person.ts";
import { CALM, type Shape, zoneObject } from "../shape.ts";
import type { Area } from "./incident.ts";
import {
  annotate,
  newImage,
  OF_PODS,
  podsOf,
  roll,
  rollAndWait,
  rolloutsRight,
  SECOND,
  statusOf,
  TAKEN_BACK,
  undisturbed,
  until,
} from "./rollouts.ts";

/** A placeholder that there is not, and places where none can stand: the definition or the webhook refuses them. */
const IMPOSSIBLE = [
  `${GATE_CHECK}{group="$(grupp)"}`,
  `${GATE_CHECK} unless $(group)`,
  `${GATE_CHECK}{pod="$(candidate_pods)"}`,
  `${GATE_CHECK} offset 5$(range)`,
] as const;
/** No PromQL, as far as we know: its server may know more. */
const FOREIGN = [`${GATE_CHECK} default 0`, `${GATE_CHECK} keep_metric_names`] as const;
/** They can be asked at each point of a rollout. */
export const FILLED = [
  `${GATE_CHECK}{pod=~"$(candidate_pods)",namespace="$(namespace)"}`,
  `${GATE_CHECK}{pod!~"$(other_pods)",group=~"$(group)"} offset $(range)`,
] as const;
/** A baseline that has pods only once a zone has begun. */
const EMPTY = `${BASELINE_CHECK}{pod=~"$(candidate_pods)"}`;
/** No value of a label. */
const NO_GROUP = "a b";
const DOTTED = "web.v2";
export const BOTH = ["BeforeFirstZone", "BetweenZones"];

export const gateStatus = ({ world }: People): Fields =>
  fieldsOf(dig(world.store.get(GATES, NAMESPACE, GATE), "status"));
export const specOf = (gate: GateShape, expr?: string): Fields => fieldsOf(gateObject(gate, expr)["spec"]);

/** For so long the gate has another spec. */
export async function asGate(people: People, spec: Fields, act: () => Promise<unknown>): Promise<void> {
  const { gate } = people.shape;
  if (!gate) return;
  await insist(people, gatePath, { spec });
  await act();
  const absent = Object.fromEntries(Object.keys(spec).map((field) => [field, null]));
  await insist(people, gatePath, { spec: { ...absent, ...specOf(gate) } });
}

/** It is stored although its definition or a webhook would refuse it, as earlier ones did not. */
export function storeGate({ world }: People, spec: Fields): void {
  const gate = world.store.get(GATES, NAMESPACE, GATE);
  if (gate) world.store.update(GATES, { ...gate, spec: { ...fieldsOf(gate["spec"]), ...spec } });
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
  /** As a process judged it whose clock was days ahead; or one that time alone would bring near enough. */
  distantBypass: async (people) => {
    const { draw, schedule, shape } = people;
    const isJudged = draw.chance(0.6);
    const ms = isJudged ? 3 * DAY_MS : DAY_MS + draw.between(20, 40) * SECOND;
    const time = timestamp(schedule.now() + ms);
    await annotate(people, { [BYPASS[0]]: time, [BYPASS[1]]: "drawn" });
    const isKnown = (): boolean => listOf(gateStatus(people)["bypasses"]).some((one) => dig(one, "until") === time);
    await until(people, isKnown, 60 * SECOND);
    const bypasses = shape.zones.map((zone) => ({ zone, until: time, accepted: true, reason: "drawn" }));
    if (isJudged && isKnown()) await insist(people, `${gatePath}/status`, { status: { bypasses } });
    else await pause(people, 60 * SECOND);
    await rollAndWait(people, draw.between(20, 90) * SECOND);
    for (const zone of shape.zones) await insist(people, `${SETS}/${zone}`, bypass(null));
  },
  /** Some are refused as they are written, some were let in before. */
  impossibleGate: async (people) => {
    const { draw, shape } = people;
    if (!shape.gate) return;
    // Who goes on without an answer passes it.
    const gate = { ...shape.gate, asksNothing: false, soakSeconds: 0, when: BOTH, onError: "Wait" as const };
    const mended = { spec: { checks: null, soakSeconds: null, ...specOf(shape.gate) } };
    const impossible = IMPOSSIBLE.map((expr) => specOf(gate, expr));
    const refused = [{ ...specOf(gate, FILLED[1]), group: NO_GROUP }, emptyComparison(gate), ...impossible];
    for (const spec of refused) await insist(people, gatePath, { spec });
    await insist(people, gatePath, mended);
    const first = draw.below(impossible.length);
    for (const spec of [...impossible, ...impossible].slice(first, first + 2)) {
      storeGate(people, spec);
      await rollAndWait(people, draw.between(20, 40) * SECOND);
    }
    await insist(people, gatePath, mended);
  },
  foreignGate: async (people) => {
    const { gate } = people.shape;
    const spec = gate && specOf({ ...gate, asksNothing: false }, people.draw.of(FOREIGN));
    if (spec) await asGate(people, spec, () => rollAndWait(people, 60 * SECOND));
  },
  /** The gate asks about the pods that have the template; only some zones get one. */
  filledGate: async (people) => {
    await undisturbed(people);
    const { draw, shape } = people;
    if (!shape.gate) return;
    const gate = { ...shape.gate, asksNothing: false, when: BOTH, soakSeconds: 120 };
    await asGate(people, specOf(gate, draw.of(FILLED)), async () => {
      await until(people, () => gateStatus(people)["settledTime"] !== undefined);
      await pause(people, draw.of([0, 160]) * SECOND);
      await roll(people, newImage(people), draw.chance(0.7) ? shape.zones.slice(1) : shape.zones);
      await pause(people, 150 * SECOND);
    });
  },
  /** It says so for minutes, and a template is given meanwhile. */
  unreadableGate: async (people) => {
    await undisturbed(people);
    storeGate(people, { checks: "none", soakSeconds: 0 });
    await rollAndWait(people, people.draw.between(200, 260) * SECOND);
    const { gate } = people.shape;
    if (gate) await insist(people, gatePath, { spec: { checks: null, ...specOf(gate) } });
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
  /** It only soaks; what the other gate lets pass waits for it, and loses a pod. */
  secondGate: async (people) => {
    const { draw, shape, world } = people;
    if (!shape.gate) return;
    const gate = { ...shape.gate, asksNothing: true, soakSeconds: 150, when: BOTH };
    const { metadata, ...rest } = gateObject(gate);
    await recreate(people, GATES_PATH, { ...rest, metadata: { ...metadata, name: "soak" } });
    await roll(people);
    const hasPassed = (one: unknown): boolean => dig(one, "state") === "Passed";
    await until(people, () => listOf(gateStatus(people)["stages"]).some(hasPassed));
    const zone = textOf(dig(listOf(gateStatus(people)["stages"]).findLast(hasPassed), "zone")) ?? "";
    const [pod] = podsOf(people, zone);
    if (pod && draw.chance(0.8)) await world.ask("human", "DELETE", `${PODS}/${pod.metadata.name}`);
    await pause(people, 200 * SECOND);
    await world.ask("human", "DELETE", `${GATES_PATH}/soak`);
  },
  /** The gate has let a zone begin, which has a pod of an earlier rollout, and the budget keeps its pods. */
  passedAndHeld: async (people) => {
    await undisturbed(people);
    const { draw, shape, world } = people;
    const [first = "", next = ""] = shape.zones;
    await roll(people);
    await pause(people, 2 * SECOND);
    const [pod] = podsOf(people, next);
    if (pod) await world.ask("human", "DELETE", `${PODS}/${pod.metadata.name}`);
    await pause(people, 10 * SECOND);
    await roll(people);
    const isUpdated = (): boolean => Number(statusOf(people, first, "updatedReplicas")) >= shape.replicas;
    await pause(people, 3 * SECOND);
    await until(people, isUpdated, 240 * SECOND);
    const budget = world.store.get(BUDGETS, NAMESPACE, BUDGET);
    if (!budget) return;
    world.store.update(BUDGETS, { ...budget, spec: { ...fieldsOf(budget["spec"]), podNamePartitionRegex: "([" } });
    await pause(people, draw.between(120, 180) * SECOND);
    await mendBudget(people);
  },
  /** A group of its own, whose name has a dot. */
  dottedGroup: async (people) => {
    const { shape, world } = people;
    if (!shape.gate) return;
    const { metadata, ...rest } = gateObject({ ...shape.gate, asksNothing: false, when: BOTH }, FILLED[1]);
    const gate = { ...rest, spec: { ...fieldsOf(rest["spec"]), group: DOTTED } };
    await recreate(people, SETS, dottedSet());
    await recreate(people, GATES_PATH, { ...gate, metadata: { ...metadata, name: DOTTED } });
    await pause(people, 20 * SECOND);
    await changeTemplate(people, "web", newImage(people));
    await pause(people, 60 * SECOND);
    await world.ask("human", "DELETE", `${SETS}/web`, { propagationPolicy: "Background" });
    await world.ask("human", "DELETE", `${GATES_PATH}/${DOTTED}`);
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

function dottedSet(): Draft {
  const labels = { app: "web", name: "web", "rollout-group": DOTTED };
  const containers = [{ name: "main", image: "web:1" }];
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "web", namespace: NAMESPACE, labels },
    spec: {
      replicas: 1,
      serviceName: "web",
      selector: { matchLabels: labels },
      updateStrategy: { type: "OnDelete" },
      template: { metadata: { labels }, spec: { containers } },
    },
  };
}

/** It compares with pods of which there are none yet. */
function emptyComparison(gate: GateShape): Fields {
  const [check] = listOf(specOf(gate)["checks"]);
  const baseline = { expr: EMPTY, maxRatio: "1.5" };
  return { ...specOf(gate), checks: [{ ...fieldsOf(check), successWhen: "WithinBaseline", baseline }] };
}

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

export const GATES_AREA: Area = { shape, incidents: { ...TAKEN_BACK, ...OF_GATES, ...OF_PODS }, setRight };
