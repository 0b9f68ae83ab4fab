/**
 * Nodes whose pods have few places: one that is left, or none but their own node, in one zone alone. Of several nodes
 * at once not each may start, or go on to its reboot; and the last answers of their check are not what they seem.
 */
import { MANAGED_VALUE } from "../../../reconciler/nodes/shadow.ts";
import type { CheckShape } from "../checks/objects.ts";
import { dig, fieldsOf, listOf, timestamp } from "../../emulator/objects.ts";
import type { Draw } from "../draw.ts";
import { zoneOf } from "../names.ts";
import { fleetOf, hostThat, isAnnounced, nodePath, PASSES_MS, phaseOf, speakAs } from "../nodes/moments.ts";
import type { NodeHost } from "../nodes/node-host.ts";
import { cordon, label, policyPath } from "../nodes/people.ts";
import { drawNodesShape, POLICIES, POLICY } from "../nodes/shape.ts";
import { annotatePod, insist, pause, type People, podsIn, until } from "../person.ts";
import { CALM, type Shape } from "../shape.ts";
import type { Area } from "./incident.ts";

const STAGED: ReadonlySet<string | undefined> = new Set(["Staging", "Holding"]);
/** By how much an answer is ahead. */
const AHEAD_MS = 45_000;

const isStaged =
  (people: People) =>
  (host: NodeHost): boolean =>
    STAGED.has(phaseOf(people, host));
const besideIt = (people: People, { zone, name }: NodeHost): readonly NodeHost[] =>
  fleetOf(people).hosts.filter((one) => one.zone === zone && one.name !== name);

/** While a pod of another zone is not ready, which keeps all pods of this one. */
async function whileHeld(people: People, { zone }: NodeHost, act: () => Promise<unknown>): Promise<void> {
  const pod = podsIn(people).find((name) => zoneOf(name) !== zone);
  if (pod !== undefined) await annotatePod(people, pod, { "sim/ready": "false" });
  await act();
  if (pod !== undefined) await annotatePod(people, pod, { "sim/ready": null });
}

/** Hosts take no pods for so long. */
async function whileCordoned(people: People, hosts: readonly NodeHost[], act: () => Promise<unknown>): Promise<void> {
  for (const host of hosts) await insist(people, nodePath(host), cordon(true));
  await act();
  for (const host of hosts) await insist(people, nodePath(host), cordon(null));
}

const INCIDENTS: Area["incidents"] = {
  /** An update, and nothing else. */
  update: (people) => hostThat(people, () => false),
  /** Two nodes of a zone are staged, and all its other nodes are cordoned: each is the last place of the other's pods. */
  lastPlaces: async (people) => {
    const is = isStaged(people);
    const host = await hostThat(people, (one) => is(one) && besideIt(people, one).some(is));
    if (!host) return;
    const idle = besideIt(people, host).filter((one) => !is(one));
    await whileCordoned(people, idle, async () => {
      await whileHeld(people, host, () => pause(people, 3 * PASSES_MS));
      await pause(people, 3 * PASSES_MS);
    });
  },
  /** A policy freezes just as a staged node could go on. */
  freezeBeside: async (people) => {
    const is = isStaged(people);
    const isMonitored = (one: NodeHost): boolean => phaseOf(people, one) === "Monitoring";
    const failing = await hostThat(people, (one) => isMonitored(one) && fleetOf(people).hosts.some(is));
    const staged = fleetOf(people).hosts.find(is);
    if (!failing || !staged) return;
    await whileHeld(people, staged, () => pause(people, people.draw.between(1, PASSES_MS)));
    await speakAs(people, failing, { current_state: "ErrorReset", failure_reason: "sim" });
  },
  /** A node without its label is down for longer than others, and comes back slowly. */
  unlabelled: async (people) => {
    const host = await hostThat(people, isAnnounced(people));
    if (!host) return;
    await insist(people, nodePath(host), label(null));
    host.reboot(60_000);
    await pause(people, 4 * PASSES_MS);
    await insist(people, nodePath(host), label(MANAGED_VALUE));
  },
  /** What a check has answered so far, as a process has written it whose clock was ahead. */
  answersAhead: async (people) => {
    const { world, shape, schedule } = people;
    const { successThreshold } = shape.nodes?.check ?? {};
    const checks = () => fieldsOf(dig(world.store.get(POLICIES, undefined, POLICY), "status", "checks"));
    if (successThreshold === undefined) return void (await hostThat(people, () => false));
    fleetOf(people).offer(`1.${people.draw.between(1, 9)}.0`);
    await until(people, () => listOf(checks()["results"]).length > 0);
    const results = listOf(checks()["results"]).map((one) => ({
      ...fieldsOf(one),
      lastVerdict: "Success",
      lastTime: timestamp(schedule.now() + AHEAD_MS),
      consecutiveSuccesses: successThreshold,
    }));
    if (results.length > 0)
      await insist(people, `${policyPath}/status`, { status: { checks: { ...checks(), results } } });
    await pause(people, PASSES_MS);
  },
};

/** It takes some answers until a node may start. */
const checkOf = (draw: Draw): CheckShape => ({
  successWhen: "NoData",
  initialDelaySeconds: 0,
  periodSeconds: 5,
  successThreshold: draw.of([1, 4]),
  failureThreshold: undefined,
  last: "good",
});
const NODES_TAKE = 3;

/** How many nodes there are for how many pods. */
const KINDS = {
  /** One node of a zone has its pod, the others none. */
  spare: (draw: Draw) => ({ replicas: 1, nodes: { perZone: draw.of([2, 3]), zonesInOrder: draw.chance(0.4) } }),
  /** The pods of a zone come back to its only node. */
  alone: (draw: Draw) => ({ replicas: draw.of([1, 1, 2]), nodes: { perZone: 1, zonesInOrder: draw.chance(0.4) } }),
  /** Two nodes of a zone go at once, and a third one takes their pods. */
  three: (draw: Draw) => ({ replicas: draw.of([2, 3]), nodes: { perZone: 3, zonesInOrder: draw.chance(0.5) } }),
};

function shapeOf(shape: Shape, draw: Draw): Partial<Shape> {
  const { oneShot: _, ...own } = shape.nodes ?? drawNodesShape(draw);
  const zones = shape.zones.slice(0, 2);
  const { replicas, nodes } = KINDS[draw.of(["spare", "alone", "three"] as const)](draw);
  return {
    ...(draw.chance(0.6) && CALM),
    zones,
    replicas,
    skewMs: draw.of([0, shape.skewMs]),
    budget: 1,
    partitioned: false,
    actions: Math.min(shape.actions, draw.of([2, 8])),
    ...(shape.nodes === undefined && { troubledMs: shape.troubledMs * NODES_TAKE }),
    nodes: {
      ...own,
      ...nodes,
      maxConcurrent: draw.of([2, 2, 3]),
      windowed: false,
      selective: false,
      maxFailed: 1,
      holdForRollouts: false,
      ...(draw.chance(0.4) && { check: checkOf(draw) }),
      drain: { timeoutSeconds: draw.of([60, 120]), onTimeout: "Uncordon" },
      deadlines: { ...own.deadlines, holdSeconds: 600, rebootSeconds: 120, recoverSeconds: 60 },
    },
  };
}

export const PLACES_AREA: Area = { shape: shapeOf, incidents: INCIDENTS };
