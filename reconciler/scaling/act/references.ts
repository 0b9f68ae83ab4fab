/** Reads the resources that zones mirror (§2.4), through their scale subresource. */
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { once } from "../../../infra/once.ts";
import type { Resource, Scale } from "../../../infra/kubernetes/resources.ts";
import { describeBadName, type Mirror } from "../../model/scaling.ts";
import type { Reference } from "../snapshot.ts";

export interface References {
  /**
   * Reads the current scale of the resource; throws `NotFound` if the server does not know the kind, or the error of
   * the API server.
   */
  readonly read: (namespace: string, mirror: Mirror) => Promise<Reference>;
}

interface Kind {
  readonly group: string;
  readonly kind: string;
}

/** Caches the resource of each kind until a read fails: a CRD may be created, deleted, or change its version. */
export function createReferences(cluster: Cluster): References {
  const known = new Map<string, Promise<readonly Resource[]>>();
  const keyOf = ({ group, kind }: Kind): string => `${group}/${kind}`;
  const discover = once(({ group, kind }: Kind) => cluster.discover(group, kind), keyOf, known);

  async function tryEach(namespace: string, name: string, resources: readonly Resource[]): Promise<Reference> {
    let first: unknown;
    for (const resource of resources) {
      try {
        const scale = (await cluster.get(resource, { namespace, name, subresource: "scale" })) as Scale;
        return { resource, wantedReplicas: scale.spec?.replicas ?? 0, reportedReplicas: scale.status?.replicas ?? 0 };
      } catch (error) {
        first ??= error;
      }
    }
    throw first;
  }

  return {
    async read(namespace, mirror) {
      const { group, kind, name, apiVersion } = mirror;
      const problem = describeBadName(mirror);
      if (problem !== undefined) throw new RolloutError("Invalid", problem);
      if (group === undefined) throw new RolloutError("Invalid", `"${apiVersion}" is not an API version`);
      const wanted = { group, kind };
      try {
        const resources = await discover(wanted);
        if (resources.length === 0)
          throw new RolloutError("NotFound", `the API server has no kind ${kind} in group "${group}"`);
        return await tryEach(namespace, name, resources);
      } catch (error) {
        known.delete(keyOf(wanted));
        throw error;
      }
    },
  };
}
