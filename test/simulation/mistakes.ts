/**
 * What people write wrong in manifests, and correct after a while: in a fifth of the seeds, from a stream of its own, so
 * that the other histories are the same as without.
 */
import { dig } from "../emulator/objects.ts";
import { PHASED } from "./checks/objects.ts";
import { drawFrom, type Draw } from "./draw.ts";
import { GROUP } from "./names.ts";
import { insist, pause, type People, SETS } from "./person.ts";
import { type Shape, zoneObject } from "./shape.ts";
import { unreadableIn } from "./unreadable.ts";

const STREAM = 0x51ed270b;
const UNREADABLE = 0x756e7265;
const ONE_OF = 5;

/** How many mistakes are made, in manifests and otherwise, and the stream of the rest; undefined for none. */
export function drawMistakes(seed: number) {
  const draw: Draw = drawFrom(seed ^ STREAM);
  const mistakes = draw.below(ONE_OF) === 0 ? draw.between(1, 4) : undefined;
  const unreadable = drawFrom(seed ^ UNREADABLE).below(ONE_OF) === 0 ? draw.between(1, 3) : undefined;
  return { mistakes, unreadable, mistakeDraw: draw };
}

/** One field of an object, wrong and as it should be. */
interface Mistake {
  readonly path: string;
  readonly wrong: object;
  readonly right: object;
}

type Mistaken = (people: People, zone: string) => Mistake;

/** A label or an annotation of a zone. */
function ofMetadata({ shape }: People, zone: string, [field, key, value]: readonly [string, string, string]): Mistake {
  const right = dig(zoneObject(shape, zone), "metadata", field, key) ?? null;
  const metadata = (text: unknown): object => ({ metadata: { [field]: { [key]: text } } });
  return { path: `${SETS}/${zone}`, wrong: metadata(value), right: metadata(right) };
}

const annotated =
  (key: string, valueOf: (people: People, zone: string) => string): Mistaken =>
  (people, zone) =>
    ofMetadata(people, zone, ["annotations", key, valueOf(people, zone)]);

const LEADER = "grafana.com/rollout-downscale-leader";
const MIRRORED = "grafana.com/rollout-mirror-replicas-from-resource";
const IN_ALL: readonly Mistaken[] = [
  (_, zone) => ({
    path: `${SETS}/${zone}`,
    wrong: { spec: { updateStrategy: { type: "RollingUpdate" } } },
    right: { spec: { updateStrategy: { type: "OnDelete", rollingUpdate: null } } },
  }),
  // Beside a template it follows two; beside the leaders of the other zones they go in a circle.
  annotated(LEADER, ({ shape: { zones } }) => zones.at(-1) ?? ""),
  annotated(LEADER, () => "nobody"),
  annotated("rollout-max-unavailable", ({ draw }) => draw.of(["many", "0", "-1", "150%"])),
  (people, zone) => ofMetadata(people, zone, ["labels", "grafana.com/min-time-between-zones-downscale", "soon"]),
];
const OF_FOLLOWERS = [annotated("grafana.com/rollout-upscale-only-when-leader-ready", () => "true")];
const OF_MIRRORS = [
  annotated("grafana.com/rollout-delayed-downscale", () => "soon"),
  annotated(`${MIRRORED}-api-version`, () => "v1/v1/v1"),
  annotated(`${MIRRORED}-name`, () => "nobody"),
];
const OF_PHASED: readonly Mistaken[] = [
  () => ({
    path: `${SETS}/${PHASED}`,
    wrong: { spec: { updateStrategy: { type: "OnDelete", rollingUpdate: null } } },
    right: { spec: { updateStrategy: { type: "RollingUpdate" } } },
  }),
  () => ({
    path: `${SETS}/${PHASED}`,
    wrong: { metadata: { labels: { "rollout-group": `${GROUP}-2` } } },
    right: { metadata: { labels: { "rollout-group": null } } },
  }),
];

const mistakesIn = ({ followers, mirrored, phased }: Shape): readonly Mistaken[] => [
  ...IN_ALL,
  ...(followers ? OF_FOLLOWERS : []),
  ...(mirrored ? OF_MIRRORS : []),
  ...(phased ? OF_PHASED : []),
];

/** One that a manifest cannot have. */
async function spoil(people: People, onMistake: (text: string) => void): Promise<void> {
  const { draw, shape } = people;
  const { what, spoil: write, mend } = draw.of(unreadableIn(shape));
  onMistake(`${what} cannot be read`);
  await write(people);
  await pause(people, draw.between(1000, draw.of([20_000, 200_000])));
  await mend(people);
}

/** Sets the mistakes of the troubled time. Returns a function that resolves once those that were made are mended. */
export function setMistakes(people: People, onMistake: (text: string) => void): () => Promise<unknown> {
  const { schedule, draw, shape } = people;
  const made: Promise<unknown>[] = [];
  for (let i = 0; i < (shape.mistakes ?? 0); i++) {
    const { path, wrong, right } = draw.of(mistakesIn(shape))(people, draw.of(shape.zones));
    const ms = draw.between(1000, draw.of([10_000, 60_000]));
    schedule.after(draw.between(2000, shape.troubledMs), () => {
      onMistake(`${path} ${JSON.stringify(wrong)}`);
      made.push(
        insist(people, path, wrong)
          .then(() => pause(people, ms))
          .then(() => insist(people, path, right)),
      );
    });
  }
  for (let i = 0; i < (shape.unreadable ?? 0); i++)
    schedule.after(draw.between(2000, shape.troubledMs), () => void made.push(spoil(people, onMistake)));
  return () => Promise.all(made);
}
