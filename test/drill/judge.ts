/**
 * The judge of a drill compares the promises with the attempts and the observations. A promise is held only if an
 * attempt that could have broken it was made and seen to the end. Pure; it takes no rule from the product.
 */
import { shortDuration } from "../../infra/duration.ts";
import type { Entry } from "./history.ts";
import { MAX_UNAVAILABLE, REPLICAS, REPLICAS_LEFT, ZONES, type StageName } from "./plan.ts";
import { replay, type Asked, type Away, type Replay, type Taking } from "./replay.ts";

export type DrillVerdict = "held" | "did not hold" | "not seen";

interface Finding {
  readonly verdict: DrillVerdict;
  /** The attempts, and their number. */
  readonly tried: string;
  readonly seen: string;
  /** The events that broke the promise, a sentence each. */
  readonly broken: readonly string[];
}

export interface Row extends Finding {
  /** In a few words, and in a sentence. */
  readonly promise: string;
  readonly means: string;
}

/** The evidence of the judge. */
interface Case extends Replay {
  readonly entries: readonly Entry[];
}

interface Promised {
  readonly promise: string;
  readonly means: string;
  readonly judge: (found: Case) => Finding;
}

/**
 * Milliseconds: when another pod is allowed to go, the failure of a pod that fails by itself may not have been seen
 * yet. A taken pod is known from the start.
 */
const FAILURE_KNOWN_MS = 10_000;

const matters =
  (at: number) =>
  ({ taken, since }: Away): boolean =>
    taken || at - since >= FAILURE_KNOWN_MS;

const inOtherZones = ({ at, pod, others }: Taking): Away[] =>
  others.filter(({ zone }) => zone !== pod.zone).filter(matters(at));
const inItsZone = ({ at, pod, others }: Taking): Away[] =>
  others.filter(({ zone }) => zone === pod.zone).filter(matters(at));

const named = (away: readonly Away[]): string => away.map(({ name }) => name).join(", ");
const describeTaking = ({ at, stage, pod }: Taking, away: readonly Away[]): string =>
  `${shortDuration(at)}, ${stage}: ${pod.name} was taken while ${named(away)} was away`;

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** If nothing broke the promise: held, unless it was not tried, or changes were missed. */
function conclude(tried: string, seen: string, { broken, enough }: { broken: string[]; enough: boolean }): Finding {
  return { verdict: broken.length > 0 ? "did not hold" : enough ? "held" : "not seen", tried, seen, broken };
}

const MISSED = "the watch missed changes";

/** True if no change seems missed: every pod with an allowed eviction for its UID was seen to be taken. */
function isAllSeen({ takings, asked, gaps }: Case): boolean {
  const taken = new Set(takings.map(({ pod }) => pod.uid));
  return gaps === 0 && asked.every(({ status, pod }) => status !== 201 || taken.has(pod.uid));
}

function judgeTakings(
  found: Case,
  { against, well, badly }: { against: (one: Taking) => Away[]; well: string; badly: string },
): Finding {
  const { takings } = found;
  const broken = takings
    .map((one) => [one, against(one)] as const)
    .filter(([, away]) => away.length > 0)
    .map(([one, away]) => describeTaking(one, away));
  const seen =
    broken.length > 0
      ? `${plural(broken.length, "time")} ${badly}`
      : takings.length === 0
        ? "no pod was taken"
        : isAllSeen(found)
          ? well
          : MISSED;
  const enough = takings.length > 0 && isAllSeen(found);
  return conclude(`${plural(takings.length, "pod")} taken`, seen, { broken, enough });
}

/** The pod was gone before the API server read it, or before the webhook did, whose denial then is a 400 (§3.7). */
const isGone = ({ status, message }: Asked): boolean =>
  status === 404 || status === 409 || (status === 400 && / denied the request: pods ".*" not found/.test(message));
function judgeRefusals(found: Case): Finding {
  const { asked, takings } = found;
  const evicted = new Set(asked.filter(({ status }) => status === 201).map(({ pod }) => pod.uid));
  const allowed = takings.filter((one) => evicted.has(one.pod.uid) && inOtherZones(one).length > 0);
  const inTime = asked.filter((one) => one.whileAway && one.status !== undefined && one.status !== 201 && !isGone(one));
  const refused = inTime.filter(({ status }) => status === 429);
  const otherwise = inTime.filter(({ status }) => status !== 429);
  const broken = [
    ...allowed.map((one) => `${describeTaking(one, inOtherZones(one))}: the eviction was allowed`),
    ...otherwise.map(describeAnswer),
  ];
  const late = asked.filter(({ status }) => status === 429).length;
  const parts = [
    inTime.length === 0 && late > 0
      ? `${late} refused, none of them while a pod was away throughout`
      : `${refused.length} refused with 429`,
    ...(allowed.length > 0 ? [`${allowed.length} allowed`] : []),
    ...(otherwise.length > 0 ? [`${otherwise.length} refused otherwise`] : []),
    ...(isAllSeen(found) ? [] : [MISSED]),
  ];
  return conclude(plural(inTime.length + allowed.length, "eviction"), parts.join(", "), {
    broken,
    enough: refused.length > 0 && isAllSeen(found),
  });
}

const describeAnswer = ({ at, stage, pod, status, message }: Asked): string =>
  `${shortDuration(at)}, ${stage}: the eviction of ${pod.name} was answered with ${status === 0 ? "nothing" : status}: ${message}`;

function judgeAnswers({ asked }: Case): Finding {
  const answered = asked.filter(({ status }) => status !== undefined);
  const count = (test: (one: Asked) => boolean): number => answered.filter(test).length;
  const [allowed, refused] = [201, 429].map((code) => count(({ status }) => status === code));
  const wrong = answered.filter((one) => ![201, 429].includes(one.status ?? 0) && !isGone(one));
  const parts = [
    `${allowed} allowed`,
    `${refused} refused`,
    ...(count(isGone) > 0 ? [`${count(isGone)} too late`] : []),
    ...(wrong.length > 0 ? [plural(wrong.length, "error")] : []),
  ];
  return conclude(plural(answered.length, "eviction"), parts.join(", "), {
    broken: wrong.map(describeAnswer),
    enough: (allowed ?? 0) > 0 && (refused ?? 0) > 0,
  });
}

interface Stage {
  readonly begun: boolean;
  readonly ended: boolean;
  /** From its beginning to its end, or until it was given up. */
  readonly ms: number;
}

function stageOf({ entries }: Case, stage: StageName): Stage {
  const own = entries.filter((one) => one.what === "stage" && one.stage === stage);
  const at = (state: string): number | undefined => own.find((one) => one.what === "stage" && one.state === state)?.at;
  const [begins, ends] = [at("begins"), at("ends")];
  const ms = (ends ?? at("overdue") ?? 0) - (begins ?? 0);
  return { begun: begins !== undefined, ended: ends !== undefined, ms };
}

const unfinished = ({ begun, ms }: Stage): string => (begun ? `not over after ${shortDuration(ms)}` : "not begun");

function judgeDrains(found: Case): Finding {
  const stage = stageOf(found, "drains");
  const own = found.asked.filter((one) => one.stage === "drains");
  const uids = new Set(own.map(({ pod }) => pod.uid));
  const gone = found.takings.filter(({ stage: at, pod }) => at === "drains" && uids.has(pod.uid)).length;
  const refusals = plural(own.filter(({ status }) => status === 429).length, "refusal");
  const seen = stage.ended
    ? `both over after ${shortDuration(stage.ms)}, ${refusals}`
    : stage.begun
      ? `${unfinished(stage)}: ${gone} of ${(ZONES.length - 1) * REPLICAS} pods gone, ${refusals}`
      : unfinished(stage);
  return conclude("2 drains", seen, { broken: [], enough: stage.ended });
}

/** Milliseconds after which an eviction without an answer takes no effect any more: 30 s for webhooks, 10 s of retries. */
const EVICTION_OVER_MS = 40_000;

interface Replaced {
  /** Taken by the rollout itself, in the order in which they went. */
  readonly rollout: readonly Taking[];
  /** Pods that only evictions took, and those of which that is not known: an eviction had no answer. */
  readonly evicted: number;
  readonly unclear: number;
}

/** The pods that were taken in the stage `rollout`, by their names. */
function splitRollout({ takings, asked }: Case): Replaced {
  const evicted = new Set(asked.filter(({ status }) => status === 201).map(({ pod }) => pod.uid));
  const mayHave = ({ at, pod }: Taking): boolean =>
    asked.some((one) => one.pod.uid === pod.uid && !one.status && at - one.at < EVICTION_OVER_MS);
  const all = takings.filter(({ stage }) => stage === "rollout");
  const rollout = all.filter((one) => !evicted.has(one.pod.uid) && !mayHave(one));
  const names = new Set(rollout.map(({ pod }) => pod.name));
  const others = Map.groupBy(
    all.filter(({ pod }) => !names.has(pod.name)),
    ({ pod }) => pod.name,
  );
  const isUnclear = (own: readonly Taking[]): boolean => own.some(({ pod }) => !evicted.has(pod.uid));
  const unclear = [...others.values()].filter(isUnclear).length;
  return { rollout, evicted: others.size - unclear, unclear };
}

function judgeRollout(found: Case): Finding {
  const stage = stageOf(found, "rollout");
  const { rollout: own, evicted, unclear } = splitRollout(found);
  const all = ZONES.length * REPLICAS;
  const turns = own.map(({ pod }) => pod.zone).filter((zone, i, zones) => zone !== zones[i - 1]);
  const again = turns.filter((zone, i) => turns.indexOf(zone) !== i);
  const broken = stage.ended ? again.map((zone) => `the rollout came back to ${zone}: ${turns.join(", ")}`) : [];
  const count = new Set(own.map(({ pod }) => pod.name)).size;
  const left = all - count - evicted - unclear;
  const parts = [
    ...(evicted > 0 ? [`${evicted} evicted`] : []),
    ...(unclear > 0 ? [`${unclear} by it or by an eviction without an answer`] : []),
    ...(left > 0 && stage.begun ? [`${left} not replaced`] : []),
  ];
  const how = !stage.ended
    ? unfinished(stage)
    : again.length > 0
      ? `came back to a zone ${plural(again.length, "time")}`
      : `${plural(turns.length, "zone")} in turn, over after ${shortDuration(stage.ms)}`;
  const seen = [how, ...parts].join(", ");
  return conclude(`${count} of ${all} pods`, seen, { broken, enough: stage.ended && count >= all });
}

const scaledIn = ({ entries }: Case, stage: StageName) => {
  let current: StageName = "start";
  return entries.flatMap((one) => {
    if (one.what === "stage") current = one.stage;
    return one.what === "scaled" && current === stage ? [one] : [];
  });
};

/**
 * A webhook, or an admission policy, has denied it: with 403, or with the 400 that the API server gives a denial
 * without a code (§3.7). Any other error says nothing about the promise.
 */
const isDenied = ({ status, message }: { readonly status: number; readonly message: string }): boolean =>
  (status === 403 || status === 400) && /\bdenied (?:the )?request\b/.test(message);

function judgeKept(found: Case): Finding {
  const tries = scaledIn(found, "kept");
  const broken = tries
    .filter(({ status }) => status === 200)
    .map(({ at, by }) => `${shortDuration(at)}: it was scaled down by ${by}`);
  const refused = tries.filter(isDenied).length;
  const seen = broken.length > 0 ? `${broken.length} allowed` : `${refused} refused`;
  return conclude(plural(tries.length, "try").replace("trys", "tries"), seen, {
    broken,
    enough: refused > 0 && refused === tries.length,
  });
}

function judgeDownscale(found: Case): Finding {
  const stage = stageOf(found, "downscale");
  const own = found.takings.filter((one) => one.stage === "downscale");
  const refused = scaledIn(found, "downscale").filter(isDenied);
  const broken = [
    ...refused.map(({ message }) => `zone a was not to be scaled down any more: ${message}`),
    ...own.filter((one) => inOtherZones(one).length > 0).map((one) => describeTaking(one, inOtherZones(one))),
  ];
  const shrunk = new Set(own.map(({ pod }) => pod.zone)).size;
  const seen =
    broken.length > 0
      ? `${plural(broken.length, "time")} not in turn`
      : stage.ended
        ? `${plural(shrunk, "zone")} in turn, over after ${shortDuration(stage.ms)}`
        : unfinished(stage);
  const enough = stage.ended && shrunk === ZONES.length && isAllSeen(found);
  return conclude(`${shrunk} of ${ZONES.length} zones`, seen, { broken, enough });
}

/** In the order of the table. */
export const PROMISES: readonly Promised[] = [
  {
    promise: "one zone at a time",
    means: "Pods of two zones are never taken away at once, whoever takes them",
    judge: (found) =>
      judgeTakings(found, { against: inOtherZones, well: "always in one zone", badly: "in a second zone" }),
  },
  {
    promise: "the limit of a zone",
    means: `Never more than ${MAX_UNAVAILABLE} pod of a zone is taken away at once`,
    judge: (found) =>
      judgeTakings(found, { against: beyondLimit, well: `always ${MAX_UNAVAILABLE} at most`, badly: "too many" }),
  },
  {
    promise: "refusals",
    means: "While a pod of another zone is away, an eviction is refused with 429, which drainers repeat",
    judge: judgeRefusals,
  },
  {
    promise: "answers",
    means: "An eviction is allowed, or refused with 429, and never fails",
    judge: judgeAnswers,
  },
  { promise: "drains end", means: "Drains of two zones at once both come to their end", judge: judgeDrains },
  { promise: "rollout", means: "A rollout replaces all pods, one zone after the other", judge: judgeRollout },
  {
    promise: "no downscale",
    means: "A zone with the label grafana.com/no-downscale is not scaled down",
    judge: judgeKept,
  },
  {
    promise: "downscale in turn",
    means: "Zones follow their leader down one after the other, each while no pod of another is away",
    judge: judgeDownscale,
  },
];

function beyondLimit(one: Taking): Away[] {
  const away = inItsZone(one);
  return away.length >= MAX_UNAVAILABLE ? away : [];
}

/** One row per promise. Never throws; if the history ends early, some promises are not seen. */
export function judge(entries: readonly Entry[]): Row[] {
  const found = { ...replay(entries, REPLICAS_LEFT), entries };
  return PROMISES.map(({ promise, means, judge: judgeOne }) => ({ promise, means, ...judgeOne(found) }));
}
