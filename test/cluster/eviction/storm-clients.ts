/** Clients that continuously evict pods of a few names, with the variants of requests that drainers send. */
import type { Review, Reviews } from "../stage/balancer.ts";
import { evict } from "../stage/evict.ts";
import { createRandom, type Random } from "../stage/random.ts";
import type { Stage } from "../stage/stage.ts";
import { type Counted, repeat, type Tally } from "./storm-tally.ts";

const CLIENTS = 24;
const PAUSE_MS = 60;
/** The probability of evicting a pod that is not ready: a lower rate gives pods time to become ready. */
const NOT_READY_SHARE = 0.4;
/** The API server retries 500 ms after a conflict, minus a tenth for jitter. */
const RETRY_MS = 450;

interface Variant {
  readonly share: number;
  readonly counted?: Counted;
  readonly query?: string;
  /** `uids` are those of all pods of this name, the current one last. */
  readonly deleteOptions?: (uids: readonly string[]) => object;
}

const PLAIN: Variant = { share: 1 };

const VARIANTS: readonly Variant[] = [
  { share: 0.06, counted: "dryRuns", query: "?dryRun=All" },
  { share: 0.04, counted: "dryRuns", deleteOptions: () => ({ dryRun: ["All"] }) },
  { share: 0.1, counted: "ownUid", deleteOptions: (uids) => ({ preconditions: { uid: uids.at(-1) } }) },
  { share: 0.05, counted: "staleUid", deleteOptions: (uids) => ({ preconditions: { uid: uids.at(-2) ?? "none" } }) },
  { share: 0.1, deleteOptions: () => ({ gracePeriodSeconds: 3 }) },
];

/** Resolves once the signal is aborted and the last responses have arrived. */
export async function runClients(
  stage: Stage,
  reviews: Reviews,
  { tally, signal }: { readonly tally: Tally; readonly signal: AbortSignal },
): Promise<void> {
  const clients = Array.from({ length: CLIENTS }, (_, i) => {
    const random = createRandom(`client-${i}`);
    let evictions = 0;
    return repeat({ signal, random, maxPauseMs: PAUSE_MS }, async () => {
      const id = `${i}-${evictions++}`;
      const sent = await evictOne(stage, random, id);
      if (sent) countEviction(tally, sent, reviews.take(id));
    });
  });
  await Promise.all(clients);
}

interface SentEviction {
  readonly variant: Variant;
  /** The response code. */
  readonly code: number;
}

/** Evicts a random pod; undefined if it chose none. */
async function evictOne(stage: Stage, random: Random, id: string): Promise<SentEviction | undefined> {
  const { timeline } = stage;
  const pod = random.pick([...timeline.pods.values()]);
  if (!pod || (pod.state !== "ready" && random.next() > NOT_READY_SHARE)) return undefined;
  const variant = chooseVariant(random);
  const uids = [...new Set(timeline.entries.filter(({ pod: name }) => name === pod.pod).map(({ uid }) => uid))];
  const deleteOptions = variant.deleteOptions?.(uids);
  const { code } = await evict(stage, pod.pod, { ...variant, deleteOptions, annotations: { storm: id } });
  return { variant, code };
}

function countEviction(tally: Tally, { variant, code }: SentEviction, review: Review | undefined): void {
  tally.countCode(code);
  const namesUid = variant.counted === "ownUid" || variant.counted === "staleUid";
  if (review?.allowed && performance.now() - review.at > RETRY_MS) tally.count("retried");
  if (code === 409 && !namesUid) tally.count("refusedByPin");
  if (variant.counted) tally.count(variant.counted);
  const outcome = OUTCOMES[code];
  if (outcome) tally.count(outcome);
}

const OUTCOMES: Readonly<Record<number, Counted>> = {
  201: "allowed",
  404: "notFound",
  429: "denied",
  500: "unreachable",
};

function chooseVariant(random: Random): Variant {
  let chance = random.next();
  return VARIANTS.find(({ share }) => (chance -= share) < 0) ?? PLAIN;
}
