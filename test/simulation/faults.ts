/** Which fault happens at which call: as the seed draws it, or of those only the ones that a list names. */
import { spreadHash } from "../../infra/hash.ts";
import { type Draw, drawFrom } from "./draw.ts";
import { ANSWER_FAULTS, BURST_MS, type Fault, type Shape, WATCH_FAULTS } from "./shape.ts";

interface FaultsOptions {
  readonly draw: Draw;
  readonly shape: Shape;
  /** Milliseconds since the world began. */
  readonly age: () => number;
  /** Ids of the strikes that happen; all that the seed draws if undefined. */
  readonly only: ReadonlySet<string> | undefined;
  readonly onStrike: (cell: string, id: string) => void;
}

interface Faults {
  /** True if this fault happens at this call site now. */
  readonly strikes: (fault: Fault, site: string) => boolean;
  /** None happens any more. */
  readonly calm: () => void;
  /** "fault at call site" of all that could have happened, and how often it did. */
  readonly cells: ReadonlyMap<string, number>;
  /** Ids of those that happened. */
  readonly struck: readonly string[];
}

interface Cell {
  readonly name: string;
  /** So often it was asked whether the fault happens there. */
  asked: number;
}

/** By how much more often a fault strikes the first calls of a site: most are made a few times in a history, if at all. */
const RARE = 8;
const [STREAM, ONE_OF, FIRST] = [0x2c1b3c6d, 8, 0.15];

/**
 * The probability of each fault at the first call of a site, whatever the seed's mix is, in an eighth of the seeds: else
 * calls that few histories make meet few faults.
 */
export const drawFirstCalls = (seed: number): number | undefined =>
  drawFrom(seed ^ STREAM).below(ONE_OF) === 0 ? FIRST : undefined;

const AIMS = [
  ...(["requestLost", "answerLost", "slowRequest", "slowAnswer", "throttled", "serverError"] as const),
  ...(["conflict", "killBefore", "killAfter", "frozen", "webhookSlow", "hostLost"] as const),
  ...ANSWER_FAULTS,
] as const satisfies readonly Fault[];
/** The fault that is aimed at the first call of a site. */
const aimAt = (site: string, aim: number): Fault => AIMS[spreadHash(`${aim} ${site}`) % AIMS.length] ?? "requestLost";

const [ANSWERS, OF_ANSWERS] = [0x616e7377, 4];

/** How often answers are cut or refused as too old, in a quarter of the seeds. */
export function drawAnswers(seed: number): Shape["answers"] {
  const draw = drawFrom(seed ^ ANSWERS);
  if (draw.below(OF_ANSWERS) > 0) return undefined;
  return Object.fromEntries(ANSWER_FAULTS.map((fault) => [fault, draw.of([0.002, 0.01, 0.05])])) as Shape["answers"];
}

const [WATCHES, OF_WATCHES] = [0x77617463, 4];

/** How often watches tell nothing or late, in a quarter of the seeds: there are few, so a few are many of them. */
export function drawWatches(seed: number): Shape["watches"] {
  const draw = drawFrom(seed ^ WATCHES);
  if (draw.below(OF_WATCHES) > 0) return undefined;
  return Object.fromEntries(WATCH_FAULTS.map((fault) => [fault, draw.of([0.02, 0.1, 0.5])])) as Shape["watches"];
}

/** Of the seeds that draw them alone: in others they are not even asked for. */
const DRAWN_APART: ReadonlySet<Fault> = new Set([...ANSWER_FAULTS, ...WATCH_FAULTS]);

/** By how much more often faults strike in a burst, and less often outside. */
const [IN_BURST, OUTSIDE] = [2, 0.5];

export function createFaults({ draw, shape, age, only, onStrike }: FaultsOptions): Faults {
  const asked = new Map<Fault, Map<string, Cell>>();
  const cells = new Map<string, number>();
  const struck: string[] = [];
  const levels: Readonly<Partial<Record<Fault, number>>> = {
    ...shape.faults,
    ...shape.answers,
    ...shape.watches,
    ...shape.nodes?.faults,
  };
  let isCalm = false;
  const isBurst = (): boolean => shape.bursts.some((at) => age() >= at && age() < at + BURST_MS);
  function cellOf(fault: Fault, site: string): Cell {
    const sites = asked.get(fault) ?? new Map<string, Cell>();
    const cell = sites.get(site) ?? { name: `${fault} at ${site}`, asked: 0 };
    asked.set(fault, sites.set(site, cell));
    if (cell.asked === 0) cells.set(cell.name, 0);
    return cell;
  }
  return {
    strikes(fault, site) {
      if (isCalm) return false;
      const isAimed = shape.aim !== undefined && aimAt(site, shape.aim) === fault;
      if (!isAimed && levels[fault] === undefined && DRAWN_APART.has(fault)) return false;
      const cell = cellOf(fault, site);
      const before = cell.asked++;
      const rate = (levels[fault] ?? 0) * (1 + RARE / (1 + before)) * (isBurst() ? IN_BURST : OUTSIDE);
      const first = before === 0 ? (isAimed ? 1 : (shape.firstCalls ?? 0)) : 0;
      if (!draw.chance(Math.max(rate, first))) return false;
      // The same for the same call of another history, as far as both have made as many of them.
      const id = spreadHash(`${cell.name} ${before}`).toString(36);
      if (only && !only.has(id)) return false;
      cells.set(cell.name, (cells.get(cell.name) ?? 0) + 1);
      struck.push(id);
      onStrike(cell.name, id);
      return true;
    },
    calm: () => void (isCalm = true),
    cells,
    struck,
  };
}
