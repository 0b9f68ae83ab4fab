/** Rare moments of rollouts: templates that are taken back, gates nobody would write so, pods that do not come up. */
import { dig, type Draft, type Fields, fieldsOf, listOf, textOf } from "../../emulator/objects.ts";
import { mendBudget } from "../budgets.ts";
import { EMPTY, FILLED, FOREIGN, IMPOSSIBLE, NO_GROUP } from "../checks/expressions.ts";
import { drawGate, GATE, gateObject, GATES, type GateShape } from "../checks/objects.ts";
import { bypass, BYPASS, DAY_MS, GATES_PATH, gatePath } from "../checks/people.ts";
import type { Draw } from "../draw.ts";
import { BUDGET, BUDGETS, NAMESPACE } from "../names.ts";
import { type Action, annotatePod, changeTemplate, insist, pause, type People, PODS, recreate, SETS } from "../person.ts";
import { FAULTS, type Shape, zoneObject } from "../shape.ts";
import { FREEZES, WINDOW } from "../windows/shape.ts";
import type { Area } from "./incident.ts";

const SECOND = 1000;
const LOOK_MS = 500;
const DOTTED = "web.v2";
const BOTH = ["BeforeFirstZone", "BetweenZones"];

const setOf = ({ world }: People, zone: string) => world.store.get("statefulsets.apps", NAMESPACE, zone);
const podsOf = ({ world }: People, zone: string) =>
  world.store.list("pods", NAMESPACE).filter(({ metadata }) => metadata.labels?.["name"] === zone);
const imageOf = (people: People, zone: string): string =>
  textOf(dig(listOf(dig(setOf(people, zone), "spec", "template", "spec", "containers"))[0], "image")) ?? "";
const statusOf = (people: People, zone: string, field: string): unknown => dig(setOf(people, zone), "status", field);
const gateStatus = ({ world }: People): Fields => fieldsOf(dig(world.store.get(GATES, NAMESPACE, GATE), "status"));
const newImage = ({ draw }: People): string => `app:${draw.between(1000, 9999)}`;
const timeText = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

async function roll(people: People, image = newImage(people), zones = people.shape.zones): Promise<void> {
  for (const zone of zones) await changeTemplate(people, zone, image);
}

/** Annotations of all zones. */
async function annotate(people: People, annotations: Readonly<Record<string, string | null>>): Promise<void> {
  for (const zone of people.shape.zones) await insist(people, `${SETS}/${zone}`, { metadata: { annotations } });
}

/** Resolves as it holds, or once that takes too long. */
async function until(people: People, holds: () => boolean, ms = 120 * SECOND): Promise<void> {
  for (const end = people.schedule.now() + ms; !holds() && people.schedule.now() < end;) await pause(people, LOOK_MS);
}

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

/** It is stored although its definition or a webhook would refuse it, as earlier ones did not. */
function storeGate({ world }: People, spec: Fields): void {
  const gate = world.store.get(GATES, NAMESPACE, GATE);
  if (gate) world.store.update(GATES, { ...gate, spec: { ...fieldsOf(gate["spec"]), ...spec } });
}

const rollAndWait = async (people: People, ms: number): Promise<void> => {
  await pause(people, people.draw.between(1, 10) * SECOND);
  await roll(people);
  await pause(people, ms);
};

/** All zones get a template; once a pod of this zone has it, people begin to take it back. */
async function rollInto(people: People, zone: string): Promise<void> {
  await roll(people);
  const hasBegun = (): boolean => {
    const [updated, wanted] = [statusOf(people, zone, "updatedReplicas"), dig(setOf(people, zone), "spec", "replicas")];
    return Number(updated) > 0 && Number(updated) <= Number(wanted) && statusOf(people, zone, "updateRevision") !== statusOf(people, zone, "currentRevision");
  };
  await until(people, hasBegun, 240 * SECOND);
}

/** The times of a gate's status as a process would have written them whose clock was ahead by so much. */
const ahead = (time: unknown, ms: number): string => timeText(Date.parse(String(time)) + ms);

const INCIDENTS: Readonly<Record<string, Action>> = {
  /** The template of a zone that has begun is taken back; a freeze holds the others, which may get a third one. */
  takenBack: async (people) => {
    const { draw, shape, schedule } = people;
    const zone = draw.of(shape.zones);
    const [old, others] = [imageOf(people, zone), shape.zones.filter((one) => one !== zone)];
    await rollInto(people, zone);
    const isFrozen = draw.chance(0.7);
    const now = schedule.now();
    if (isFrozen) await annotate(people, { [FREEZES]: `${timeText(now)}/${timeText(now + 900 * SECOND)}` });
    await changeTemplate(people, zone, old);
    if (draw.chance(0.5)) await roll(people, draw.chance(0.5) ? old : newImage(people), others);
    await pause(people, draw.between(60, 150) * SECOND);
    if (isFrozen) await annotate(people, { [FREEZES]: null });
  },
  /** Nobody but a pod that was made meanwhile has seen the template. */
  takenBackAtOnce: async (people) => {
    const { draw, shape, world } = people;
    const zone = draw.of(shape.zones);
    const old = imageOf(people, zone);
    const [pod] = podsOf(people, zone);
    const revision = statusOf(people, zone, "updateRevision");
    await changeTemplate(people, zone, newImage(people));
    await until(people, () => statusOf(people, zone, "updateRevision") !== revision, 5 * SECOND);
    if (pod) await world.ask("human", "DELETE", `${PODS}/${pod.metadata.name}`);
    await until(people, () => podsOf(people, zone).every(({ metadata }) => metadata.uid !== pod?.metadata.uid), 5 * SECOND);
    await pause(people, 300);
    await changeTemplate(people, zone, old);
  },
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
      ...(what === "stage" && { since: timeText(people.schedule.now() + 45 * SECOND) }),
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
          ? timeText(people.schedule.now() + 45 * SECOND)
          : status["startTime"];
    await insist(people, `${gatePath}/status`, { status: { startTime, stages: shifted } });
  },
  /** As a process judged it whose clock was days ahead; or one that time alone would bring near enough. */
  distantBypass: async (people) => {
    const { draw, schedule, shape } = people;
    const isJudged = draw.chance(0.6);
    const ms = isJudged ? 3 * DAY_MS : DAY_MS + draw.between(20, 40) * SECOND;
    const time = timeText(schedule.now() + ms);
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
    // Of other gates Prometheus does not know that they compare.
    const refused = draw.of([{ ...specOf(gate, FILLED[1]), group: NO_GROUP }, emptyComparison(gate)]);
    const isStored = draw.chance(0.6);
    const spec = isStored ? specOf(gate, draw.of(IMPOSSIBLE)) : refused;
    await insist(people, gatePath, { spec });
    if (isStored) storeGate(people, spec);
    if (isStored) await rollAndWait(people, draw.between(20, 60) * SECOND);
    await insist(people, gatePath, { spec: { checks: null, soakSeconds: null, ...specOf(shape.gate) } });
  },
  foreignGate: async (people) => {
    const { gate } = people.shape;
    const spec = gate && specOf({ ...gate, asksNothing: false }, people.draw.of(FOREIGN));
    if (spec) await asGate(people, spec, () => rollAndWait(people, 60 * SECOND));
  },
  /** The gate asks about the pods that have the template; only some zones get one. */
  filledGate: async (people) => {
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
    storeGate(people, { checks: "none", soakSeconds: 0 });
    await rollAndWait(people, people.draw.between(200, 260) * SECOND);
    const { gate } = people.shape;
    if (gate) await insist(people, gatePath, { spec: { checks: null, ...specOf(gate) } });
  },
  /** Another group's name, by mistake. */
  otherGroup: async (people) => {
    const { draw } = people;
    await roll(people);
    const hasResults = (): boolean => listOf(gateStatus(people)["stages"]).some((one) => listOf(dig(one, "checks")).length > 0);
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
  /** It has been open for weeks, and closes now. */
  longWindow: async (people) => {
    const { draw, schedule, shape } = people;
    if (shape.windows) return;
    const opened = new Date(schedule.now() - 20 * DAY_MS);
    const cron = `0 0 0 ${opened.getUTCDate()} ${opened.getUTCMonth() + 1} *`;
    const seconds = Math.ceil((schedule.now() % DAY_MS) / SECOND) + 20 * 86_400 + 20;
    await annotate(people, { [WINDOW]: cron, [`${WINDOW}-duration`]: `${seconds}s` });
    await pause(people, draw.between(30, 70) * SECOND);
    await rollAndWait(people, 150 * SECOND);
    await annotate(people, { [WINDOW]: null, [`${WINDOW}-duration`]: null });
  },
  /** Pods of all zones are made again with a template that does not come up; then it is mended. */
  downEverywhere: async (people) => {
    const { draw, shape, world } = people;
    const crashes = draw.chance(0.4);
    for (const zone of shape.zones)
      if (crashes) await changeTemplate(people, zone, "app:bad-4", true);
      else await insist(people, `${SETS}/${zone}`, slowTemplate("app:bad-5"));
    await pause(people, 3 * SECOND);
    for (const zone of shape.zones)
      for (const pod of podsOf(people, zone).slice(0, draw.between(1, 2)))
        await world.ask("human", "DELETE", `${PODS}/${pod.metadata.name}`);
    await pause(people, draw.between(30, 90) * SECOND);
    if (!crashes) for (const zone of shape.zones) await insist(people, `${SETS}/${zone}`, quickTemplate(shape));
  },
  /** Pods that were ready are not for long; then they get a template, which another zone may have tried. */
  illForLong: async (people) => {
    const { draw, shape } = people;
    const [tried, ill] = draw.chance(0.5) ? shape.zones : shape.zones.toReversed();
    const [ms, isTried] = [draw.between(310, 340) * SECOND, draw.chance(0.5)];
    const pods = podsOf(people, ill ?? "").map(({ metadata }) => metadata.name);
    if (isTried && tried !== undefined) await insist(people, `${SETS}/${tried}`, slowTemplate(newImage(people)));
    if (isTried && tried !== undefined) await until(people, () => Number(statusOf(people, tried, "updatedReplicas")) > 0);
    for (const pod of pods) await annotatePod(people, pod, { "sim/ready": "false" });
    await pause(people, ms);
    await roll(people, newImage(people), ill === undefined ? [] : [ill]);
    await pause(people, 60 * SECOND);
    for (const pod of pods) await annotatePod(people, pod, { "sim/ready": null });
    if (isTried && tried !== undefined) await insist(people, `${SETS}/${tried}`, quickTemplate(shape));
  },
  /** A paused zone, updated and recorded, lacks a pod. */
  pausedShort: async (people) => {
    const { draw, shape, world } = people;
    const zone = draw.of(shape.zones);
    await insist(people, `${SETS}/${zone}`, { metadata: { annotations: { "grafana.com/rollout-paused": "true" } } });
    const [pod] = podsOf(people, zone);
    if (pod) await annotatePod(people, pod.metadata.name, { "sim/ready": "false" });
    // A new gate does not know whether the group is settled.
    if (shape.gate && draw.chance(0.5)) {
      await pause(people, 3 * SECOND);
      await world.ask("human", "DELETE", gatePath);
      await recreate(people, GATES_PATH, gateObject(shape.gate));
    }
    await pause(people, draw.between(40, 80) * SECOND);
    if (pod) await annotatePod(people, pod.metadata.name, { "sim/ready": null });
    await insist(people, `${SETS}/${zone}`, { metadata: { annotations: { "grafana.com/rollout-paused": null } } });
  },
};

/** Its pods never come up, and do not crash: they may still do so. */
const slowTemplate = (image: string): object => ({
  spec: {
    template: {
      metadata: { annotations: { "sim/ready-after-ms": "3600000" } },
      spec: { containers: [{ name: "main", image }] },
    },
  },
});
const quickTemplate = ({ readyAfterMs }: Shape): object => ({
  spec: { template: { metadata: { annotations: { "sim/ready-after-ms": String(readyAfterMs) } } } },
});

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

/** Each has a gate, and half of them no fault of the network. */
function shape({ gate, prepared }: Shape, draw: Draw): Partial<Shape> {
  const none = Object.fromEntries(FAULTS.map((fault) => [fault, 0])) as Shape["faults"];
  return {
    gate: gate ?? { ...drawGate(draw), when: BOTH, ...(prepared && { last: "good" as const }) },
    ...(draw.chance(0.5) && { faults: none, firstCalls: undefined, answers: undefined }),
  };
}

/** No window, no freeze. */
const setRight: Action = async (people) => {
  if (people.shape.windows === undefined)
    await annotate(people, { [FREEZES]: null, [WINDOW]: null, [`${WINDOW}-duration`]: null });
  await people.world.ask("human", "DELETE", `${GATES_PATH}/soak`);
  for (const zone of people.shape.zones) await insist(people, `${SETS}/${zone}`, quickTemplate(people.shape));
};

export const GATE_INCIDENTS: Area = { shape, incidents: INCIDENTS, setRight };
