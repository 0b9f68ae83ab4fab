/** The kinds that are served: the built-in ones, and those of CustomResourceDefinitions. */
import type { V1CustomResourceColumnDefinition, V1CustomResourceDefinitionSpec } from "@kubernetes/client-node";
import type { Json } from "../../infra/kubernetes/resources.ts";
import { compileSchema } from "./crd/schema.ts";
import { BUILT_IN, type Kind } from "./kinds.ts";
import { fieldsOf, type KubeObject } from "./objects.ts";
import type { Store } from "./store.ts";

export const CRDS = "customresourcedefinitions.apiextensions.k8s.io";
export type Column = Required<Json<V1CustomResourceColumnDefinition>>;
type Definition = Json<V1CustomResourceDefinitionSpec>;

export interface Served extends Kind {
  /** From its CustomResourceDefinition. */
  readonly custom?: ReturnType<typeof customOf>;
}

type GroupVersion = Pick<Kind, "group" | "version">;
export const apiVersionOf = ({ group, version }: GroupVersion): string => (group ? `${group}/${version}` : version);
/** The URL path below which a group and version is served. */
export const rootOf = (kind: GroupVersion): string => `/${kind.group ? "apis" : "api"}/${apiVersionOf(kind)}`;

const pathOf = (text = ""): string[] => text.split(".").filter(Boolean);

function customOf({ schema, subresources, additionalPrinterColumns = [] }: Definition["versions"][number]) {
  const at = subresources?.scale;
  return {
    schema: compileSchema(fieldsOf(schema?.openAPIV3Schema)),
    columns: additionalPrinterColumns.map((column): Column => ({
      format: "",
      description: "",
      priority: 0,
      ...column,
    })),
    /** Field paths of the scale subresource, if the kind has one. */
    scale: at && {
      spec: pathOf(at.specReplicasPath),
      status: pathOf(at.statusReplicasPath),
      selector: pathOf(at.labelSelectorPath),
    },
  };
}

/** One kind for each served version. Throws if the definition is invalid. */
export function customKinds(definition: KubeObject): readonly Served[] {
  const { group, names, scope, versions } = definition["spec"] as Definition;
  const { kind, plural, singular = kind.toLowerCase(), shortNames = [], categories = [] } = names;
  const common = {
    group,
    kind,
    plural,
    singular,
    shortNames,
    categories,
    namespaced: scope !== "Cluster",
    generation: true,
  };
  return versions
    .filter(({ served }) => served)
    .map((version) => ({
      ...common,
      version: version.name,
      resource: definition.metadata.name,
      subresources: Object.keys(version.subresources ?? {}),
      custom: customOf(version),
    }));
}

const placeOf = (...place: readonly string[]): string => place.join("/");

export type Registry = ReturnType<typeof createRegistry>;

export function createRegistry(store: Store) {
  const known = new WeakMap<KubeObject, readonly Served[]>();
  const servedBy = (definition: KubeObject): readonly Served[] => {
    const kinds = known.get(definition) ?? customKinds(definition);
    known.set(definition, kinds);
    return kinds;
  };
  let definitions: readonly KubeObject[] | undefined;
  let kinds: readonly Served[] = [];
  let byPlace = new Map<string, Served>();
  /** All kinds, in order of their group. */
  const all = (): readonly Served[] => {
    const now = store.list(CRDS);
    if (now === definitions) return kinds;
    definitions = now;
    kinds = [...BUILT_IN, ...now.flatMap(servedBy)];
    byPlace = new Map(kinds.toReversed().map((kind) => [placeOf(kind.group, kind.version, kind.plural), kind]));
    return kinds;
  };
  return {
    all,
    find(group: string, version: string, plural: string): Served | undefined {
      all();
      return byPlace.get(placeOf(group, version, plural));
    },
  };
}
