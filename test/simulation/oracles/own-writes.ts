/**
 * What a reconciler has written itself it has seen: it writes no zone by an older version, whatever a lagging API
 * server lists later.
 */
import { dig } from "../../emulator/objects.ts";
import type { StoreEvent } from "../../emulator/store.ts";
import type { Caller } from "../network.ts";
import type { Process } from "../process.ts";

interface OwnWritesOptions {
  /** StatefulSets of PhasedRollouts are read one by one. */
  readonly zones: readonly string[];
  readonly violated: (what: string) => void;
  readonly now: () => number;
  readonly processes: () => readonly Process[];
}

const WRITE = /^PATCH .*\/statefulsets\/([^/?]+)/;
/** Something befalls a write of a reconciler to a StatefulSet: it may not learn that it took effect. */
const UNKNOWN = / at reconciler P\w+ statefulsets/;
/** A process that has stood still may have given up what it waited for. */
const STANDS_MS = 150_000;

/** Calls `violated` with what happened, in words. */
export function createOwnWrites({ zones, violated, now, processes }: OwnWritesOptions) {
  /** By "actor zone" the version that it has written. */
  const written = new Map<string, number>();
  let unknownAt = -Infinity;

  return {
    onFault(cell: string): void {
      if (UNKNOWN.test(cell)) unknownAt = now();
    },
    onEvent({ resource, object }: StoreEvent, caller: Caller | undefined): void {
      if (resource !== "statefulsets.apps" || !caller?.actor.startsWith("reconciler-") || unknownAt === now()) return;
      written.set(`${caller.actor} ${object.metadata.name}`, Number(object.metadata.resourceVersion));
    },
    /** A request leaves a process. */
    onSent({ actor, call }: Caller, method: string, path: string, body: string): void {
      const [, set] = WRITE.exec(`${method} ${path}`) ?? [];
      if (set === undefined || !zones.includes(set)) return;
      const known = written.get(`${actor} ${set}`) ?? 0;
      const version = Number(dig(JSON.parse(body), "metadata", "resourceVersion") ?? Infinity);
      const process = processes().find(({ name }) => name === actor);
      if (version < known && process?.stoodStillMs(now() - STANDS_MS) === 0)
        violated(`${actor} sends ${call} by version ${version}, and has written ${known} itself`);
    },
  };
}
