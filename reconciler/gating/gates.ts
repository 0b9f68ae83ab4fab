/**
 * The gates of one tick: listed once a namespace, judged for each group by what their statuses say, and followed beside the groups.
 *
 *   list gates -> per group: verdicts for the rollout's decision -> follow: ask due checks, write statuses -> the tick waits for them at its end
 */
import type { Clock } from "../../infra/clock.ts";
import { messageOf } from "../../infra/errors.ts";
import type { Actor } from "../../infra/kubernetes/actor.ts";
import type { Log } from "../../infra/log.ts";
import type { GateMetrics } from "../../infra/metrics/gate-metrics.ts";
import { earliest } from "../../infra/timestamp.ts";
import type { CheckVerdict } from "../checks/check.ts";
import type { ExpressionProblems } from "../checks/expression.ts";
import type { Round } from "../checking/ask-prometheus.ts";
import type { Gate } from "../gates/gate.ts";
import { judgeGates } from "../gates/hold.ts";
import type { ExpressionFindings, GateChange } from "../gates/report.ts";
import type { Wanted } from "../gates/rollout.ts";
import { hold } from "../model/decision.ts";
import { groupBy } from "../model/order.ts";
import { groupKey, type GateVerdicts, type Zone } from "../model/zone.ts";
import type { Draft } from "../report/events.ts";
import { followGate, type Followed } from "./follow-gate.ts";
import { createGateLister, type GateList } from "./list-gates.ts";
import { identityOf } from "./rollout-identity.ts";

export interface GatesTick extends Actor {
  /** "" for all. */
  readonly namespaces: readonly string[];
  readonly round: Round;
  readonly record: (drafts: readonly Draft[]) => void;
}

/** The gates of one group in one tick. */
export interface GroupGates {
  /** Undefined without gates. */
  readonly verdicts: GateVerdicts | undefined;
  /** Follows the gates beside the caller, who says what the rollout would do without them. */
  readonly follow: (wanted: Wanted) => void;
}

export interface TickGates {
  readonly of: (zones: readonly Zone[]) => GroupGates;
  /** Waits for everything that was begun. `groups` are the keys of all groups that exist, also of those that this tick did not reach. */
  readonly end: (groups: ReadonlyMap<string, unknown>) => Promise<Followed>;
}

export interface Gates {
  /** Lists the gates; never rejects. */
  readonly begin: (tick: GatesTick) => Promise<TickGates>;
}

export interface GatesTools {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
  readonly metrics: GateMetrics;
  /** Loads the reader of expressions. */
  readonly loadReader: () => Promise<(expr: string) => ExpressionProblems>;
}

const NO_GATES: GroupGates = { verdicts: undefined, follow: () => {} };

export function createGates(tools: GatesTools): Gates {
  const { clock, log, metrics } = tools;
  const list = createGateLister(clock, log);
  const readExpressions = ({ checks }: Gate): Promise<ExpressionFindings> => findInExpressions(checks, tools.loadReader);

  return {
    async begin({ namespaces, record, round, ...actor }) {
      const lists = new Map(await Promise.all(namespaces.map(async (one) => [one, await list(one, actor)] as const)));
      for (const [namespace, one] of lists) if ("error" in one) log.warn("the gates could not be listed", { namespace, error: one.error });
      const byGroup = groupBy([...lists.values()].flatMap(gatesIn), ({ ref, group }) => groupKey({ namespace: ref.namespace, group }));
      const following: Promise<Followed>[] = [];
      const onChange = (gate: Gate, changes: readonly GateChange[]): void =>
        record(changes.map(({ type, reason, message, cause }) => ({ regarding: gate.ref, type, reason, message, cause })));
      const onVerdict = (verdict: CheckVerdict): void => metrics.checked(verdict);
      const follower = { ...actor, round, log, onChange, onVerdict, readExpressions, now: clock.now };

      return {
        of(zones) {
          const [zone] = zones;
          const scope = lists.get("") ?? lists.get(zone?.namespace ?? "");
          if (scope && "error" in scope) return { verdicts: closeAll(zones, scope.error), follow: () => {} };
          const gates = byGroup.get(zone ? groupKey(zone) : "");
          if (!gates) return NO_GATES;
          const view = { identity: identityOf(zones), zones, now: clock.now() };
          const verdicts = judgeGates(gates, view);
          return {
            verdicts,
            follow: (wanted) => {
              const isHeld = wanted.kind === "zone" && verdicts.holds.has(wanted.zone.uid);
              following.push(...gates.map((gate) => followGate(gate, { ...view, wanted, isHeld }, follower)));
            },
          };
        },
        async end(groups) {
          const orphans = [...byGroup].flatMap(([key, gates]) => (groups.has(key) ? [] : gates));
          const all = await Promise.all([...following, ...orphans.map((gate) => followGate(gate, undefined, follower))]);
          return { progressed: all.some(({ progressed }) => progressed), nextAt: earliest(all.map(({ nextAt }) => nextAt)) };
        },
      };
    },
  };
}

const gatesIn = (list: GateList): readonly Gate[] => ("gates" in list ? list.gates : []);

/** Nobody knows what the gates say: no zone may begin. */
function closeAll(zones: readonly Zone[], error: unknown): GateVerdicts {
  const message = `the gates could not be listed: ${messageOf(error)}`;
  return {
    holds: new Map(zones.map((zone) => [zone.uid, hold("GateUnreachable", `${zone.name} waits: ${message}`, [zone])])),
    beforeSettled: undefined,
  };
}

async function findInExpressions(checks: Gate["checks"], load: GatesTools["loadReader"]): Promise<ExpressionFindings> {
  const read = await load();
  const found = checks.map(({ name, query }) => ({ name, ...read(query.expr) }));
  return {
    errors: found.flatMap(({ name, error }) => (error === undefined ? [] : [`check ${name}: ${error}`])),
    warnings: found.flatMap(({ name, warnings }) => warnings.map((warning) => `check ${name}: ${warning}`)),
  };
}
