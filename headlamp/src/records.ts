/**
 * The data that the plugin shows of one cluster: that of the status page, and the kinds beside rollout groups. Pure.
 */
import type { Phased } from "../../cli/decide/explain-phased.ts";
import { NOTHING, type PageRecords, type Part, UNREAD } from "../../functions/status/view/records.ts";
import type { Gate } from "../../reconciler/gates/gate.ts";
import type { InvalidPolicy, Policy } from "../../reconciler/nodes/policy.ts";

export interface ClusterRecords {
  readonly page: PageRecords;
  readonly gates: Part<Gate>;
  readonly phased: Part<Phased>;
  readonly policies: Part<Policy | InvalidPolicy>;
}

export const NOTHING_READ: ClusterRecords = { page: NOTHING, gates: UNREAD, phased: UNREAD, policies: UNREAD };
