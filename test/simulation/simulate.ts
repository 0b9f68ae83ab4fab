/** `npm run simulate`: plays histories and prints what went wrong. Exit code 0 if nothing did, 1 if something did. */
import { parseArgs } from "node:util";
import { readOrExit, requireWhole } from "./options.ts";
import { formatReach, startReach } from "./reach.ts";
import { commandOf, parseReduction } from "./reduction.ts";

const USAGE = `npm run simulate -- [options]: plays histories of the simulated cluster, and prints each that goes wrong
with the command that shows it again. The first one is shrunk to a smaller history that fails in the same way.

  --seeds N         how many histories, 100 by default
  --from S          the first seed, 0 by default
  --seed S,...      these histories alone; of one also a part:
    --with K=V,...    with these values of its shape, such as zones=2,replicas=1,budget=none,prepared=false
    --actions P,...   with these of its people's actions, by their positions; none for none
    --strikes I,...   with these of its faults, by their ids; none for none
    --trace           prints it line by line
  --rest SECONDS    for which a settled world is watched, 600 by default
  --reach           prints in how many histories each cell was reached: faults, reasons, rules, errors, catch blocks
  --finds N         ends once so many histories went wrong, and shrinks none
  --shrink          shrinks each that goes wrong, not only the first
  --help
`;
const OPTIONS = {
  seeds: { type: "string", default: "100" },
  from: { type: "string", default: "0" },
  seed: { type: "string" },
  with: { type: "string" },
  actions: { type: "string" },
  strikes: { type: "string" },
  trace: { type: "boolean", default: false },
  rest: { type: "string", default: "600" },
  reach: { type: "boolean", default: false },
  finds: { type: "string" },
  shrink: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;
const MAX_SHOWN = 5;

function readOptions() {
  const { values } = parseArgs({ options: OPTIONS });
  requireWhole(values, ["seeds", "rest", "finds", "from"]);
  if (values.seed !== undefined && !/^\d+(?:,\d+)*$/.test(values.seed))
    throw new Error(`--seed has numbers of histories, not ${JSON.stringify(values.seed)}`);
  if (!/^\d+$/.test(values.seed ?? "") && (values.with ?? values.actions ?? values.strikes) !== undefined)
    throw new Error("--with, --actions and --strikes belong to one --seed");
  return { ...values, reduction: parseReduction(values) };
}

const options = readOrExit(readOptions, USAGE);
const restMs = Number(options.rest) * 1000;
const seeds =
  options.seed?.split(",").map(Number) ??
  Array.from({ length: Number(options.seeds) }, (_, i) => Number(options.from) + i);
const isReduced = (options.with ?? options.actions ?? options.strikes) !== undefined;

// Only what is imported after this is counted.
const count = options.reach ? startReach() : undefined;
const { play } = await import("./play.ts");
const { describeShrunk } = await import("./shrink.ts");

const began = process.cpuUsage();
const cells = new Map<string, number>();
let [simulatedMs, played, failed, calls] = [0, 0, 0, 0];
let playing = 0;
// What a history throws outside of its calls ends the process.
process.on("uncaughtException", (error) => {
  console.log(describeThrown(playing, error));
  process.exit(1);
});
for (const seed of seeds) {
  playing = seed;
  played++;
  const trace = options.trace ? { trace: (line: string): void => console.log(line) } : {};
  const untilViolation = options.finds !== undefined;
  const history = await play(seed, { restMs, reduction: options.reduction, untilViolation, ...trace }).catch(
    (error: unknown) => console.log(describeThrown(seed, error)),
  );
  if (!history) {
    failed++;
    if (failed === Number(options.finds)) break;
    continue;
  }
  simulatedMs += history.simulatedMs;
  calls += history.calls;
  count?.endSeed(history.cells);
  for (const [cell, times] of history.cells) cells.set(cell, (cells.get(cell) ?? 0) + times);
  if (options.seed !== undefined) console.log(`digest ${history.digest}`);
  if (history.violations.length === 0) continue;
  failed++;
  console.log(`seed ${seed}: ${commandOf(seed, options.reduction)} --trace`);
  for (const what of history.violations.slice(0, MAX_SHOWN)) console.log(`  ${what}`);
  if (failed === Number(options.finds)) break;
  if (options.finds === undefined && !isReduced && !options.trace && (failed === 1 || options.shrink))
    console.log(`  ${await describeShrunk(history, restMs)}`);
}
const { user, system } = process.cpuUsage(began);
const seconds = (user + system) / 1e6;
if (count) console.log(formatReach(count.result()));
console.log(
  `${played} histories, ${failed} of them with violations; ${(simulatedMs / 3_600_000).toFixed(1)} simulated hours, ` +
    `${calls} calls, ${[...cells.values()].filter((times) => times > 0).length} cells of fault and call site; ` +
    `${Math.round(simulatedMs / 1000 / seconds)} simulated seconds a CPU second`,
);
process.exitCode = failed > 0 ? 1 : 0;

function describeThrown(seed: number, error: unknown): string {
  const told = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `seed ${seed}: ${commandOf(seed, options.reduction)} --trace\n  throws ${told.replaceAll("\n", "\n  ")}`;
}
