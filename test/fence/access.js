/**
 * Lint rules of our own: who may import what reaches the cluster, and which way imports go, by the tables in
 * .oxlintrc.json.
 *
 *   reach        a row says which `modules` (or, of `valuesOf`, anything but their types) are imported only `by` these paths
 *   downwards    a folder imports only folders of the rows below its own; types as well
 */
import { eachImport, isAmong } from "./imports.js";

const reach = {
  meta: { schema: [{ type: "array" }] },
  create(context) {
    const [table = []] = context.options;
    return eachImport(context, ({ from, to, names, report }) => {
      for (const { what, modules = [], valuesOf = [], by } of table) {
        const concerned = names.length > 0 ? [...modules, ...valuesOf] : modules;
        if (concerned.some((module) => to === module || to.startsWith(`${module}/`)) && !isAmong(by, from))
          report(what);
      }
    });
  },
};

const downwards = {
  meta: { schema: [{ type: "array" }] },
  create(context) {
    const [rows = []] = context.options;
    const folderOf = (path) => rows.flat().find((folder) => path.startsWith(`${folder}/`));
    const floorOf = (folder) => rows.length - rows.findIndex((row) => row.includes(folder));
    const isLost = (path) => path.startsWith("reconciler/") && folderOf(path) === undefined;
    return eachImport(context, ({ from, to, report }) => {
      const [own, other] = [folderOf(from), folderOf(to)];
      if (isLost(from) || isLost(to)) report("a folder of the reconciler is on no floor: .oxlintrc.json has them");
      else if (to.startsWith("test/")) report("the product does not know its tests");
      else if (own !== other && other !== undefined && floorOf(other) >= floorOf(own))
        report(`imports go down: ${own} does not know ${other}`);
    });
  },
};

export default { meta: { name: "access" }, rules: { reach, downwards } };
