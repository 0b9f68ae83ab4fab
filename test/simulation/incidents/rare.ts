/** Calls that few histories make: of volumes, claims and policies, of zones that mirror another, and what is deleted for good. */
import { MANAGED_VALUE } from "../../../reconciler/nodes/shadow.ts";
import { anyHost, fleetOf, hostThat, nodePath, PASSES_MS, phaseOf } from "../nodes/moments.ts";
import { label, policyPath } from "../nodes/people.ts";
import { type Action, insist, pause, recreate, SETS } from "../person.ts";
import type { Area } from "./incident.ts";
import { JUDGED_ACTS } from "./judged.ts";
import { OTHER_ZONES, otherZone, removeOtherGroup } from "./leases.ts";
import { NODES_AREA } from "./nodes.ts";
import { shrunk } from "./shrinking.ts";
import { UNREAD_ACTS } from "./unread.ts";

/** A run has seen a new object, or that one is gone. */
const SEEN_MS = 30_000;
/** What was admitted may be stored for 90 s, and is concluded within a run. */
const FORGOTTEN_MS = 110_000;
/** So long the trouble lasts at least. */
const TROUBLED_MS = 540_000;
/** Acts of one incident. */
const MORE = 3;

const OF_NODES: Readonly<Record<string, Action>> = {
  firstPolicy: UNREAD_ACTS.firstPolicy,
  /** A node is not managed for so long that its shadow goes. */
  unlabelled: async (people) => {
    const path = nodePath(anyHost(people));
    await insist(people, path, label(null));
    await pause(people, 3 * PASSES_MS);
    await insist(people, path, label(MANAGED_VALUE));
  },
  /** A node is about to reboot into a version, and there is a newer one. */
  newerVersion: async (people) => {
    const host = await hostThat(people, (one) => ["Holding", "Draining"].includes(phaseOf(people, one) ?? ""));
    if (!host) return;
    await insist(people, policyPath, { spec: { enabled: false } });
    fleetOf(people).offer(`2.${people.draw.between(1, 9)}.0`);
    await pause(people, 2 * PASSES_MS);
    await insist(people, policyPath, { spec: { enabled: true } });
    await hostThat(people, () => false);
  },
};

const OF_ZONES: Readonly<Record<string, Action>> = {
  mirrorsSet: JUDGED_ACTS.mirrorsSet,
  /** A downscale that is never stored is forgotten, with its time in the zone tracker. */
  forgotten: async (people) => {
    await JUDGED_ACTS.neverStored(people);
    await pause(people, FORGOTTEN_MS);
  },
  othersPin: JUDGED_ACTS.othersPin,
  /** Two downscales, one after the other. */
  twice: async (people) => {
    for (const zone of people.shape.zones.slice(0, 2)) await shrunk(people, zone, () => pause(people, SEEN_MS));
  },
  /** A second group is made, and its zones are deleted. */
  otherGroup: async (people) => {
    const { world, shape } = people;
    await Promise.all(OTHER_ZONES.map((zone) => recreate(people, SETS, otherZone(shape, zone))));
    await pause(people, SEEN_MS);
    await Promise.all(OTHER_ZONES.map((zone) => world.ask("human", "DELETE", `${SETS}/${zone}`)));
    await pause(people, SEEN_MS);
    await removeOtherGroup(people);
  },
};

export const RARE_AREA: Area = {
  shape(shape, draw) {
    if (shape.nodes === undefined && draw.chance(0.7))
      return {
        tracker: true,
        troubledMs: Math.max(shape.troubledMs, TROUBLED_MS),
        // A gate that holds a zone for ever would keep all others from shrinking (§4.7d).
        ...(shape.gate && { gate: { ...shape.gate, last: "good" as const } }),
        ...(!shape.followers && { prepared: true, secondsBetween: draw.of([15, 60]) }),
      };
    return NODES_AREA.shape(shape, draw) ?? {};
  },
  incidents: {
    several: async (people) => {
      const acts = Object.values(people.shape.nodes ? OF_NODES : OF_ZONES);
      for (let i = 0; i < MORE && people.isTroubled(); i++) await people.draw.of(acts)(people);
    },
  },
};
