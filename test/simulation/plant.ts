/**
 * Plants a bug: `ZONEWISE_PLANT='<sentence>' node --import ./test/simulation/plant.ts test/simulation/simulate.ts` runs
 * with this mutation of the table, which is applied to its file as it is loaded.
 */
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { mutate } from "../mutation/mutation.ts";
import { MUTATIONS } from "../mutation/table.ts";

const mutation = MUTATIONS.find(({ breaks }) => breaks === process.env["ZONEWISE_PLANT"]);
if (!mutation) throw new Error(`no mutation breaks ${JSON.stringify(process.env["ZONEWISE_PLANT"])}`);
const { href } = pathToFileURL(join(import.meta.dirname, "../..", mutation.file));

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (url !== href) return loaded;
    const source = mutate(new TextDecoder().decode(loaded.source as Uint8Array), mutation);
    if (source === undefined) throw new Error(`not once in ${mutation.file}: ${mutation.find}`);
    return { ...loaded, source: new TextEncoder().encode(source) };
  },
});
