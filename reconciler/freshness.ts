/**
 * The newest resourceVersion that a process has seen of each resource, by reading or by writing. A list older than that comes from a stale
 * view, as a lagging API server gives it, and is refused; but a store that was restored from a backup counts from further back for good:
 *
 *   fresh --a list below the floor--> in doubt since that list, its version is the base
 *                                     --a list that reaches the floor--> fresh
 *                                     --a list below the base--> in doubt since that one
 *                                     --a list above the base, 30 s later--> restored: all floors are forgotten
 *
 * Versions of one resource compare as integers (KEP-5504); others than integers are not compared.
 */
import type { Clock } from "../infra/clock.ts";
import { RolloutError } from "../infra/errors.ts";
import type { Log } from "../infra/log.ts";
import type { Resource } from "../infra/kubernetes/resources.ts";

export interface Freshness {
  /** Takes in a version that was written. Answers of writes that change nothing, or come late, may well be below the floor. */
  readonly noteWritten: (resource: Resource, resourceVersion: string) => void;
  /** What a list that begins now has to reach: hand it the version of each page. Throws `StaleRead`. */
  readonly expect: (resource: Resource) => (resourceVersion: string) => void;
}

/**
 * Lists without a version are consistent reads: an API server whose cache has not caught up with etcd within 3 s refuses or asks etcd
 * itself (KEP-2340). Ten times that is no lag. Its versions have to grow meanwhile: a view that is cut off stands still, while a store at
 * work takes a write every few seconds, as nodes renew their Leases.
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

  /** Whether the store itself counts from further back. */
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
            throw new RolloutError("StaleRead", `${resource.plural} as of version ${resourceVersion}, but ${floor} has been seen`);
          log.warn("resourceVersions have gone back, as after a restore of etcd: reads count from there now", {
            resource: resource.plural,
            resourceVersion,
            seen: floor,
          });
          // One store holds them all, or nearly.
          floors.clear();
          floor = version;
        }
        doubts.delete(resource.plural);
        note(resource, version);
      };
    },
  };
}
