/** Names a rollout: another template of any zone makes another rollout. Pure. */
import { createHash } from "node:crypto";
import type { Zone } from "../model/zone.ts";

/** 16 hexadecimal digits: a hash of the zones and their update revisions. */
export function identityOf(zones: readonly Zone[]): string {
  const revisions = zones.map(({ name, uid, status }) => `${name}/${uid}/${status.updateRevision}`).toSorted();
  return createHash("sha256").update(revisions.join("\n")).digest("hex").slice(0, 16);
}
