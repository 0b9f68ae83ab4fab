/** How objects are asked for: in which form, and how many at once. */

/** Objects a page. */
export const PAGE_SIZE = 500;
export const FULL = "application/json";
/** Servers without PartialObjectMetadata return the full object; both have the metadata. */
export const METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
export const METADATA_LIST = METADATA.replace("ObjectMetadata", "ObjectMetadataList");
