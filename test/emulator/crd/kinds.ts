/** Custom resource definitions as kinds that the server can serve. */
import { dig, fieldsOf, isFields, isTrue, listOf, plainText, textOf } from "../objects.ts";
import type { Fields, KubeObject } from "../objects.ts";
import type { Served } from "../registry.ts";
import { compileSchema } from "./schema.ts";
import type { Schema } from "./schema.ts";

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
  readonly jsonPath: string;
}

export interface CustomKind {
  readonly schema: Schema;
  readonly columns: readonly Column[];
  /** Paths of the scale subresource, if it has one. */
  readonly scale?: { readonly spec: readonly string[]; readonly status: readonly string[]; readonly selector?: readonly string[] };
}

export function isEstablished(definition: KubeObject): boolean {
  return isTrue(definition, "Established");
}

/** One kind a served version; none until the definition is established. */
export function customKinds(definition: KubeObject): readonly Served[] {
  if (!isEstablished(definition)) return [];
  const spec = fieldsOf(definition["spec"]);
  const group = String(spec["group"]);
  const plural = String(dig(spec, "names", "plural"));
  const kind = String(dig(spec, "names", "kind"));
  const texts = (value: unknown): string[] => listOf(value).map(String);
  const versions = listOf(spec["versions"]).filter(isFields);
  return versions
    .filter((version) => version["served"] === true)
    .map((version) => {
      const subresources = fieldsOf(version["subresources"]);
      const scale = subresources["scale"];
      return {
        group,
        version: String(version["name"]),
        plural,
        singular: plainText(dig(spec, "names", "singular"), kind.toLowerCase()),
        kind,
        namespaced: spec["scope"] !== "Cluster",
        shortNames: texts(dig(spec, "names", "shortNames")),
        categories: texts(dig(spec, "names", "categories")),
        subresources: Object.keys(subresources),
        generation: true,
        resource: `${plural}.${group}`,
        custom: {
          schema: compileSchema(fieldsOf(dig(version, "schema", "openAPIV3Schema"))),
          columns: listOf(version["additionalPrinterColumns"]).filter(isFields).map(columnOf),
          ...(isFields(scale) && { scale: scaleOf(scale) }),
        },
      };
    });
}

function columnOf(column: Fields): Column {
  return {
    name: String(column["name"]),
    type: String(column["type"]),
    format: textOf(column["format"]) ?? "",
    description: textOf(column["description"]) ?? "",
    priority: Number(column["priority"] ?? 0),
    jsonPath: String(column["jsonPath"]),
  };
}

function scaleOf(scale: Fields): NonNullable<CustomKind["scale"]> {
  const path = (value: unknown): string[] => String(value).split(".").filter(Boolean);
  const selector = scale["labelSelectorPath"];
  return {
    spec: path(scale["specReplicasPath"]),
    status: path(scale["statusReplicasPath"]),
    ...(selector !== undefined && { selector: path(selector) }),
  };
}
