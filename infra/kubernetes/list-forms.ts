/** The Accept headers and the page sizes of requests. */
import type { Query } from "./cluster.ts";
import type { Resource } from "./resources.ts";

/**
 * Objects per page. They are decoded as they arrive, whatever their size. With 2,500 pods per page, they cost an API
 * server as much or half as much, but the reconciler 35 to 65 MB more while it resyncs 15,000 of the embedded cluster
 * (`npm run bench -- memory`).
 */
const PAGE_SIZE = 500;

/** The `limit` of a list's call; undefined if all objects come in one page. */
export function pageLimitOf(
  resource: Resource,
  { pageSize = resource.pageSize ?? PAGE_SIZE }: Query,
): string | undefined {
  return Number.isFinite(pageSize) ? String(pageSize) : undefined;
}

export const FULL = "application/json";
/** Servers without PartialObjectMetadata return the full object; both have the metadata. */
export const METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
export const METADATA_LIST = METADATA.replace("ObjectMetadata", "ObjectMetadataList");
