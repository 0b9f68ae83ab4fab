/** The safety lines: each row breaks one, and names the tests that should notice. */
import type { Mutation } from "./mutation.ts";
import { BATCH_MUTATIONS } from "./table/batches.ts";
import { BUDGET_MUTATIONS } from "./table/budget.ts";
import { CLI_MUTATIONS } from "./table/cli.ts";
import { DOWNSCALE_MUTATIONS } from "./table/downscale.ts";
import { EVICTION_MUTATIONS } from "./table/eviction.ts";
import { FIELD_MUTATIONS } from "./table/field.ts";
import { GATE_MUTATIONS } from "./table/gates.ts";
import { LEASE_MUTATIONS } from "./table/lease.ts";
import { REST_MUTATIONS } from "./table/rest.ts";
import { NODE_API_MUTATIONS } from "./table/node-api.ts";
import { NODE_MUTATIONS } from "./table/nodes.ts";
import { PHASED_MUTATIONS } from "./table/phased.ts";
import { ROLLOUT_MUTATIONS } from "./table/rollout.ts";
import { SCALE_WRITE_MUTATIONS } from "./table/scale-writes.ts";
import { SCALING_MUTATIONS } from "./table/scaling.ts";
import { SLOW_GROUP_MUTATIONS } from "./table/slow-groups.ts";
import { STATUS_MUTATIONS } from "./table/status.ts";
import { WEBHOOK_MUTATIONS } from "./table/webhooks.ts";

export const MUTATIONS: readonly Mutation[] = [
  ...LEASE_MUTATIONS,
  ...REST_MUTATIONS,
  ...BATCH_MUTATIONS,
  ...CLI_MUTATIONS,
  ...ROLLOUT_MUTATIONS,
  ...BUDGET_MUTATIONS,
  ...EVICTION_MUTATIONS,
  ...FIELD_MUTATIONS,
  ...GATE_MUTATIONS,
  ...SCALE_WRITE_MUTATIONS,
  ...SCALING_MUTATIONS,
  ...SLOW_GROUP_MUTATIONS,
  ...STATUS_MUTATIONS,
  ...DOWNSCALE_MUTATIONS,
  ...WEBHOOK_MUTATIONS,
  ...NODE_MUTATIONS,
  ...PHASED_MUTATIONS,
  ...NODE_API_MUTATIONS,
];
