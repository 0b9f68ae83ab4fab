/** Reads a group as a tick sees it, with the settings of the reconciler that serves it. */
import { statefulSets } from "../../infra/kubernetes/resources.ts";
import { leaderAmong } from "../../reconciler/model/leaders.ts";
import { readZone, type Zone } from "../../reconciler/model/zone.ts";
import { gatherWorld as gather, needsTimes } from "../../reconciler/plan/act/gather-world.ts";
import type { World } from "../../reconciler/plan/world.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import type { Scene } from "../decide/answer.ts";
import type { Session } from "../session.ts";
import type { Settings } from "./settings.ts";

type Reader = Pick<Session, "cluster" | "clock" | "settings" | "io">;

const describeAssumed = ({ zoneTracker, assumed }: Settings): string =>
  `note: assuming the default zone tracker ${zoneTracker}: ${assumed}\n`;

/** Rejects with the error of the API server. A group without zones has a world without zones. */
export async function gatherScene(ref: Pick<Zone, "namespace" | "group">, reader: Reader): Promise<World & Scene> {
  const reading = reader.settings(ref.namespace);
  // It is awaited once the zones are read.
  reading.catch(() => {});
  const world = await gather(ref, reader, async (zones) => {
    const settings = await reading;
    if (settings.assumed !== undefined && needsTimes(zones)) reader.io.warn(describeAssumed(settings));
    return settings;
  });
  const isLost = (zone: Zone): boolean => zone.scaling.leader !== undefined && !leaderAmong(world.zones, zone);
  // Where the leader of a zone is instead, and whose label is mistyped, only all StatefulSets show.
  return world.zones.some(isLost) ? { ...world, all: await gatherAll(ref, reader) } : world;
}

async function gatherAll({ namespace }: Pick<Zone, "namespace">, reader: Reader): Promise<readonly Zone[]> {
  return (await readAll({ resource: statefulSets, query: { namespace }, read: readZone }, reader)).items;
}
