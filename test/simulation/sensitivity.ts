/**
 * `npm run simulate:planted [words] [-- --seeds N]`: plants each bug of the mutation table (those whose sentence has
 * all the words) and prints after how many seeds an oracle finds it.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { visitEach } from "../../infra/slots.ts";
import { MUTATIONS } from "../mutation/table.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seeds: { type: "string", default: "100" } },
});

const chosen = MUTATIONS.filter(({ breaks }) => positionals.every((word) => breaks.includes(word)));
const AT_ONCE = 2;

const plant = join(import.meta.dirname, "plant.ts");
const simulate = join(import.meta.dirname, "simulate.ts");
let found = 0;
await visitEach(chosen, { atOnce: AT_ONCE }, async ({ breaks }) => {
  const args = ["--import", plant, simulate, "--seeds", values.seeds, "--until-found"];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ZONEWISE_PLANT: breaks },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const seed = /^seed (\d+): /m.exec(output)?.[1];
  if (seed !== undefined) found++;
  const what = seed === undefined ? (errors.trim().split("\n")[0] ?? "") : (output.split("\n")[1]?.trim() ?? "");
  console.log(`${seed === undefined ? "not found" : `seed ${seed}`.padEnd(9)}  ${breaks}  ${what}`);
});
console.log(`${found} of ${chosen.length} planted bugs were found within ${values.seeds} seeds`);
