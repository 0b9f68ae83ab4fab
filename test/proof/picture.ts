/** The picture of a run: the longest gap in acknowledgements, second by second. */
import { gapsBySecond, type Scene } from "./measure.ts";

const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [880, 300, 46, 58, 34];
const COLOURS = { ours: "#2f7d4f", control: "#c2402a" };
/** The axis ends here at least, in seconds. */
const LEAST_TOP_S = 4;

/** `streams`: when each message of each stream was acknowledged. */
export function drawGaps(scenes: readonly Scene[], streams: readonly (readonly number[])[]): string {
  const parts = scenes.map((scene) => ({ scene, gaps: gapsBySecond(streams, scene) }));
  const seconds = parts.reduce((sum, { gaps }) => sum + gaps.length, 0);
  const most = Math.max(LEAST_TOP_S, ...parts.map(({ gaps }) => Math.ceil(Math.max(...gaps) / 1000)));
  const x = (second: number): number => LEFT + (second / seconds) * (WIDTH - LEFT - 8);
  const y = (ms: number): number => HEIGHT - BOTTOM - (ms / 1000 / most) * (HEIGHT - TOP - BOTTOM);
  let begun = 0;
  const drawn = parts.map(({ scene, gaps }, i) => {
    const [from, to] = [begun, begun + gaps.length];
    begun = to;
    return drawScene({ scene, gaps, x: (second) => x(from + second), end: x(to), y, row: i % 2 });
  });
  const step = Math.max(1, Math.ceil(most / 6));
  const lines = Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step).map(
    (second) =>
      `<path d="M${LEFT} ${y(second * 1000).toFixed(1)}H${WIDTH - 8}" stroke="#8886"/>` +
      `<text x="${LEFT - 6}" y="${(y(second * 1000) + 4).toFixed(1)}" text-anchor="end">${second} s</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="11" fill="#777" role="img">
<title>The longest time without an acknowledged write, second by second: with Zonewise, and without it</title>
${[...lines, ...drawn].join("\n")}
<text x="${LEFT}" y="${HEIGHT - 8}">time; <tspan fill="${COLOURS.ours}">with Zonewise</tspan>, <tspan fill="${COLOURS.control}">without</tspan></text>
<text x="${LEFT}" y="14">longest time without an acknowledged write, of any stream</text>
</svg>
`;
}

const titleOf = ({ name }: Scene): string => name.replaceAll("`", "").replace(/,.*/, "");

interface Part {
  readonly scene: Scene;
  readonly gaps: readonly number[];
  readonly x: (second: number) => number;
  readonly end: number;
  readonly y: (ms: number) => number;
  /** Titles of neighbours stand in two rows, as narrow scenes have long ones. */
  readonly row: number;
}

function drawScene({ scene, gaps, x, end, y, row }: Part): string {
  const colour = scene.isControl ? COLOURS.control : COLOURS.ours;
  const points = gaps.flatMap((ms, i) => [
    `${x(i).toFixed(1)} ${y(ms).toFixed(1)}`,
    `${x(i + 1).toFixed(1)} ${y(ms).toFixed(1)}`,
  ]);
  const floor = y(0).toFixed(1);
  return (
    `<path d="M${x(0).toFixed(1)} ${floor}L${points.join("L")}L${end.toFixed(1)} ${floor}Z" fill="${colour}" fill-opacity=".35" stroke="${colour}"/>` +
    `<path d="M${x(0).toFixed(1)} ${TOP - 26}V${floor}" stroke="#8888" stroke-dasharray="2 3"/>` +
    `<text x="${(x(0) + 3).toFixed(1)}" y="${TOP - 18 + row * 13}" fill="${colour}">${titleOf(scene)}</text>`
  );
}
