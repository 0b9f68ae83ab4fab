/** The routes of the node API. */
import { createShadow } from "./create-shadow.ts";
import { cordonAndDrain, type DrainTools } from "./drain-node.ts";
import type { NodeRoutes } from "./node-api.ts";
import { updateStatus } from "./shadow-status.ts";
import { excludeFromLoadBalancers, removeExclusion, uncordon } from "./node-service.ts";

export function createNodeRoutes(tools: DrainTools): NodeRoutes {
  return {
    create: createShadow(tools),
    update: updateStatus(tools),
    cordonAndDrain: cordonAndDrain(tools),
    uncordon: uncordon(tools),
    excludeFromLb: excludeFromLoadBalancers(tools),
    removeExclusionFromLb: removeExclusion(tools),
  };
}
