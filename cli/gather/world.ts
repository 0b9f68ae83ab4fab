/** Reads a group as a tick sees it, with the settings of the reconciler that serves it. */
import type { Zone } from "../../reconciler/model/zone.ts";
import { gatherWorld as gather, needsTimes } from "../../reconciler/plan/act/gather-world.ts";
import type { World } from "../../reconciler/plan/world.ts";
import type { Session } from "../session.ts";
import type { Settings } from "./settings.ts";

const describeAssumed = ({ zoneTracker, assumed }: Settings): string =>
  `note: zone tracker ${zoneTracker} is assumed, the default: ${assumed}\n`;

/** Rejects with the error of the API server. A group without zones has a world without zones. */
export async function gatherWorld(
  ref: Pick<Zone, "namespace" | "group">,
  reader: Pick<Session, "cluster" | "freshness" | "clock" | "settings" | "io">,
): Promise<World> {
  const reading = reader.settings(ref.namespace);
  // It is awaited once the zones are read.
  reading.catch(() => {});
  return await gather(ref, reader, async (zones) => {
    const settings = await reading;
    if (settings.assumed !== undefined && needsTimes(zones)) reader.io.warn(describeAssumed(settings));
    return settings;
  });
}
