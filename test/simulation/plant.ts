/**
 * Plants a bug: `ZONEWISE_PLANT='<sentence>' node --import ./test/simulation/plant.ts test/simulation/simulate.ts` runs
 * with this mutation of the table, which is applied to its file as it is loaded.
 */
import { MUTATIONS } from "../mutation/table.ts";
import { changeOnLoad } from "./load.ts";

const mutation = MUTATIONS.find(({ breaks }) => breaks === process.env["ZONEWISE_PLANT"]);
if (!mutation) throw new Error(`no mutation breaks ${JSON.stringify(process.env["ZONEWISE_PLANT"])}`);
changeOnLoad([mutation]);
