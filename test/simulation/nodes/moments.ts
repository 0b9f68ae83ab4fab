/** Moments of the updates of nodes, for those who wait for them. */
import type { ShadowStatus } from "../../../reconciler/nodes/shadow.ts";
import { dig, fieldsOf, listOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import { pause, type People } from "../person.ts";
import type { Fleet } from "./fleet.ts";
import type { NodeHost } from "./node-host.ts";
import { NODES_PATH, SHADOWS_PATH } from "./people.ts";
import { POLICIES, POLICY, SHADOWS } from "./shape.ts";

export const LOOK_MS = 100;
const WAIT_MS = 240_000;
/** Longer than passes over the nodes take. */
export const PASSES_MS = 30_000;

export const fleetOf = ({ world }: People): Fleet => {
  if (!world.fleet) throw new Error("a world without nodes has no such incidents");
  return world.fleet;
};
export const anyHost = (people: People): NodeHost => people.draw.of(fleetOf(people).hosts);
export const nodePath = ({ name }: NodeHost): string => `${NODES_PATH}/${name}`;
export const shadowPath = ({ name }: NodeHost): string => `${SHADOWS_PATH}/brs-${name}`;
export const shadowOf = ({ world }: People, { name }: NodeHost): KubeObject | undefined =>
  world.store.get(SHADOWS, NAMESPACE, `brs-${name}`);
export const statusOf = (people: People, host: NodeHost): Partial<ShadowStatus> =>
  fieldsOf(shadowOf(people, host)?.["status"]);
export function phaseOf({ world }: People, { name }: NodeHost): string | undefined {
  const active = listOf(dig(world.store.get(POLICIES, undefined, POLICY), "status", "active"));
  return textOf(fieldsOf(active.find((one) => dig(one, "node") === name))["phase"]);
}

/** The first host of which this is so, before people stop and before it takes too long; there is an update to make. */
export async function hostThat(people: People, is: (host: NodeHost) => boolean): Promise<NodeHost | undefined> {
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

export const isAnnounced = (people: People) => (host: NodeHost) => Boolean(statusOf(people, host).rebooting);

/** As the agent of its node, which is not ours any more. */
export const speakAs = (people: People, host: NodeHost, changes: object): Promise<void> =>
  fleetOf(people).speak(host, {
    route: "update",
    status: { ...statusOf(people, host), ...changes } as ShadowStatus,
  });
