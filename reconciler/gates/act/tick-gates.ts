/**
 * The gates of one tick: listed once a namespace, judged for each group by their statuses, and followed beside the
 * groups.
 *
 *   list gates -> per group: verdicts for the rollout's decision -> follow: ask due checks, write statuses -> the group's step waits for them at its end
 */
import type { Clock } from "../../../infra/clock.ts";
import { messageOf } from "../../../infra/errors.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import type { Log } from "../../../infra/log.ts";
import { earliest } from "../../../infra/timestamp.ts";
import type { Round } from "../../checks/act/ask-prometheus.ts";
import type { Gate } from "../gate.ts";
import { bypassesOf, isHeld, judgeGates } from "../hold.ts";
import type { GateChange } from "../report.ts";
import { identityOf, type RolloutView, type Wanted, wantedBy } from "../rollout.ts";
import { hold } from "../../model/decision.ts";
import { type Bypass, groupKey, type GateVerdicts, type Zone, type ZoneList } from "../../model/zone.ts";
import type { Draft } from "../../report/events.ts";
import { isOutdated } from "../../rollout/act/take-rollout-step.ts";
import { decideByStatus, decideUngated } from "../../rollout/decide-rollout.ts";
import { gatherGroup, gatherGroupZones } from "../../snapshot/gather.ts";
import { followGate, type Followed } from "./follow-gate.ts";
import { createGateLister, type GateList } from "./list-gates.ts";

interface GatesScope {
  /** "" for all. */
  readonly namespaces: readonly string[];
  /**
   * Begins the round of one group's questions, as the group is followed: a slow group must not use up the round's
   * time.
   */
  readonly beginRound: () => Round;
  readonly emitEvents: (drafts: readonly Draft[]) => void;
}

/** The gates of one group in one tick. */
export interface GroupGates {
  /** Undefined without gates. */
  readonly verdicts: GateVerdicts | undefined;
  /** Follows the gates beside the caller; `wanted` is the next step of the rollout without gates. */
  readonly follow: (wanted: Wanted) => void;
  /** The verdicts by a new list: a step may take long, and a gate may have been created meanwhile. Never rejects. */
  readonly readAgain: () => Promise<GateVerdicts | undefined>;
}

export interface TickGates {
  readonly of: (zones: readonly Zone[]) => GroupGates;
  /** The zones of a group that may begin without its gates for now. */
  readonly bypassesOf: (zones: readonly Zone[]) => readonly Bypass[];
  /** Waits for the work that was begun for a group, by its key. */
  readonly endGroup: (key: string) => Promise<Followed>;
  /**
   * Follows the gates without a group. The list has all groups that exist, also those that this tick did not reach; of a
   * namespace that could not be read it has none, and its gates stay as they are.
   */
  readonly end: (list: Pick<ZoneList, "groups" | "failures">) => Promise<void>;
}

export interface Gates {
  /** Lists the gates; never rejects. */
  readonly begin: (context: Omit<Context, "stop">, scope: GatesScope) => Promise<TickGates>;
}

interface GatesTools {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
}

export function createGates({ clock, log }: GatesTools): Gates {
  const list = createGateLister(clock, log);
  const tried = new Map<string, number>();

  return {
    async begin(context, { namespaces, emitEvents, beginRound }) {
      const gatheredAt = clock.monotonic();
      const lists = new Map(await Promise.all(namespaces.map(async (one) => [one, await list(one, context)] as const)));
      for (const [namespace, one] of lists)
        if ("error" in one) log.warn("the gates could not be listed", { namespace, error: one.error });
      const byGroup = Map.groupBy([...lists.values()].flatMap(gatesIn), ({ ref, group }) =>
        groupKey({ namespace: ref.namespace, group }),
      );
      const begun = new Map<string, Promise<Followed[]>>();
      const onChange = (gate: Gate, changes: readonly GateChange[]): void =>
        emitEvents(changes.map(({ regarding = gate.ref, ...change }) => ({ ...change, regarding })));
      const living = new Set([...byGroup.values()].flat().map(({ ref }) => ref.uid));
      for (const uid of tried.keys()) if (!living.has(uid)) tried.delete(uid);
      const following = { ...context, log, onChange, tried };
      const followAll = async (gates: readonly Gate[], view: RolloutView | undefined): Promise<Followed[]> => {
        using round = beginRound();
        const renew = async (old: RolloutView): Promise<RolloutView | undefined> =>
          isOutdated({ gatheredAt }, context) ? await readRollout(old, gates, context) : old;
        return await Promise.all(gates.map((gate) => followGate(gate, view, { ...following, round, renew })));
      };

      return {
        of(zones) {
          const [zone] = zones;
          const scope = lists.get("") ?? lists.get(zone?.namespace ?? "");
          const readAgain = async (): Promise<GateVerdicts | undefined> =>
            judgeList(await list(zone?.namespace ?? "", context), zones, clock.now());
          const none = { follow: () => {}, readAgain };
          if (scope && "error" in scope) return { verdicts: closeAll(zones, scope.error), ...none };
          const key = zone ? groupKey(zone) : "";
          const gates = byGroup.get(key);
          if (!gates) return { verdicts: undefined, ...none };
          const view = { identity: identityOf(zones), zones, now: clock.now() };
          const verdicts = judgeGates(gates, view);
          return {
            verdicts,
            readAgain,
            follow: (wanted) => {
              const rollout = { ...view, wanted };
              begun.set(key, followAll(gates, { ...rollout, isHeld: isHeld(gates, rollout) }));
            },
          };
        },
        bypassesOf(zones) {
          const [zone] = zones;
          return bypassesOf((zone && byGroup.get(groupKey(zone))) ?? [], { zones, now: clock.now() });
        },
        async endGroup(key) {
          const all = (await begun.get(key)) ?? [];
          return {
            progressed: all.some(({ progressed }) => progressed),
            nextAt: earliest(all.map(({ nextAt }) => nextAt)),
          };
        },
        async end({ groups, failures }) {
          const orphans = [...byGroup]
            .filter(([key]) => !groups.has(key))
            .flatMap(([, gates]) => gates.filter(({ ref }) => !failures.has(ref.namespace)));
          if (orphans.length > 0) await followAll(orphans, undefined);
        },
      };
    },
  };
}

/** The rollout by its zones as they are now; undefined if they are gone. */
async function readRollout(
  { zones: [first] }: RolloutView,
  gates: readonly Gate[],
  { clock, ...source }: Omit<Context, "stop">,
): Promise<RolloutView | undefined> {
  const zones = first ? await gatherGroupZones(first, source) : [];
  if (zones.length === 0) return undefined;
  const view = { identity: identityOf(zones), zones, now: clock.now() };
  const rollout = { ...view, wanted: await findWanted(zones, { clock, ...source }) };
  return { ...rollout, isHeld: isHeld(gates, rollout) };
}

async function findWanted(zones: readonly Zone[], { clock, ...source }: Omit<Context, "stop">): Promise<Wanted> {
  const early = decideByStatus(zones);
  if (early !== "readPods") return { kind: early ? "other" : "settled" };
  const snapshot = await gatherGroup(zones, source);
  return wantedBy(decideUngated({ ...snapshot, now: clock.now() }));
}

/** The verdicts of listed gates on one group; undefined without gates. */
function judgeList(found: GateList, zones: readonly Zone[], now: number): GateVerdicts | undefined {
  if ("error" in found) return closeAll(zones, found.error);
  const gates = found.gates.filter((gate) => gate.group === zones[0]?.group);
  return gates.length > 0 ? judgeGates(gates, { identity: identityOf(zones), zones, now }) : undefined;
}

const gatesIn = (list: GateList): readonly Gate[] => ("gates" in list ? list.gates : []);

/** The gates are unknown: no zone may begin. */
function closeAll(zones: readonly Zone[], error: unknown): GateVerdicts {
  const message = `the gates could not be listed: ${messageOf(error)}`;
  return {
    holds: new Map(zones.map((zone) => [zone.uid, hold("GateUnreachable", `${zone.name} waits: ${message}`, [zone])])),
    beforeSettled: undefined,
  };
}
