/**
 * `npm run simulate [-- --seeds N] [-- --seed S [--trace]]`: plays histories and prints what went wrong, each with the
 * command that shows it again. Exit code 0 if nothing did, otherwise 1.
 *
 *     --from S         the first seed, 0 by default
 *     --rest SECONDS   for which a settled world is watched, 600 by default
 *     --reach          prints the cells of fault and call site that were reached, and how often
 *     --until-found    ends at the first history with a violation
 */
import { parseArgs } from "node:util";
import { play } from "./play.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "100" },
    from: { type: "string", default: "0" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    reach: { type: "boolean", default: false },
    rest: { type: "string", default: "600" },
    "until-found": { type: "boolean", default: false },
  },
});

const first = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds) : 1;
const began = process.cpuUsage();
const reached = new Map<string, number>();
let [simulatedMs, failed, calls] = [0, 0, 0];
for (let seed = first; seed < first + count; seed++) {
  const restMs = Number(values.rest) * 1000;
  const history = await play(seed, { restMs, ...(values.trace && { trace: (line: string) => console.log(line) }) });
  simulatedMs += history.simulatedMs;
  calls += history.calls;
  for (const [cell, times] of history.reached) reached.set(cell, (reached.get(cell) ?? 0) + times);
  if (history.violations.length === 0) continue;
  failed++;
  console.log(`seed ${seed}: npm run simulate -- --seed ${seed} --trace`);
  for (const what of history.violations.slice(0, 5)) console.log(`  ${what}`);
  if (values["until-found"]) break;
}
const { user, system } = process.cpuUsage(began);
const seconds = (user + system) / 1e6;
if (values.reach) for (const [cell, times] of [...reached].toSorted()) console.log(`${cell}: ${times}`);
console.log(
  `${count} histories, ${failed} of them with violations; ${(simulatedMs / 3_600_000).toFixed(1)} simulated hours, ` +
    `${calls} calls, ${reached.size} cells of fault and call site; ` +
    `${Math.round(simulatedMs / 1000 / seconds)} simulated seconds a CPU second`,
);
process.exitCode = failed > 0 ? 1 : 0;
