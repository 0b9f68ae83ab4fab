/** Rollout windows of the zones, as the seed draws them. */
import { type Draw, drawFrom } from "../draw.ts";

export interface WindowsShape {
  /** Open in every second of some minutes; otherwise from a time on for a duration. */
  readonly windowed: boolean;
  /** People take the windows away once the trouble has ended; otherwise the rest of the rollout needs them, too. */
  readonly removed: boolean;
}

/** Apart from all else that the seed draws: a history without windows is the same as if there were none. */
const STREAM = 0x77696e64;
/** Of so many seeds one has windows. */
const ONE_OF = 4;

/** Minutes: the window is open in the first ones of as many. */
const [OPEN_MINUTES, OF_MINUTES] = [2, 5];

export function drawWindows(seed: number): WindowsShape | undefined {
  const draw: Draw = drawFrom(seed ^ STREAM);
  return draw.below(ONE_OF) === 0 ? { windowed: draw.chance(0.5), removed: draw.chance(0.5) } : undefined;
}

const PREFIX = "zonewise.dev/rollout";
const MINUTES = Array.from({ length: 60 }, (_, minute) => minute).filter(
  (minute) => minute % OF_MINUTES < OPEN_MINUTES,
);

export const windowAnnotations = ({ windowed }: WindowsShape): Readonly<Record<string, string>> =>
  windowed
    ? { [`${PREFIX}-window`]: `* ${MINUTES.join()} * * * *` }
    : { [`${PREFIX}-window`]: `0 */${OF_MINUTES} * * * *`, [`${PREFIX}-window-duration`]: `${OPEN_MINUTES}m` };

export const FREEZES = `${PREFIX}-freezes`;
const WINDOW = `${PREFIX}-window`;

/** What nobody can read: the zone's pods stay. */
export const SPOILT: readonly Readonly<Record<string, string>>[] = [
  { [WINDOW]: "0 2 * * *" },
  { [FREEZES]: "2026-01-01/soon" },
  { [`${PREFIX}-window-time-zone`]: "Mars/Olympus", [WINDOW]: "* * * * * *" },
];
