/** Which kinds are served right now: the built-in ones, and those of established custom resource definitions. */
import { customKinds } from "./crd/kinds.ts";
import type { CustomKind } from "./crd/kinds.ts";
import { BUILT_IN, resourceKey } from "./kinds.ts";
import type { Kind } from "./kinds.ts";
import type { KubeObject } from "./objects.ts";
import type { ResourceKey, Store } from "./store.ts";

/** A kind as it is served; `custom` holds what its definition says. */
export interface Served extends Kind {
  readonly resource: ResourceKey;
  readonly custom?: CustomKind;
}

export interface Registry {
  /** All kinds, in order of their group. */
  all(): readonly Served[];
  find(group: string, version: string, plural: string): Served | undefined;
}

export const CRDS = "customresourcedefinitions.apiextensions.k8s.io";

export function apiVersionOf({ group, version }: Pick<Kind, "group" | "version">): string {
  return group ? `${group}/${version}` : version;
}

/** Where the kinds of a group and version are served. */
export function rootOf(kind: Pick<Kind, "group" | "version">): string {
  return `/${kind.group ? "apis" : "api"}/${apiVersionOf(kind)}`;
}

const builtIn: readonly Served[] = BUILT_IN.map((kind) => ({ ...kind, resource: resourceKey(kind) }));

export function createRegistry(store: Store): Registry {
  const known = new WeakMap<KubeObject, readonly Served[]>();
  const servedBy = (definition: KubeObject): readonly Served[] => {
    const kinds = known.get(definition) ?? customKinds(definition);
    known.set(definition, kinds);
    return kinds;
  };
  const custom = (): readonly Served[] => store.list(CRDS).flatMap(servedBy);
  const builtInByPath = new Map(builtIn.map((kind) => [`${apiVersionOf(kind)}/${kind.plural}`, kind]));
  return {
    all: () => [...builtIn, ...custom()],
    find: (group, version, plural) => {
      const found = builtInByPath.get(`${apiVersionOf({ group, version })}/${plural}`);
      if (found) return found;
      const definition = store.get(CRDS, undefined, `${plural}.${group}`);
      return definition && servedBy(definition).find((kind) => kind.version === version);
    },
  };
}
