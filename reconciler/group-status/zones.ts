/** The zones of a group in its status. */
import { formatTimestamp } from "../../infra/timestamp.ts";
import type { WrittenWindow } from "../model/rollout-window.ts";
import { type Seen, revisionKey } from "../report/log-lines.ts";
import { type Bypass, isSettledByStatus, type Zone } from "../model/zone.ts";
import type { RemainingStep, GroupSummary, StoredHold, ZoneRow } from "./status.ts";

export function describeZone({ name, status, scaling, ...zone }: Zone, bypasses: readonly Bypass[] = []): ZoneRow {
  const bypass = bypasses.find((one) => one.zone === name);
  return {
    name,
    currentRevision: status.currentRevision,
    updateRevision: status.updateRevision,
    replicas: zone.replicas,
    pods: status.replicas,
    updated: status.updated,
    ready: status.ready,
    paused: zone.paused,
    ...(scaling.lastDownscale !== undefined && { lastDownscale: scaling.lastDownscale }),
    ...(bypass && { gatesBypassedUntil: formatTimestamp(bypass.until) }),
    ...(bypass?.reason !== undefined && { gatesBypassReason: bypass.reason }),
    ...(zone.window && { rolloutWindow: describeWindow(zone.window) }),
    generation: zone.generation,
    observedGeneration: zone.observedGeneration,
  };
}

/** Characters of an annotation in a status: a longer one is invalid, and stays invalid when it is cut off. */
const MAX_WRITTEN = 1001;

function describeWindow(written: WrittenWindow): Partial<WrittenWindow> {
  const set = Object.entries(written).filter(([, text]) => text !== "");
  return Object.fromEntries(set.map(([name, text]) => [name, text.slice(0, MAX_WRITTEN)]));
}

/** The window of a zone in a status; undefined if it has none. */
export function windowOf({ rolloutWindow }: Partial<ZoneRow>): WrittenWindow | undefined {
  if (!rolloutWindow) return undefined;
  const { cron = "", duration = "", timeZone = "", freezes = "" } = rolloutWindow;
  return { cron, duration, timeZone, freezes };
}

/** The state of these zones' rollout by the rows that an earlier process has stored. */
export function recallSeen(rows: readonly ZoneRow[] = [], zones: readonly Zone[]): Seen {
  const isUnfinished = (row: ZoneRow): boolean => row.currentRevision !== row.updateRevision;
  const wasUnfinished = ({ name, status }: Zone): boolean =>
    rows.some((row) => row.name === name && row.updateRevision === status.updateRevision && isUnfinished(row));
  return {
    rolling: rows.some((row) => row.updated > 0 && (isUnfinished(row) || row.updated < row.pods)),
    unfinished: new Set(zones.filter(wasUnfinished).map(revisionKey)),
  };
}

/** The first zone of the plan is the one in progress. */
export function summarizeZones(
  zones: readonly Zone[],
  [next]: readonly RemainingStep[],
  [hold]: readonly StoredHold[],
): GroupSummary {
  const done = zones.filter(isSettledByStatus);
  const sum = (count: (zone: Zone) => number): number => zones.reduce((total, zone) => total + count(zone), 0);
  const replicas = sum((zone) => zone.replicas);
  return {
    zones: `${done.length}/${zones.length}`,
    updated: `${sum(({ status }) => status.updated)}/${replicas}`,
    ready: `${sum(({ status }) => status.ready)}/${replicas}`,
    ...(next && { zone: next.zone }),
    ...(hold && { reason: hold.reason }),
    ...(hold?.waitsFor && { waitsFor: `${hold.waitsFor.kind.toLowerCase()}/${hold.waitsFor.name}` }),
  };
}
