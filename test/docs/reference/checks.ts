/** Every check of `zonewise doctor`, from its tables. */
import { BUDGETS } from "../../../cli/decide/doctor/budgets.ts";
import {
  ACCOUNTS,
  CLUSTER,
  DEFINITIONS,
  DELETIONS,
  OWNERS,
  PROTECTION,
  TEMPLATES,
  TICKS,
  WEBHOOKS,
} from "../../../cli/decide/doctor/installation.ts";
import { KEY_CHECKS } from "../../../cli/decide/doctor/keys.ts";
import { MIN_TIMES } from "../../../cli/decide/doctor/min-times.ts";
import { GATES, MIRRORS, PHASED, POLICIES, SECRETS } from "../../../cli/decide/doctor/rollouts.ts";
import { ORPHANS, ZONES } from "../../../cli/decide/doctor/zones.ts";

interface Named {
  readonly check: string;
  readonly level: string;
}

const TABLES: readonly (readonly Named[])[] = [
  TICKS,
  PROTECTION,
  WEBHOOKS,
  ACCOUNTS,
  DEFINITIONS,
  DELETIONS,
  TEMPLATES,
  OWNERS,
  CLUSTER,
  BUDGETS,
  ZONES,
  MIN_TIMES,
  ORPHANS,
  KEY_CHECKS,
  MIRRORS,
  PHASED,
  GATES,
  POLICIES,
  SECRETS,
];

export const CHECKS: readonly Named[] = TABLES.flat();
