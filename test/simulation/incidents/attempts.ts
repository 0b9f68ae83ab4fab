/** The end of an attempt at a node's update is recorded, and the write that follows it fails for a while. */
import { MANAGED_VALUE } from "../../../reconciler/nodes/shadow.ts";
import { isTrue } from "../../emulator/objects.ts";
import type { Draw } from "../draw.ts";
import { zoneOf } from "../names.ts";
import { fleetOf, hostThat, isAnnounced, nodePath, PASSES_MS, phaseOf, shadowPath, speakAs } from "../nodes/moments.ts";
import type { NodeHost } from "../nodes/node-host.ts";
import { label } from "../nodes/people.ts";
import { drawNodesShape } from "../nodes/shape.ts";
import {
  type Action,
  annotatePod,
  disturbFor,
  insist,
  isReconciler,
  killReconcilers,
  pause,
  type People,
  podOf,
  podsIn,
  until,
} from "../person.ts";
import { CALM, type Shape } from "../shape.ts";
import type { Area } from "./incident.ts";

/** How a host answers that is busy. */
const LOCKED = 423;
const BEFORE_REBOOT: ReadonlySet<string | undefined> = new Set(["Staging", "Holding", "Draining"]);

/** The shadow of a node cannot be written for so long. */
const unwritten = (people: People, host: NodeHost, ms: number): Promise<void> =>
  disturbFor(people, ms, (actor, { method, path }) =>
    isReconciler(actor) && method !== "GET" && path.includes(shadowPath(host)) ? { isRefused: true } : undefined,
  );

const INCIDENTS: Readonly<Record<string, Action>> = {
  /** A node on its way to its reboot loses its label. */
  unlabelled: async (people) => {
    const host = await hostThat(people, (one) => BEFORE_REBOOT.has(phaseOf(people, one)));
    if (!host) return;
    const refused = unwritten(people, host, people.draw.between(1, 4) * PASSES_MS);
    await insist(people, nodePath(host), label(null));
    await refused;
    await pause(people, PASSES_MS);
    await insist(people, nodePath(host), label(MANAGED_VALUE));
  },
  /** And the process that has recorded its end is killed. */
  killed: async (people) => {
    const host = await hostThat(people, (one) => BEFORE_REBOOT.has(phaseOf(people, one)));
    if (!host) return;
    const refused = unwritten(people, host, PASSES_MS);
    await insist(people, nodePath(host), label(null));
    await refused;
    killReconcilers(people);
    await pause(people, 2 * PASSES_MS);
    await insist(people, nodePath(host), label(MANAGED_VALUE));
  },
  /** A pod that held a staged node is ready again, and just then another node fails after its reboot: the policy freezes. */
  failsBeside: async (people) => {
    const { hosts } = fleetOf(people);
    const isIn = (phase: string) => (host: NodeHost) => phaseOf(people, host) === phase;
    const isStaged = (host: NodeHost): boolean => isIn("Staging")(host) || isIn("Holding")(host);
    if (!(await hostThat(people, (one) => isIn("Monitoring")(one) && hosts.some(isStaged)))) return;
    const zone = hosts.find(isStaged)?.zone;
    const pod = podsIn(people).find((name) => zoneOf(name) !== zone);
    if (pod === undefined) return;
    await annotatePod(people, pod, { "sim/ready": "false" });
    await until(people, () => hosts.some(isIn("Holding")), { ms: PASSES_MS });
    await annotatePod(people, pod, { "sim/ready": null });
    await until(people, () => isTrue(podOf(people, pod), "Ready"), { ms: PASSES_MS, stepMs: 1 });
    const failing = hosts.find(isIn("Monitoring"));
    if (failing) await speakAs(people, failing, { current_state: "ErrorReset", failure_reason: "sim" });
  },
  /** A host comes back in its old version, and somebody at once has it boot into the new one next. */
  stagedAgain: async (people) => {
    const host = await hostThat(people, isAnnounced(people));
    if (!host) return;
    const { model } = host;
    model.rollBack(1);
    const { bootId } = model.facts();
    await until(people, () => model.facts().bootId !== bootId, { stepMs: 1 });
    for (const action of ["refresh-updates", "prepare-update", "activate-update"]) {
      const isBegun = (): boolean => model.answer("POST", `/actions/${action}`).status !== LOCKED;
      await until(people, isBegun, { ms: PASSES_MS, stepMs: 1 });
    }
  },
};

const NODES_TAKE = 3;

function shapeOf(shape: Shape, draw: Draw): Partial<Shape> {
  const own = shape.nodes ?? drawNodesShape(draw);
  return {
    ...(draw.chance(0.6) && CALM),
    ...(shape.nodes === undefined && { troubledMs: shape.troubledMs * NODES_TAKE }),
    actions: Math.min(shape.actions, draw.of([2, 8])),
    nodes: {
      ...own,
      perZone: draw.of([1, 2]),
      maxConcurrent: draw.of([1, 2, 3]),
      zonesInOrder: false,
      windowed: false,
      maxFailed: 1,
      minReadySeconds: draw.of([0, 30]),
      deadlines: { ...own.deadlines, holdSeconds: 600, rebootSeconds: 120, recoverSeconds: 60 },
    },
  };
}

export const ATTEMPTS_AREA: Area = { shape: shapeOf, incidents: INCIDENTS };
