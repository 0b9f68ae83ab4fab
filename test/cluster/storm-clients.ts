/** Clients that evict pods of a few names as fast as they are answered, each in one of the ways in which drainers ask. */
import type { Reviews } from "./balancer.ts";
import { createDice, type Dice } from "./dice.ts";
import { evict } from "./evict.ts";
import type { Stage } from "./stage.ts";
import { type Counted, repeat, type Tally } from "./storm-tally.ts";

const CLIENTS = 24;
const PAUSE_MS = 60;
/** Pods that are down are asked for more rarely: otherwise they would hardly ever come up again. */
const DOWN_SHARE = 0.4;
/** The API server tries again 500 ms after a conflict, less a tenth for jitter. */
const RETRY_MS = 450;

interface Way {
  readonly share: number;
  readonly counted?: Counted;
  readonly query?: string;
  /** `uids` are those that a pod of the name has had, the latest last. */
  readonly deleteOptions?: (uids: readonly string[]) => object;
}

const PLAIN: Way = { share: 1 };

const WAYS: readonly Way[] = [
  { share: 0.06, counted: "dryRuns", query: "?dryRun=All" },
  { share: 0.04, counted: "dryRuns", deleteOptions: () => ({ dryRun: ["All"] }) },
  { share: 0.1, counted: "ownUid", deleteOptions: (uids) => ({ preconditions: { uid: uids.at(-1) } }) },
  { share: 0.05, counted: "staleUid", deleteOptions: (uids) => ({ preconditions: { uid: uids.at(-2) ?? "none" } }) },
  { share: 0.1, deleteOptions: () => ({ gracePeriodSeconds: 3 }) },
];

/** Resolves once the signal has ended them and their last calls are answered. */
export async function runClients(stage: Stage, reviews: Reviews, tally: Tally, signal: AbortSignal): Promise<void> {
  const all = Array.from({ length: CLIENTS }, (_, i) => {
    const dice = createDice(`client-${i}`);
    let evictions = 0;
    return repeat(signal, dice, PAUSE_MS, () => evictOne(stage, reviews, tally, dice, `${i}-${evictions++}`));
  });
  await Promise.all(all);
}

async function evictOne(stage: Stage, reviews: Reviews, tally: Tally, dice: Dice, id: string): Promise<void> {
  const { timeline } = stage;
  const pod = dice.pick([...timeline.pods.values()]);
  if (!pod || (pod.state !== "ready" && dice.next() > DOWN_SHARE)) return;
  const way = chooseWay(dice);
  const uids = [...new Set(timeline.entries.filter(({ pod: name }) => name === pod.pod).map(({ uid }) => uid))];
  const deleteOptions = way.deleteOptions?.(uids);
  const { code } = await evict(stage, pod.pod, { ...way, deleteOptions, annotations: { storm: id } });
  tally.answered(code);
  const review = reviews.take(id);
  const uidNamed = way.counted === "ownUid" || way.counted === "staleUid";
  if (review?.allowed && performance.now() - review.at > RETRY_MS) tally.count("retried");
  if (code === 409 && !uidNamed) tally.count("refusedByPin");
  if (way.counted) tally.count(way.counted);
  const outcome = OUTCOMES[code];
  if (outcome) tally.count(outcome);
}

const OUTCOMES: Readonly<Record<number, Counted>> = { 201: "allowed", 404: "notFound", 429: "denied", 500: "unreachable" };

function chooseWay(dice: Dice): Way {
  let chance = dice.next();
  return WAYS.find(({ share }) => (chance -= share) < 0) ?? PLAIN;
}
