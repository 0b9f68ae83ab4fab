/** Violations of the architecture, each with the rule that names it; and what the same rules allow. */
import { dirname, relative } from "node:path";
import { ALLOWED, FORBIDDEN } from "./files.ts";

/** A planted file. */
interface Planted {
  readonly name: string;
  readonly path: string;
  readonly content: string;
  /** Undefined for what is allowed. */
  readonly rule: string | undefined;
}

/** A function with this many branches, and so one more path. */
function branches(count: number): string {
  return `export function x(n: number): number {\n${Array.from({ length: count }, (_, i) => `  if (n === ${i}) return ${i};\n`).join("")}  return n;\n}\n`;
}

function parameters(names: string): string {
  return `export function x(${names.replaceAll(/\w+/g, "$&: string")}): string[] {\n  return [${names}];\n}\n`;
}

function lines(count: number): string {
  return `${"// one\n".repeat(count - 1)}export const x = 1;\n`;
}

/** Files that are more than an import or an expression. */
const WRITTEN: readonly (readonly [name: string, path: string, content: string, rule?: string])[] = [
  [
    "a pure file passes on what is not pure",
    "reconciler/report/judge-ticking.ts",
    `export { createLog } from "../../infra/log.ts";\n`,
    "pure(imports)",
  ],
  ["a file has more than 350 lines", "functions/x.ts", lines(351), "max-lines"],
  ["a function has more than ten paths", "reconciler/run/x.ts", branches(10), "complexity"],
  ["a function has four positional parameters", "infra/x.ts", parameters("a, b, c, d"), "max-params"],
  ["a file has 350 lines", "functions/x.ts", lines(350)],
  ["a function has ten paths", "reconciler/run/x.ts", branches(9)],
  ["a function has three positional parameters", "infra/x.ts", parameters("a, b, c")],
];

/** The file that a row says: `infra/x.ts: type Log from infra/log.ts`, say, or `infra/x.ts: Date.now()`. */
function read([name, row]: readonly [string, string], rule?: string): Planted {
  const [path = "", says = ""] = row.split(/: (.*)/s);
  const taken = says.split("; ").flatMap((part) => [...part.matchAll(/^(type )?(\w+) from (\S+)$/g)]);
  const imports = taken.map(([, type = "", it, from = ""]) => {
    const source = from.endsWith(".ts") ? relative(dirname(path), from).replace(/^(?!\.)/, "./") : from;
    return `import ${type}${from === `node:${it}` ? it : `{ ${it} }`} from "${source}";\n`;
  });
  const used = taken.map(([, type, it], i) => `export ${type ?? "const "}x${i} = ${it};\n`);
  return {
    name,
    path,
    rule,
    content: taken.length > 0 ? [...imports, ...used].join("") : `export const x = ${says};\n`,
  };
}

const FILES: readonly Planted[] = [
  ...Object.entries(FORBIDDEN).flatMap(([rule, rows]) => Object.entries(rows).map((row) => read(row, rule))),
  ...Object.entries(ALLOWED).map((row) => read(row)),
  ...WRITTEN.map(([name, path, content, rule]) => ({ name, path, content, rule })),
];

export const PLANTED = FILES.map((file, i) => ({ ...file, path: file.path.replace("x.ts", `x${i}.ts`) }));
