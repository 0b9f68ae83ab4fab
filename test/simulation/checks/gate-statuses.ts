/**
 * The oracle of what a gate's status says. A reconciler writes it with the version that it has read: so the status
 * before is known to it, and all that has been true since it read the zones.
 *
 *   version stored -> the process lists gates and zones -> asks Prometheus -> writes the next status
 */
import { dig, type Fields, fieldsOf, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { GROUP } from "../names.ts";
import type { Caller } from "../network.ts";
import { misjudgedMs, type Shape } from "../shape.ts";
import type { History, Reads } from "./history.ts";
import { GATE, GATES } from "./objects.ts";
import type { Told } from "./prometheus.ts";

export interface GateStatusOptions {
  readonly shape: Shape;
  readonly violated: (what: string) => void;
  readonly now: () => number;
  /** Versions of the gate and of the zones, by their names. */
  readonly history: History;
  readonly reads: Reads;
  readonly toldOf: (expr: string) => readonly Told[];
}

/** One status after another, written by a process that has read the first one. */
interface Write {
  readonly actor: string;
  readonly spec: Fields;
  readonly before: Fields;
  readonly after: Fields;
  /** When the first one was stored. */
  readonly storedAt: number;
  /** When the process has listed it, and since when all that it has read then was true; none if it is not known. */
  readonly listedAt: number | undefined;
  readonly knownAt: number;
  /** Both are of one rollout. */
  readonly isSameRollout: boolean;
}

type Rule = (write: Write) => readonly string[];

const DAY_MS = 86_400_000;
/** An answer counts for so long, or for two periods. */
const KEPT_MS = 60_000;
/** In which Prometheus answers, or an error counts. */
const ANSWERED_MS = 5000;
/** A batch, with what precedes it. */
const BATCH_MS = 60_000;
const BYPASS = "zonewise.dev/bypass-gates-until";

/** Words of the paths of lists. */
export const LISTS = { gates: "rolloutgates", sets: "statefulsets" } as const;

const itemsOf = (status: Fields, field: string): readonly Fields[] => listOf(status[field]).map(fieldsOf);
const isAt =
  (stage: Fields) =>
  (other: Fields): boolean =>
    other["point"] === stage["point"] && other["zone"] === stage["zone"];
const stagesOf = (status: Fields): readonly Fields[] => itemsOf(status, "stages");
const zonesOf = (status: Fields): readonly Fields[] => itemsOf(status, "zones");
const hasBegun = (status: Fields, zone: unknown): boolean =>
  zonesOf(status).some(({ name, began }) => name === zone && began === "Now");
const count = (object: unknown, ...path: readonly string[]): number => numberOf(dig(object, ...path)) ?? 0;
const wantedOf = (set: unknown): number => numberOf(dig(set, "spec", "replicas")) ?? 1;
const exprsOf = (check: unknown): readonly string[] =>
  [dig(check, "query", "expr"), dig(check, "baseline", "expr")].flatMap((one) => {
    const expr = textOf(one);
    return expr === undefined ? [] : [expr];
  });

const checkOf = (spec: Fields, name: unknown): unknown =>
  listOf(spec["checks"]).find((one) => dig(one, "name") === name);

/** Calls `violated` with what a status says that cannot be. */
export function createGateStatusSafety(options: GateStatusOptions) {
  const { shape, violated, now, history, reads, toldOf } = options;
  const skewMs = misjudgedMs(shape);
  const RULES: readonly Rule[] = [
    judgesBypassesOnce,
    refusesLongBypasses,
    passesByBypasses,
    waitsWithItsZone,
    forgetsResults,
    hasOneZoneUnderWay,
    forgetsEditedChecks,
    countsAnswers,
    passesByChecks,
    keepsGoodPasses,
    asksForLaterZones,
    passesTheWantedZone,
    keepsZonesUnderWay,
    settlesUpdatedZones,
    dropsWhatIsOlder,
    beginsWithItsRollout,
    dropsWhatIsToCome,
    beginsInAnOpenRollout,
    letsZonesGoBack,
    recordsNoWayBack,
  ];

  /** True if all that the zone has been since the process read it fits. */
  const wasAlways = ({ knownAt }: Write, zone: unknown, fits: (set: KubeObject) => boolean): boolean => {
    const sets = history.since(String(zone), knownAt);
    return sets.length > 0 && sets.every((set) => set !== undefined && fits(set));
  };

  /** A verdict on a bypass stays as long as the zone has it. */
  function judgesBypassesOnce({ before, after }: Write): string[] {
    return itemsOf(after, "bypasses").flatMap(({ zone, until, accepted }) => {
      const known = itemsOf(before, "bypasses").find((one) => one["zone"] === zone && one["until"] === until);
      return known === undefined || known["accepted"] === accepted
        ? []
        : [`judges the bypass of ${String(zone)} until ${String(until)} a second time`];
    });
  }

  const isTooFar = (until: unknown): boolean => Date.parse(String(until)) - now() > DAY_MS + KEPT_MS + skewMs;

  function refusesLongBypasses({ before, after }: Write): string[] {
    const known = itemsOf(before, "bypasses");
    return itemsOf(after, "bypasses")
      .filter(({ accepted, until }) => accepted === true && isTooFar(until))
      .filter(({ zone, until }) => !known.some((one) => one["zone"] === zone && one["until"] === until))
      .map(({ zone, until }) => `accepts the bypass of ${String(zone)} until ${String(until)}, which is too far ahead`);
  }

  /** A zone that is passed by a bypass has one, until it has begun; after the last zone all have one. */
  function passesByBypasses(write: Write): string[] {
    const { before, after, knownAt } = write;
    /** One that was refused, or is too far ahead by the clock of today, is none. */
    const lasts = (set: KubeObject | undefined): boolean => {
      const until = set?.metadata.annotations?.[BYPASS];
      const known = itemsOf(before, "bypasses").find(
        (one) => one["zone"] === set?.metadata.name && one["until"] === until,
      );
      return Date.parse(until ?? "") > knownAt - skewMs && !isTooFar(until) && known?.["accepted"] !== false;
    };
    const isUntouched = (set: KubeObject): boolean =>
      wantedOf(set) > 0 && count(set, "status", "updatedReplicas") === 0 && hasAll(set, "currentReplicas");
    return stagesOf(after).flatMap((stage) => {
      const { zone, state } = stage;
      if (state !== "Bypassed") return [];
      const isNew = stagesOf(before).find(isAt(stage))?.["state"] !== state;
      if (!isNew && (zone === "" || !wasAlways(write, zone, isUntouched))) return [];
      const without = shape.zones.find(
        (one) => (zone === "" || zone === one) && !history.since(one, knownAt).some(lasts),
      );
      return without === undefined ? [] : [`is passed by a bypass, and ${without} has none`];
    });
  }

  const hasAll = (set: KubeObject, field: string): boolean =>
    count(set, "status", field) === wantedOf(set) && count(set, "status", "replicas") === wantedOf(set);

  /** Zones that begin by this status. */
  const beginners = ({ before, after, isSameRollout }: Write): readonly string[] =>
    zonesOf(after)
      .filter(({ name, began }) => began === "Now" && !(isSameRollout && hasBegun(before, name)))
      .map(({ name }) => String(name));

  function waitsWithItsZone(write: Write): string[] {
    if (write.spec["mode"] !== "Enforce") return [];
    return beginners(write)
      .filter((name) => stagesOf(write.after).some(({ zone, state }) => zone === name && state === "Waiting"))
      .map((name) => `says that ${name} begins, and that it waits`);
  }

  /** Successes from before a zone began do not count for the next one. */
  function forgetsResults(write: Write): string[] {
    const { before, after, isSameRollout } = write;
    const [begun] = beginners(write);
    if (begun === undefined || !isSameRollout) return [];
    return stagesOf(after)
      .filter((stage) => {
        const { zone, state, since, checks } = stage;
        const earlier = stagesOf(before).find(isAt(stage));
        const isKept = earlier?.["since"] === since && listOf(checks).length > 0 && state !== "Failed";
        return isKept && !hasBegun(after, zone);
      })
      .map(({ zone }) => `keeps the results of ${String(zone)} as ${begun} begins`);
  }

  /** As a zone begins, those that have begun are done. */
  function hasOneZoneUnderWay(write: Write): string[] {
    const [begun] = beginners(write);
    if (begun === undefined) return [];
    const isOpen = (set: KubeObject): boolean =>
      wantedOf(set) > 0 && count(set, "status", "updatedReplicas") < wantedOf(set) && isObserved(set);
    return zonesOf(write.after)
      .filter(({ name, began }) => began === "Now" && name !== begun && wasAlways(write, name, isOpen))
      .map(({ name }) => `says that ${begun} begins while ${String(name)} is under way`);
  }

  function forgetsEditedChecks({ spec, before, after, storedAt }: Write): string[] {
    const [earlier, generation] = [before, after].map((status) => status["observedGeneration"]);
    if (earlier === undefined || earlier === generation) return [];
    return stagesOf(after).flatMap((stage) => {
      if (stage["state"] === "Failed") return [];
      const known = itemsOf(stagesOf(before).find(isAt(stage)) ?? {}, "checks");
      return itemsOf(stage, "checks")
        .filter((result) => {
          const { name, lastTime } = result;
          const isAsked = exprsOf(checkOf(spec, name)).some((expr) => toldOf(expr).some(({ at }) => at >= storedAt));
          const isKept = !isAsked && known.some((one) => one["name"] === name && one["lastTime"] === lastTime);
          return isKept || count(result, "consecutiveSuccesses") > 1;
        })
        .map(({ name }) => `keeps results of ${String(name)} from before it was edited`);
    });
  }

  /** A success has been answered since the status before. */
  function countsAnswers({ spec, before, after, storedAt }: Write): string[] {
    return stagesOf(after).flatMap((stage) => {
      const known = itemsOf(stagesOf(before).find(isAt(stage)) ?? {}, "checks");
      return itemsOf(stage, "checks").flatMap(({ name, lastVerdict, lastTime, ...counts }) => {
        const earlier = known.find((one) => one["name"] === name);
        if (lastVerdict !== "Success" || earlier?.["lastTime"] === lastTime) return [];
        const missing = exprsOf(checkOf(spec, name)).find(
          (expr) => !toldOf(expr).some(({ at, verdict }) => at >= storedAt && verdict === "Success"),
        );
        const [more, fewer] = [counts, earlier].map((one) => count(one, "consecutiveSuccesses"));
        return [
          ...(missing === undefined ? [] : [`counts a success of ${missing} that nobody has answered`]),
          ...((more ?? 0) - (fewer ?? 0) > 1 ? [`counts an answer for ${String(name)} twice`] : []),
        ];
      });
    });
  }

  /** A stage passes after as many successes in a row as its checks want, and after its soak time. */
  function passesByChecks({ spec, before, after }: Write): string[] {
    const soakMs = 1000 * count(spec, "soakSeconds");
    return stagesOf(after).flatMap((stage) => {
      const { zone, state, since } = stage;
      if (state !== "Passed" || stagesOf(before).find(isAt(stage))?.["state"] === state) return [];
      const soakedMs = now() + shape.skewMs - Date.parse(String(since));
      return [
        ...(listOf(spec["checks"]).some(lacksSuccesses(stage)) ? [`passes ${String(zone)} without its successes`] : []),
        ...(listOf(spec["checks"]).length === 0 && soakMs === 0 ? [`passes ${String(zone)}, and asks nothing`] : []),
        ...(soakedMs < soakMs ? [`passes ${String(zone)} before its soak time is over`] : []),
      ];
    });
  }

  /** True of a check that has not succeeded often enough in a row. */
  const lacksSuccesses =
    (stage: Fields) =>
    (check: unknown): boolean => {
      const result = itemsOf(stage, "checks").find(({ name }) => name === dig(check, "name"));
      return count(result, "consecutiveSuccesses") < Math.max(1, count(check, "successThreshold"));
    };

  /** A rollout is over once all zones are updated; the way back leads to what they have then. */
  function settlesUpdatedZones(write: Write): string[] {
    const { before, after, isSameRollout, knownAt } = write;
    if (after["settledTime"] === undefined || (isSameRollout && before["settledTime"] !== undefined)) return [];
    const isOpen = (set: KubeObject): boolean => count(set, "status", "updatedReplicas") < wantedOf(set);
    const isShort = (set: KubeObject): boolean => count(set, "status", "readyReplicas") < wantedOf(set);
    const [open, short] = [isOpen, isShort].map((fits) => shape.zones.find((zone) => wasAlways(write, zone, fits)));
    const other = zonesOf(after).find(
      ({ name, settledRevision }) =>
        !history
          .since(String(name), knownAt)
          .some((set) => !set || dig(set, "status", "updateRevision") === settledRevision),
    );
    return [
      ...(open === undefined ? [] : [`is settled, and ${open} is not updated`]),
      ...(short === undefined ? [] : [`is settled, and ${short} lacks pods`]),
      ...(other === undefined ? [] : [`settles ${String(other["name"])} with a revision that it does not have`]),
    ];
  }

  /** A stage from before its rollout, and a result from before its stage, count as none (§14.3). */
  function dropsWhatIsOlder(write: Write): string[] {
    const startedAt = timeOf(write.before["startTime"]);
    return stagesOf(write.before).flatMap((stage) => {
      const sinceMs = timeOf(stage["since"]);
      const isOlder = ({ lastTime }: Fields): boolean => sinceMs < startedAt || timeOf(lastTime) < sinceMs;
      return itemsOf(stage, "checks")
        .filter((result) => isOlder(result) && keeps(write, stage, result))
        .map(
          ({ name }) => `keeps the result of ${String(name)} for ${String(stage["zone"])}, which is older than that`,
        );
    });
  }

  /** A stage that is new begins no earlier than its rollout, which another clock may have dated. */
  function beginsWithItsRollout({ before, after }: Write): string[] {
    return stagesOf(after)
      .filter((stage) => !stagesOf(before).some(isAt(stage)) && timeOf(stage["since"]) < timeOf(after["startTime"]))
      .map(({ zone }) => `waits for ${String(zone)} since before its rollout`);
  }

  /** A time that is more than a minute ahead is that of a clock which was wrong (§14.3). */
  function dropsWhatIsToCome(write: Write): string[] {
    const { before, after } = write;
    const isToCome = (time: unknown): boolean => timeOf(time) > now() + KEPT_MS + shape.skewMs;
    return stagesOf(before).flatMap((stage) => {
      const next = stagesOf(after).find(isAt(stage));
      if (!next || next["state"] === "Failed") return [];
      return [
        ...itemsOf(stage, "checks")
          .filter((result) => isToCome(result["lastTime"]) && keeps(write, stage, result))
          .map(({ name }) => `keeps the result of ${String(name)} from a time that is to come`),
        ...(isToCome(next["since"]) ? [`waits for ${String(next["zone"])} since a time that is to come`] : []),
      ];
    });
  }

  const timeOf = (time: unknown): number => Date.parse(String(time));

  /** The result is there as it was, or a success was added to it. */
  function keeps({ spec, after, storedAt }: Write, stage: Fields, { name, lastTime }: Fields): boolean {
    const next = itemsOf(stagesOf(after).find(isAt(stage)) ?? {}, "checks").find((one) => one["name"] === name);
    // Another one of the same second.
    const isAsked = exprsOf(checkOf(spec, name)).some((expr) => toldOf(expr).some(({ at }) => at >= storedAt));
    return (
      next !== undefined && ((next["lastTime"] === lastTime && !isAsked) || count(next, "consecutiveSuccesses") > 1)
    );
  }

  function beginsInAnOpenRollout(write: Write): string[] {
    return write.after["settledTime"] === undefined
      ? []
      : beginners(write).map((name) => `says that ${name} begins in a rollout that is over`);
  }

  /** A zone that gets what it had when the group was last settled is asked nothing (§14.2). */
  function letsZonesGoBack(write: Write): string[] {
    if (write.after["settledTime"] !== undefined) return [];
    return stagesOf(write.after)
      .filter(({ zone, state }) => {
        const settled = [write.before, write.after].map(
          (status) => zonesOf(status).find(({ name }) => name === zone)?.["settledRevision"],
        );
        const isBack = (set: KubeObject): boolean =>
          settled.every((one) => one === dig(set, "status", "updateRevision"));
        return state === "Waiting" && wasAlways(write, zone, isBack);
      })
      .map(({ zone }) => `asks for ${String(zone)}, which gets back what it had`);
  }

  /** Without a record, a zone none of whose pods has its template is on no way back to it (§14.2). */
  function recordsNoWayBack(write: Write): string[] {
    if (write.before["identity"] !== undefined) return [];
    return zonesOf(write.after)
      .filter(({ name, settledRevision }) =>
        wasAlways(
          write,
          name,
          (set) =>
            wantedOf(set) > 0 &&
            count(set, "status", "updatedReplicas") === 0 &&
            dig(set, "status", "updateRevision") === settledRevision,
        ),
      )
      .map(({ name }) => `takes ${String(name)} for one on its way back, and none of its pods has its template`);
  }

  /** A pass that its zone has not used lasts as long as its checks succeed, and were answered lately. */
  function keepsGoodPasses(write: Write): string[] {
    const { spec, before, after, storedAt, listedAt, isSameRollout } = write;
    if (listedAt === undefined || !isSameRollout || after["settledTime"] !== undefined) return [];
    const begun = new Set(beginners(write));
    return stagesOf(after).flatMap((stage) => {
      const { zone, state } = stage;
      const earlier = stagesOf(before).find(isAt(stage));
      const isUsed = hasBegun(after, zone) && !(begun.has(String(zone)) && wasAsked(write, zone));
      if (state !== "Passed" || earlier?.["state"] !== state || isUsed) return [];
      // It was over, and is earned again by this answer.
      const isEarned = (check: unknown): boolean =>
        hasNewResult(earlier, stage, check) && !lacksSuccesses(stage)(check);
      if (!begun.has(String(zone)) && listOf(spec["checks"]).every(isEarned)) return [];
      const isOld = (check: unknown): boolean => {
        const keptMs = Math.max(KEPT_MS, 2000 * count(check, "periodSeconds")) + ANSWERED_MS + 2 * shape.skewMs;
        return exprsOf(check).some((expr) => !toldOf(expr).some(({ at }) => at <= storedAt && at >= listedAt - keptMs));
      };
      const checks = listOf(spec["checks"]);
      return [
        ...(checks.some(isOld) ? [`keeps a pass of ${String(zone)} by answers that are old`] : []),
        ...(checks.some(lacksSuccesses(earlier)) ? [`keeps a pass of ${String(zone)} without its successes`] : []),
      ];
    });
  }

  function hasNewResult(earlier: Fields, stage: Fields, check: unknown): boolean {
    const [before, after] = [earlier, stage].map((one) =>
      itemsOf(one, "checks").find(({ name }) => name === dig(check, "name")),
    );
    return after !== undefined && after["lastTime"] !== before?.["lastTime"];
  }

  /** The gate is asked for the zone: it observes nothing alone, and the zone had not begun earlier. */
  const wasAsked = ({ spec, before }: Write, zone: unknown): boolean =>
    spec["mode"] === "Enforce" && !zonesOf(before).some(({ name, began }) => name === zone && began === "Earlier");

  /** Of the zones that an earlier rollout has begun only the first one of this rollout begins without its checks. */
  function asksForLaterZones(write: Write): string[] {
    const { spec, before, after } = write;
    if (spec["mode"] !== "Enforce" || !write.isSameRollout) return [];
    const isOpened = (set: KubeObject): boolean => count(set, "status", "currentReplicas") < wantedOf(set);
    return beginners(write)
      .filter((name) => {
        const { began, settledRevision } = zonesOf(before).find((one) => one["name"] === name) ?? {};
        const isAsked = stagesOf(after).some(({ zone }) => zone === name);
        const isLater = zonesOf(before).some(
          (one) => one["name"] !== name && one["began"] === "Now" && wasAlways(write, one["name"], isOpened),
        );
        const isBack = !wasAlways(write, name, (set) => dig(set, "status", "updateRevision") !== settledRevision);
        return began === "Earlier" && !isAsked && isLater && !isBack;
      })
      .map((name) => `lets ${name} begin without its checks after another zone`);
  }

  /** Nobody wants a zone while a pod of another one is not ready. */
  function passesTheWantedZone(write: Write): string[] {
    const { before, after } = write;
    const isIll = (set: KubeObject): boolean => count(set, "status", "readyReplicas") < wantedOf(set);
    return stagesOf(after).flatMap((stage) => {
      const { zone, state } = stage;
      if (state !== "Passed" || stagesOf(before).find(isAt(stage))?.["state"] === state) return [];
      if (zone === "" || hasBegun(after, zone)) return [];
      const ill = shape.zones.find((other) => other !== zone && wasAlways(write, other, isIll));
      return ill === undefined ? [] : [`lets ${String(zone)} begin while ${ill} is not ready`];
    });
  }

  /** A pod of the zone was replaced since it has begun. */
  function isUnderWay(write: Write, zone: unknown): boolean {
    const { counts, began } = zonesOf(write.before).find(({ name }) => name === zone) ?? {};
    const atFirst = count(counts, "updated") + count(counts, "notReady");
    return (
      write.isSameRollout &&
      began === "Now" &&
      wasAlways(write, zone, (set) => {
        const updated = count(set, "status", "updatedReplicas");
        return hasNoSurplus(set) && (updated > atFirst || (updated > 0 && updated >= wantedOf(set)));
      })
    );
  }

  /** A zone that is under way goes on to its end. */
  function keepsZonesUnderWay(write: Write): string[] {
    const { before, after } = write;
    if (after["settledTime"] !== undefined) return [];
    const isHeld = ({ name, began }: Fields): boolean => began === undefined && isUnderWay(write, name);
    // Prometheus may answer so late that the zone is under way by then.
    const wasAskedSince = (name: unknown): boolean =>
      exprsOf(checkOf(write.spec, name)).some((expr) => toldOf(expr).some(({ at }) => at > write.knownAt));
    const asked = stagesOf(after).filter((stage) => {
      const earlier = stagesOf(before).find(isAt(stage)) ?? {};
      const times = new Set(itemsOf(earlier, "checks").map(({ lastTime }) => lastTime));
      const hasNew = itemsOf(stage, "checks").some(({ name, lastTime }) => !times.has(lastTime) && wasAskedSince(name));
      return hasNew && [earlier, stage].every(({ state }) => state === "Passed") && isUnderWay(write, stage["zone"]);
    });
    return [
      ...zonesOf(after)
        .filter(isHeld)
        .map(({ name }) => `holds ${String(name)} again, which is under way`),
      ...asked.map(({ zone }) => `asks for ${String(zone)} again, which is under way`),
    ];
  }

  const hasNoSurplus = (set: KubeObject): boolean => count(set, "status", "replicas") <= wantedOf(set);
  const isObserved = (set: KubeObject): boolean =>
    count(set, "status", "observedGeneration") >= (set.metadata.generation ?? 0);

  function onWrite(object: KubeObject, previous: KubeObject, { actor, sentAt = now() }: Caller): void {
    const [before, after] = [fieldsOf(previous["status"]), fieldsOf(object["status"])];
    const storedAt = history.storedAt(GATE);
    const last = reads.lastOfBoth(actor, [LISTS.gates, LISTS.sets], sentAt);
    const list = last && last.at >= storedAt ? last : undefined;
    const write: Write = {
      actor,
      spec: fieldsOf(previous["spec"]),
      before,
      after,
      storedAt,
      listedAt: list?.at,
      knownAt: list ? list.sentAt : -Infinity,
      isSameRollout: before["identity"] === after["identity"] && before["startTime"] === after["startTime"],
    };
    for (const rule of RULES) for (const what of rule(write)) violated(`the gate ${what}, by ${actor}`);
  }

  /** What the zone says shows no pod replaced since it began. */
  function isAsItBegan(status: Fields, zone: string, set: KubeObject): boolean {
    const { counts } = zonesOf(status).find(({ name }) => name === zone) ?? {};
    const [current, updated] = [count(counts, "current"), count(counts, "updated")];
    return (
      counts !== undefined &&
      count(counts, "notReady") === 0 &&
      updated < wantedOf(set) &&
      count(set, "status", "currentReplicas") === current &&
      count(set, "status", "updatedReplicas") === updated &&
      count(set, "status", "readyReplicas") === wantedOf(set)
    );
  }

  /**
   * A gate has recorded that a zone begins before its first ready pod goes, by a pass that holds until then (§14.7).
   */
  function onTaken(pod: string, zone: string, { actor, sentAt = now() }: Caller): void {
    if (!shape.zones.includes(zone)) return;
    const list = reads.lastBefore(actor, LISTS.gates, sentAt);
    const since = Math.min(sentAt - BATCH_MS, list ? list.sentAt : Infinity);
    const gates = history.since(GATE, since, list?.at ?? sentAt);
    const holds = (gate: KubeObject | undefined): boolean =>
      dig(gate, "spec", "group") === GROUP &&
      dig(gate, "spec", "mode") === "Enforce" &&
      !hasBegun(fieldsOf(gate?.["status"]), zone);
    if (gates.length > 0 && gates.every(holds))
      violated(`${pod} is taken by ${actor} although its gate has not recorded that ${zone} begins`);
    const sets = history.since(zone, since);
    const isOldPass = (gate: KubeObject | undefined): boolean => {
      const stage = stagesOf(fieldsOf(gate?.["status"])).find((one) => one["zone"] === zone) ?? {};
      const isOld = (check: unknown): boolean => {
        const result = itemsOf(stage, "checks").find(({ name }) => name === dig(check, "name"));
        const keptMs = Math.max(KEPT_MS, 2000 * count(check, "periodSeconds")) + ANSWERED_MS + 2 * shape.skewMs;
        return timeOf(result?.["lastTime"]) < since - keptMs;
      };
      return stage["state"] === "Passed" && listOf(dig(gate, "spec", "checks")).some(isOld);
    };
    const isUntouched = (gate: KubeObject | undefined): boolean =>
      sets.length > 0 && sets.every((set) => set !== undefined && isAsItBegan(fieldsOf(gate?.["status"]), zone, set));
    if (gates.length > 0 && gates.every((gate) => isOldPass(gate) && isUntouched(gate)))
      violated(`${pod} is taken by ${actor} by a pass of ${zone} that is old, and no pod was replaced since`);
  }

  return {
    onTaken,
    /** Before the version is noted in the history. */
    onEvent({ type, object, previous }: StoreEvent, caller: Caller | undefined): void {
      if (type !== "MODIFIED" || !previous || !caller?.actor.startsWith("reconciler")) return;
      if (JSON.stringify(object["status"]) !== JSON.stringify(previous["status"])) onWrite(object, previous, caller);
    },
  };
}

export const isGate = ({ resource, object }: StoreEvent): boolean =>
  resource === GATES && object.metadata.name === GATE;
