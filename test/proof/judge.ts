/** What a scene with Zonewise has to keep. */
import { ACK_MS } from "./load.ts";
import type { Scene } from "./measure.ts";

/** `maxElectionTimeout` of nats-server's server/raft.go: how long followers wait for a leader that is gone. */
const ELECTION_MS = 9000;

/** A leader that dies without a word, and the message that is sent again. */
export const MAX_GAP_MS = ELECTION_MS + ACK_MS;

/** One sentence for each that it did not keep. A pause of the writers themselves is none of the database's. */
export function judge({ name, isControl, lost, longestGapMs, pauseMs, zonesDown }: Scene): string[] {
  if (isControl) return [];
  const faults = [
    lost > 0 && `${lost} acknowledged writes are lost`,
    zonesDown > 1 && `${zonesDown} zones were down at once`,
    longestGapMs > MAX_GAP_MS + pauseMs && `no write was acknowledged for ${Math.round(longestGapMs)} ms`,
  ];
  return faults.flatMap((fault) => (fault === false ? [] : [`${name}: ${fault}`]));
}
