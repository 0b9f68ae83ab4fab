/**
 * Lint rules of our own: what is pure reads no clock, imports nothing at run time, and takes values only from what is
 * pure. The files are those of the override that turns these rules on; the names that oxlint can forbid itself stand
 * there as well.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eachImport, isAmong } from "./imports.js";

const { overrides } = JSON.parse(readFileSync(join(import.meta.dirname, "../../.oxlintrc.json"), "utf8"));
const { files: PURE, excludeFiles: IMPURE } = overrides.find(({ rules }) => rules["pure/imports"]);
const isPure = (path) => isAmong(PURE, path) && !isAmong(IMPURE, path);

/** Packages that do no I/O (croner without a job to run), and what of a module of Node.js does none. */
const PACKAGES = new Set(["zod", "zod/mini", "re2js", "pbf", "croner", "preact", "preact-render-to-string"]);
const CRYPTO = new Set(["X509Certificate", "createHash", "createPrivateKey"]);

const message = "pure: time is part of the snapshot";

const impure = {
  create(context) {
    const report = (node) => context.report({ node, message });
    return {
      NewExpression: (node) => node.callee.name === "Date" && node.arguments.length === 0 && report(node),
      CallExpression: (node) => node.callee.name === "Date" && report(node),
      ImportExpression: (node) => context.report({ node, message: "pure: no import at run time" }),
    };
  },
};

const imports = {
  create: (context) =>
    eachImport(context, ({ to, names, report }) => {
      if (names.length === 0 || isPure(to) || PACKAGES.has(to)) return;
      if (to === "node:crypto" && names.every((name) => CRYPTO.has(name))) return;
      report(`pure: ${to} is not, so only types may come from it`);
    }),
};

export default { meta: { name: "pure" }, rules: { "no-clock": impure, imports } };
