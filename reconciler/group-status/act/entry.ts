/** The facts that a process knows about one RolloutGroup. */
import type { RolloutGroupStatus } from "../status.ts";
import type { Zone } from "../../model/zone.ts";
import type { StoredGroup } from "./stored-group.ts";

export interface Entry {
  readonly namespace: string;
  readonly name: string;
  /** Undefined if there is none. */
  stored?: StoredGroup | undefined;
  /** The object that was read before the StatefulSets of the group were listed. */
  confirmed?: { readonly uid: string; readonly generation: number } | undefined;
  /** The newest version that a watch has reported. */
  hinted?: string;
  zones?: readonly Zone[];
  /** The status to write. */
  wanted?: RolloutGroupStatus;
  /** Equal as long as the same facts lead to the same status. */
  seen?: string;
  /** A write is under way or waits for its turn. */
  busy: boolean;
  /** Monotonic milliseconds of the last write; -Infinity before the first. */
  writtenAt: number;
}

/** Versions of one resource compare as integers (KEP-5504); others only differ. */
export function isNewer(version: string, than: string | undefined): boolean {
  if (than === undefined) return true;
  const [a, b] = [Number(version), Number(than)];
  return Number.isSafeInteger(a) && Number.isSafeInteger(b) ? a > b : version !== than;
}
