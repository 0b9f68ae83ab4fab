/** People, other controllers and hosts at moments of a node's update that chance rarely meets. */
import { CORDONED_BY, EXCLUDED_BY, LB_LABEL, MANAGED_VALUE } from "../../../reconciler/nodes/shadow.ts";
import { dig, fieldsOf, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import type { Draw } from "../draw.ts";
import { NAMESPACE } from "../names.ts";
import type { Fleet } from "../nodes/fleet.ts";
import type { NodeHost } from "../nodes/node-host.ts";
import { applyPolicy, cordon, label, NODES_PATH, policyPath, SHADOWS_PATH } from "../nodes/people.ts";
import { drawNodesShape, POLICIES, POLICY, SHADOWS } from "../nodes/shape.ts";
import { type Action, insist, pause, type People, PODS, until } from "../person.ts";
import { CALM, type Shape } from "../shape.ts";
import type { Area } from "./incident.ts";
import { make } from "../../builders/objects.ts";

const MORE = 3;
const KEPT = "sim/kept";
const STUCK = "stray-stuck";
const LOOK_MS = 100;
const WAIT_MS = 240_000;
/** Longer than passes over the nodes take. */
const PASSES_MS = 30_000;

const fleetOf = ({ world }: People): Fleet => {
  if (!world.fleet) throw new Error("a world without nodes has no such incidents");
  return world.fleet;
};
const nodePath = ({ name }: NodeHost): string => `${NODES_PATH}/${name}`;
const shadowPath = ({ name }: NodeHost): string => `${SHADOWS_PATH}/brs-${name}`;
const shadowOf = ({ world }: People, { name }: NodeHost): KubeObject | undefined =>
  world.store.get(SHADOWS, NAMESPACE, `brs-${name}`);
function phaseOf({ world }: People, { name }: NodeHost): string | undefined {
  const active = listOf(dig(world.store.get(POLICIES, undefined, POLICY), "status", "active"));
  return textOf(fieldsOf(active.find((one) => dig(one, "node") === name))["phase"]);
}

/** The first host of which this is so, before people stop and before it takes too long; there is an update to make. */
async function hostThat(people: People, is: (host: NodeHost) => boolean): Promise<NodeHost | undefined> {
  const fleet = fleetOf(people);
  const end = people.schedule.now() + WAIT_MS;
  if (!fleet.hosts.some((host) => phaseOf(people, host) !== undefined)) fleet.offer(`1.${people.draw.between(1, 9)}.0`);
  while (people.isTroubled() && people.schedule.now() < end) {
    const found = fleet.hosts.find(is);
    if (found) return found;
    await pause(people, LOOK_MS);
  }
  return undefined;
}

const isAnnounced = (people: People) => (host: NodeHost) => Boolean(dig(shadowOf(people, host), "status", "rebooting"));

/** A pod that stays on the node until somebody removes its finalizer. */
async function stick(people: People, { name }: NodeHost): Promise<void> {
  await people.world.ask(
    "human",
    "POST",
    PODS,
    make("Pod", `${STUCK}-${name}`, {
      namespace: NAMESPACE,
      metadata: { finalizers: [KEPT] },
      spec: { nodeName: name, containers: [{ name: "main", image: "app:1" }] },
    }),
  );
}

async function unstick(people: People): Promise<void> {
  for (const { metadata } of people.world.store.list("pods", NAMESPACE))
    if (metadata.name.startsWith(STUCK)) {
      await insist(people, `${PODS}/${metadata.name}`, { metadata: { finalizers: null } });
      await people.world.ask("human", "DELETE", `${PODS}/${metadata.name}`);
    }
}

/** All that we write on a node that we take out of service. */
const NO_MARKS = { annotations: { [CORDONED_BY]: null, [EXCLUDED_BY]: null }, labels: { [LB_LABEL]: null } };
const long = (people: People): Promise<void> => pause(people, people.draw.between(30_000, 150_000));

const INCIDENTS: Area["incidents"] = {
  /** A node about to reboot loses its policy, or the wish, and then its label, and somebody uncordons it. */
  takeBack: async (people) => {
    const { draw, shape, world } = people;
    const host = await hostThat(people, isAnnounced(people));
    if (!host || !shape.nodes) return;
    const isDeleted = draw.chance(0.5);
    if (isDeleted) await world.ask("human", "DELETE", policyPath);
    if (!isDeleted || draw.chance(0.5)) await insist(people, shadowPath(host), { spec: { state: "Idle" } });
    if (draw.chance(0.7)) await insist(people, nodePath(host), label(null));
    if (draw.chance(0.5)) await insist(people, nodePath(host), { ...cordon(null), metadata: NO_MARKS });
    await pause(people, 2 * PASSES_MS);
    await insist(people, nodePath(host), label(MANAGED_VALUE));
    if (isDeleted) await applyPolicy(people, shape.nodes);
  },
  unlabelInReboot: async (people) => {
    const host = await hostThat(people, (one) => !one.isUp() && isAnnounced(people)(one));
    if (!host) return;
    await insist(people, nodePath(host), label(null));
    await long(people);
    await insist(people, nodePath(host), label(MANAGED_VALUE));
  },
  /** An update fails after its reboot while others are on their way, and somebody writes the shadow again and again. */
  failure: async (people) => {
    const { draw } = people;
    const others = fleetOf(people).hosts.filter(() => draw.chance(0.5));
    if (draw.chance(0.6)) for (const host of others) await stick(people, host);
    const host = await hostThat(people, (one) => phaseOf(people, one) === "Draining");
    if (!host) return;
    host.model.rollBack(1);
    await until(people, () => dig(shadowOf(people, host), "status", "current_state") === "ErrorReset");
    for (let i = draw.chance(0.5) ? 100 : 0; i > 0; i--) {
      await insist(people, shadowPath(host), { metadata: { annotations: { "sim/look": String(i) } } });
      await pause(people, LOOK_MS);
    }
    if (draw.chance(0.5)) await insist(people, policyPath, { spec: { unfreeze: "an-earlier-one" } });
    await long(people);
    await unstick(people);
  },
  /** A node reboots once more while its health is watched. */
  rebootAgain: async (people) => (await hostThat(people, (one) => phaseOf(people, one) === "Monitoring"))?.reboot(),
  /** A node is deleted, and made again while somebody still keeps its shadow. */
  keptShadow: async (people) => {
    const { draw, world } = people;
    const phase = draw.of(["Holding", "Draining", "Rebooting"]);
    const host = await hostThat(people, (one) => phaseOf(people, one) === phase);
    if (!host) return;
    await insist(people, shadowPath(host), { metadata: { finalizers: [KEPT] } });
    await world.ask("human", "DELETE", nodePath(host));
    await pause(people, 2 * PASSES_MS);
    await insist(people, shadowPath(host), { metadata: { finalizers: null } });
  },
};

/** Without faults what passes put right is judged by a few of them. */
const NODES_TAKE = 3;

/** Several nodes at once in short times, whose pods may all be on one. */
function shapeOf(shape: Shape, draw: Draw): Partial<Shape> {
  const own = shape.nodes ?? drawNodesShape(draw);
  const zones = shape.zones.slice(0, draw.of([2, 2, 4]));
  const perZone = draw.of([1, 2, 2, 3]);
  return {
    ...(draw.chance(0.4) && CALM),
    zones,
    actions: Math.min(shape.actions, draw.of([4, 8, 16])),
    // More than one pod on the only node for it is not drained at all.
    ...(perZone === 1 && draw.chance(0.6) && { replicas: 1 }),
    ...(shape.nodes === undefined && { troubledMs: shape.troubledMs * NODES_TAKE }),
    nodes: {
      ...own,
      perZone,
      maxConcurrent: draw.of([1, 2, 3]),
      windowed: false,
      ...(draw.chance(0.2) && { oneShot: true }),
      drain: { timeoutSeconds: draw.of([60, 120]), onTimeout: draw.chance(0.2) ? "Reboot" : "Uncordon" },
      deadlines: { ...own.deadlines, rebootSeconds: 120, recoverSeconds: 60 },
    },
  };
}

/** One thing leads to another: a world has few incidents, and an update takes minutes. */
const andMore =
  (first: Action): Action =>
  async (people) => {
    await first(people);
    for (let i = 0; i < MORE && people.isTroubled(); i++) {
      await pause(people, people.draw.between(1000, PASSES_MS));
      if (people.isTroubled()) await people.draw.of(Object.values(INCIDENTS))(people);
    }
  };

export const NODES_AREA: Area = {
  shape: shapeOf,
  incidents: Object.fromEntries(Object.entries(INCIDENTS).map(([name, act]) => [name, andMore(act)])),
  setRight: unstick,
};
