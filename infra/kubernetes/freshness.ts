/**
 * The newest resourceVersion (floor) of each resource that a process has read or written. An older list is stale, as
 * from a lagging API server, and is refused. But after a restore from a backup, resourceVersions stay lower for good:
 *
 *   fresh --a list below the floor--> in doubt since that list; its version is the base
 *                                     --a list that reaches the floor--> fresh
 *                                     --a list below the base--> in doubt since that list
 *                                     --a list above the base, 30 s later--> restored: all floors are reset
 *
 * Versions of one resource compare as integers (KEP-5504); versions that are not integers are not compared.
 */
import type { Clock } from "../clock.ts";
import { RolloutError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Resource } from "./resources.ts";

export interface Freshness {
  /**
   * Raises the floor to a version that was written. It may be lower, if the write changed nothing or its answer was
   * late.
   */
  readonly noteWritten: (resource: Resource, resourceVersion: string) => void;
  /** Call it before a list; call the result with the version of each page. Throws `StaleRead` below the floor. */
  readonly expect: (resource: Resource) => (resourceVersion: string) => void;
}

/**
 * Milliseconds. Lists without a version are consistent reads: an API server whose cache lags etcd by 3 s refuses the
 * list or reads etcd itself (KEP-2340), so ten times that is no lag. Versions must also grow meanwhile: the versions of
 * an isolated view stay the same, but a live store has a write every few seconds, as nodes renew their Leases.
 */
const RESTORED_AFTER_MS = 30_000;

interface Doubt {
  readonly base: number;
  readonly since: number;
}

export function createFreshness({ monotonic }: Pick<Clock, "monotonic">, log: Pick<Log, "warn">): Freshness {
  const floors = new Map<string, number>();
  const doubts = new Map<string, Doubt>();

  function note({ plural }: Resource, version: number): void {
    if (Number.isSafeInteger(version)) floors.set(plural, Math.max(version, floors.get(plural) ?? 0));
  }

  /** True if the store itself was restored to lower versions. */
  function isRestored({ plural }: Resource, version: number): boolean {
    const doubt = doubts.get(plural);
    if (!doubt || version < doubt.base) doubts.set(plural, { base: version, since: monotonic() });
    else return version > doubt.base && monotonic() - doubt.since >= RESTORED_AFTER_MS;
    return false;
  }

  return {
    noteWritten: (resource, resourceVersion) => note(resource, Number(resourceVersion)),
    expect(resource) {
      let floor = floors.get(resource.plural) ?? 0;
      return (resourceVersion) => {
        const version = Number(resourceVersion);
        if (version < floor) {
          if (!isRestored(resource, version))
            throw new RolloutError(
              "StaleRead",
              `${resource.plural} as of version ${resourceVersion}, but ${floor} has been seen`,
            );
          log.warn("resourceVersions have gone back, as after a restore of etcd: reads count from there now", {
            resource: resource.plural,
            resourceVersion,
            seen: floor,
          });
          // One store usually holds all resources.
          floors.clear();
          floor = version;
        }
        doubts.delete(resource.plural);
        note(resource, version);
      };
    },
  };
}
