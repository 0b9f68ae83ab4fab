/**
 * Every group gets a closer look, pods and all, at least every 5 minutes, even if its status says that it is settled. Each group has a
 * moment of its own within the 5 minutes, so that the looks spread; up to when they have been taken is kept on the Lease, across processes.
 */

const PERIOD_MS = 5 * 60_000;

/** The groups whose moment lies between `lookedUntil` and `now` (milliseconds since the epoch), and all of them if that is a period or more. */
export function dueForCloserLook(lookedUntil: number | undefined, now: number): (key: string) => boolean {
  if (lookedUntil === undefined || now - lookedUntil >= PERIOD_MS || now < lookedUntil) return () => true;
  return (key) => {
    const moment = hash(key) % PERIOD_MS;
    const latest = now - ((((now - moment) % PERIOD_MS) + PERIOD_MS) % PERIOD_MS);
    return latest > lookedUntil;
  };
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value;
}
