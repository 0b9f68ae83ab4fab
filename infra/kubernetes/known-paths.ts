/**
 * The paths and groups of the kinds that Zonewise knows, for series: zones may mirror any kind that a user names, and
 * those share one.
 */
import { describePath, pathOf } from "./api-path.ts";
import * as resources from "./resources.ts";

const PLACES = [{}, { name: "n" }, { name: "n", subresource: "status" }, { name: "n", subresource: "scale" }];
const OWN = [...Object.values(resources), { ...resources.disruptionBudgets, plural: "replicatemplates" }];

export const OWN_PATHS: ReadonlySet<string> = new Set(
  OWN.flatMap((resource) => PLACES.map((place) => describePath(pathOf(resource, place)))),
);
export const OWN_GROUPS: ReadonlySet<string> = new Set(OWN.map(({ group }) => group || "core"));
