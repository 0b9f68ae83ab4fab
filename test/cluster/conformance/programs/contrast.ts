/** Plays a program on both clusters and tells what differs; shrinks one that differs. */
import { randomBytes } from "node:crypto";
import { compare, type Difference } from "../compare.ts";
import type { Client } from "../client.ts";
import type { Entry } from "../stage.ts";
import { thin } from "../../../simulation/shrink.ts";
import { explain, type Explanation } from "./explained.ts";
import type { Drawn } from "./generate.ts";
import { embeddedGround, realGround } from "./grounds.ts";
import { clear, play, type Played } from "./play.ts";

interface Contrast {
  /** On the real cluster. */
  readonly entries: readonly Entry[];
  readonly calls: number;
  readonly unexplained: readonly Difference[];
  readonly explained: readonly Explanation[];
}

/** What differs in one entry; the embedded cluster's is what is expected. */
const differencesOf = (expected: Entry | undefined, actual: Entry): Difference[] =>
  compare({ "": expected ? [expected] : [] }, { "": [actual] });
const isUnexplained = (difference: Difference): boolean => explain(difference) === undefined;

/** Plays the steps at these positions on both; ends at the first step with a difference that nothing explains. */
export async function contrast(client: Client, drawn: Drawn, positions: readonly number[]): Promise<Contrast> {
  const namespace = `prog-${randomBytes(4).toString("hex")}`;
  const chosen = { ...drawn, program: positions.flatMap((position) => drawn.program.slice(position, position + 1)) };
  const expected = await playEmbedded(chosen, namespace);
  const agrees = (entry: Entry, at: number): boolean => !differencesOf(expected.entries[at], entry).some(isUnexplained);
  try {
    const actual = await play(realGround(client, agrees), chosen, { namespace, mayGoOn: agrees });
    const differences = actual.entries.flatMap((entry, at) => differencesOf(expected.entries[at], entry));
    return {
      entries: actual.entries,
      calls: actual.calls,
      unexplained: differences.filter(isUnexplained),
      explained: differences.flatMap((difference) => explain(difference) ?? []),
    };
  } finally {
    await clear(client, namespace, drawn.plurals);
  }
}

async function playEmbedded(chosen: Drawn, namespace: string): Promise<Played> {
  const { stop, ...ground } = await embeddedGround(namespace);
  try {
    return await play(ground, chosen, { namespace });
  } finally {
    await stop();
  }
}

/** How many times a program is played again, to make it shorter. */
const MAX_ATTEMPTS = 60;

/** The fewest steps that still differ in the same field. */
export async function shrinkProgram(
  client: Client,
  drawn: Drawn,
  positions: readonly number[],
  first: Contrast,
): Promise<{ readonly positions: readonly number[]; readonly result: Contrast }> {
  const field = ({ unexplained }: Contrast): string | undefined => unexplained[0]?.field;
  let best: { positions: readonly number[]; result: Contrast } = {
    positions: positions.slice(0, first.entries.length),
    result: first,
  };
  let attempts = 0;
  const mayGoOn = (): boolean => attempts < MAX_ATTEMPTS;
  await thin(best.positions, mayGoOn, async (fewer) => {
    attempts++;
    const result = await contrast(client, drawn, fewer);
    if (field(result) !== field(first)) return false;
    best = { positions: fewer, result };
    return true;
  });
  return best;
}
