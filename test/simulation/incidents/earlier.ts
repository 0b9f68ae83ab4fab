/** Gates and what was before: an earlier definition, the clock of an earlier process, revisions of earlier rollouts. */
import { fieldsOf, timestamp } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { drawGate, GATE, gateObject, GATES } from "../checks/objects.ts";
import { GATES_PATH, gatePath } from "../checks/people.ts";
import { NAMESPACE } from "../names.ts";
import { areZonesSettled } from "../oracles/stability.ts";
import {
  type Action,
  annotatePod,
  annotateZone,
  insist,
  pause,
  type People,
  PODS,
  recreate,
  replicasOf,
} from "../person.ts";
import { CALM } from "../shape.ts";
import { asGate, BOTH, FILLED, gateStatus, specOf } from "./gates.ts";
import type { Area } from "./incident.ts";
import { newImage, podsOf, roll, rollAndWait, SECOND, statusOf, undisturbed, until } from "./rollouts.ts";

const PAUSED = "grafana.com/rollout-paused";
const REVISION = "controller-revision-hash";
/** By how much a clock is ahead, so that its times still count. */
const AHEAD_MS = 50 * SECOND;
/** Longer than a decision takes. */
const LONG_MS = 160 * SECOND;

const isOver = (people: People): boolean =>
  gateStatus(people)["settledTime"] !== undefined && areZonesSettled(people.world.store, people.shape.zones);

const setRevision = (people: People, { metadata }: KubeObject, revision: unknown): Promise<void> =>
  insist(people, `${PODS}/${metadata.name}`, { metadata: { labels: { [REVISION]: revision } } });

const INCIDENTS: Readonly<Record<string, Action>> = {
  /** It has no checks and no soak time, as an earlier definition let it; then somebody writes them. */
  emptyGate: async (people) => {
    await undisturbed(people);
    const { world, draw, shape } = people;
    const gate = world.store.get(GATES, NAMESPACE, GATE);
    if (!gate || !shape.gate) return;
    const { checks: _, ...spec } = fieldsOf(gate["spec"]);
    world.store.update(GATES, { ...gate, spec: { ...spec, soakSeconds: 0, when: BOTH } });
    await rollAndWait(people, draw.between(30, 60) * SECOND);
    await insist(people, gatePath, { spec: specOf(shape.gate) });
  },
  /** A process has begun the rollout whose clock was ahead, and another one goes on. */
  aheadStart: async (people) => {
    await undisturbed(people);
    const { draw, schedule } = people;
    await until(people, () => isOver(people));
    await roll(people);
    await until(people, () => !isOver(people) && gateStatus(people)["settledTime"] === undefined);
    for (let writes = 12; writes > 0 && gateStatus(people)["settledTime"] === undefined; writes--) {
      await insist(people, `${gatePath}/status`, { status: { startTime: timestamp(schedule.now() + AHEAD_MS) } });
      await pause(people, draw.between(2, 10) * SECOND);
    }
  },
  /** Once all zones are updated, somebody labels a pod as one of another revision. */
  otherRevision: async (people) => {
    await undisturbed(people);
    const { draw, shape } = people;
    await until(people, () => isOver(people), 400 * SECOND);
    const zone = draw.of(shape.zones);
    const [pod] = podsOf(people, zone);
    if (!pod) return;
    await setRevision(people, pod, `${zone}-other`);
    await pause(people, draw.between(30, 90) * SECOND);
  },
  /** The gate asks about the pods of the rollout, and the first zone keeps the template that it has long had. */
  keptZone: async (people) => {
    await undisturbed(people);
    const { draw, shape } = people;
    if (!shape.gate) return;
    await until(people, () => isOver(people), 400 * SECOND);
    await asGate(people, specOf({ ...shape.gate, asksNothing: false }, FILLED[0]), async () => {
      await pause(people, LONG_MS);
      await roll(people, newImage(people), shape.zones.slice(1));
      await pause(people, draw.between(30, 90) * SECOND);
    });
  },
  /** A gate is made anew while a paused zone lacks a pod, and the status of another one is older than its pods. */
  pausedBeside: async (people) => {
    await undisturbed(people);
    const { shape, world } = people;
    const [paused = "", other = ""] = shape.zones;
    await until(people, () => isOver(people), 400 * SECOND);
    const [[ill], [pod]] = [podsOf(people, paused), podsOf(people, other)];
    if (!ill || !pod || !shape.gate) return;
    await annotateZone(people, paused, { [PAUSED]: "true" });
    await annotatePod(people, ill.metadata.name, { "sim/ready": "false" });
    const isIll = (): boolean => statusOf(people, paused, "readyReplicas") !== replicasOf(people, paused);
    await until(people, isIll, 10 * SECOND);
    const updated = statusOf(people, other, "updatedReplicas");
    await setRevision(people, pod, `${other}-other`);
    await until(people, () => statusOf(people, other, "updatedReplicas") !== updated, 10 * SECOND);
    world.stall("statefulSets", 40 * SECOND);
    await setRevision(people, pod, pod.metadata.labels?.[REVISION]);
    await world.ask("human", "DELETE", gatePath);
    await recreate(people, GATES_PATH, gateObject(shape.gate));
    await pause(people, 30 * SECOND);
    await annotatePod(people, ill.metadata.name, { "sim/ready": null });
    await annotateZone(people, paused, { [PAUSED]: null });
  },
};

/** Each has a gate, and half of them no fault of the network. */
export const EARLIER_AREA: Area = {
  shape: ({ gate, prepared, nodes }, draw) =>
    nodes
      ? undefined
      : {
          gate: { ...(gate ?? { ...drawGate(draw), ...(prepared && { last: "good" as const }) }), when: BOTH },
          ...(draw.chance(0.5) && CALM),
        },
  incidents: INCIDENTS,
};
