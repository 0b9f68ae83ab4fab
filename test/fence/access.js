/**
 * A lint rule of our own: who may import what reaches the cluster, by the table in .oxlintrc.json. A row says which `modules` (or, of `valuesOf`,
 * anything but their types) are imported only `by` these files and folders.
 */
import { eachImport, isAmong } from "./imports.js";

const reach = {
  meta: { schema: [{ type: "array" }] },
  create(context) {
    const [table = []] = context.options;
    return eachImport(context, ({ from, to, names, report }) => {
      for (const { what, modules = [], valuesOf = [], by } of table) {
        const concerned = names.length > 0 ? [...modules, ...valuesOf] : modules;
        if (concerned.some((module) => to === module || to.startsWith(`${module}/`)) && !isAmong(by, from)) report(what);
      }
    });
  },
};

export default { meta: { name: "access" }, rules: { reach } };
