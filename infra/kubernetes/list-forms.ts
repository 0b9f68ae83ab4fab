/** How objects are asked for: in which form, and how many at once. */
import type { Query } from "./cluster.ts";
import type { Resource } from "./resources.ts";

/** Objects a page. */
const PAGE_SIZE = 500;
/**
 * Of a list that is decoded as it arrives, so that its length costs no memory. For each further page an API server since
 * 1.34 goes through the rest of the range (kubernetes#140896). Not all in one: servers before 1.33 hold the whole answer.
 */
const DECODED_PAGE_SIZE = 2500;

/**
 * The `limit` of a list's call; undefined where all come in one page. `isDecoded`: what the server sends is decoded as
 * it arrives, not parsed as a whole.
 */
export function limitOf(resource: Resource, query: Query, isDecoded = false): string | undefined {
  const { pageSize = resource.pageSize ?? (isDecoded ? DECODED_PAGE_SIZE : PAGE_SIZE) } = query;
  return Number.isFinite(pageSize) ? String(pageSize) : undefined;
}

export const FULL = "application/json";
/** Servers without PartialObjectMetadata return the full object; both have the metadata. */
export const METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
export const METADATA_LIST = METADATA.replace("ObjectMetadata", "ObjectMetadataList");
