/**
 * Incidents: acts in their order, which lead to moments that chance rarely meets. Each area of them is in one of twelve
 * seeds, drawn from a stream of its own, so that the other histories are the same as without.
 */
import { createHash } from "node:crypto";
import { type Draw, drawFrom } from "../draw.ts";
import type { People } from "../person.ts";
import type { Shape } from "../shape.ts";
import { DOWNSCALES_AREA } from "./downscales.ts";
import type { Area } from "./incident.ts";
import { LEASES_AREA } from "./leases.ts";
import { MEANWHILE_AREA } from "./meanwhile.ts";
import { NODES_AREA } from "./nodes.ts";

const AREAS: Readonly<Record<string, Area>> = {
  nodes: NODES_AREA,
  leases: LEASES_AREA,
  downscales: DOWNSCALES_AREA,
  meanwhile: MEANWHILE_AREA,
};
const ONE_OF = 12;
const MOST = 4;
/** Aims differ by a number up to that. */
const AIMS = 1_000_000;

/** By area, so that another one changes no draw of it. */
const streamOf = (seed: number, area: string): Draw =>
  drawFrom(seed ^ createHash("sha256").update(`incidents ${area}`).digest().readInt32BE());

/** In one of twelve seeds the first call of each site meets a fault; incidents of one area are sure to happen then. */
function drawAim(seed: number) {
  const draw = streamOf(seed, "aim");
  if (draw.below(ONE_OF) > 0) return undefined;
  return { aim: draw.below(AIMS), sure: draw.of(Object.keys(AREAS)) };
}

/** The shape with what its incidents need, and the streams of them. */
export function drawIncidents(seed: number, shape: Shape) {
  const incidentDraws = new Map<string, Draw>();
  const incidents: Record<string, number> = {};
  const added: Partial<Shape> = {};
  const aimed = drawAim(seed);
  for (const [name, area] of Object.entries(AREAS)) {
    const draw = streamOf(seed, name);
    const has = draw.below(ONE_OF) === 0 || name === aimed?.sure;
    const parts = has ? area.shape({ ...shape, ...added }, draw) : undefined;
    if (!parts) continue;
    incidentDraws.set(name, draw);
    incidents[name] = draw.between(1, MOST);
    Object.assign(added, parts);
  }
  const whole = incidentDraws.size > 0 ? { ...shape, ...added, incidents } : shape;
  return { shape: aimed ? { ...whole, aim: aimed.aim } : whole, incidentDraws };
}

interface SetIncidents {
  readonly draws: ReadonlyMap<string, Draw>;
  readonly onIncident: (name: string) => void;
}

interface Incidents {
  /** Resolves once those that were begun have ended. */
  readonly ended: () => Promise<unknown>;
  /** Sets right what they left. */
  readonly setRight: () => Promise<void>;
}

/** Sets the incidents of the troubled time. */
export function setIncidents(people: People, { draws, onIncident }: SetIncidents): Incidents {
  const { schedule, shape } = people;
  const begun: Promise<unknown>[] = [];
  const areas = Object.entries(shape.incidents ?? {}).flatMap(([name, count]) => {
    const [area, draw] = [AREAS[name], draws.get(name)];
    return area && draw ? [{ name, area, count, own: { ...people, draw } }] : [];
  });
  for (const { name, area, count, own } of areas)
    for (let i = 0; i < count; i++) {
      const [incident, act] = own.draw.of(Object.entries(area.incidents));
      schedule.after(own.draw.between(2000, shape.troubledMs), () => {
        onIncident(`${name}: ${incident}`);
        begun.push(act(own));
      });
    }
  return {
    ended: () => Promise.all(begun),
    async setRight() {
      for (const { area, own } of areas) await area.setRight?.(own);
    },
  };
}
