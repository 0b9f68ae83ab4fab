/** What a module imports: for lint rules of our own. */
import { dirname, join, matchesGlob, relative } from "node:path";

/**
 * Calls `judge` for each import and re-export of a module, with paths from the root of the tree, or the package's name.
 */
export function eachImport(context, judge) {
  const from = relative(context.cwd, context.filename);
  const report = (node) => (message) => context.report({ node, message });
  const visit = (node) => {
    if (node.source?.value !== undefined)
      judge({ from, to: locate(from, node.source.value), names: valuesOf(node), report: report(node) });
  };
  return {
    ImportDeclaration: visit,
    ExportNamedDeclaration: visit,
    ExportAllDeclaration: visit,
    ImportExpression: visit,
  };
}

/** True if one of the globs matches the path: `cli/gather/x.ts` is among the files below `cli/gather`. */
export function isAmong(globs, path) {
  return globs.some((glob) => matchesGlob(path, glob));
}

function locate(from, source) {
  return source.startsWith(".") ? join(dirname(from), source) : source;
}

/** The names that are there at run time; none if only types are imported. */
function valuesOf(node) {
  if (node.importKind === "type" || node.exportKind === "type") return [];
  if (!node.specifiers?.length) return ["*"];
  return node.specifiers
    .filter(({ importKind, exportKind }) => importKind !== "type" && exportKind !== "type")
    .map(({ imported, local, type }) =>
      type === "ImportNamespaceSpecifier" ? "*" : ((imported ?? local).name ?? "default"),
    );
}
